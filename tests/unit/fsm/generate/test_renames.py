"""Renames: read, recognised, carried out."""

from __future__ import annotations

import pytest

from flyball.fsm.compile import compile_text
from flyball.fsm.generate.renames import (
    Rename,
    RenameError,
    likely_renames,
    parse_rename,
    rename_in_diagram,
    rename_in_file,
)
from flyball.fsm.generate.stubs import FunctionShape
from flyball.fsm.model import Diagram

TEXT = "title T\n[*] --> A\nA: do / Load(Load)\nA --> [*]: IsReady and not IsLate::Load\nA --> [*]\n"
GUARDS = FunctionShape("guard")


def diagram(text: str) -> Diagram:
    found, findings = compile_text(text, "t.puml")
    assert found is not None, findings
    return found


def test_reading() -> None:
    assert parse_rename("guard:Old=New") == ("guard", "Old", "New")
    assert parse_rename("Old=New") == (None, "Old", "New")
    for text in ("Old", "=New", "Old=", "Old=Old", "a-b=New", "guard:=New"):
        with pytest.raises(RenameError, match="write Old=New"):
            parse_rename(text)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_use_in_the_diagram_and_nothing_else(newline: str) -> None:
    text = TEXT.replace("\n", newline)
    renamed = rename_in_diagram(text, diagram(text), Rename("action", "Load", "Fetch"))
    assert renamed == text.replace("/ Load(", "/ Fetch(").replace("::Load", "::Fetch")


def test_a_rename_is_likely_where_one_name_takes_all_places_of_another() -> None:
    old = diagram(TEXT)
    assert list(likely_renames(old, diagram(TEXT.replace("IsLate", "IsSlow")))) == [Rename("guard", "IsLate", "IsSlow")]
    assert list(likely_renames(old, old)) == []
    moved = TEXT.replace("IsReady and not IsLate", "not IsReady").replace(
        "A --> [*]\n", "A --> [*]: IsSlow\nA --> [*]\n"
    )
    assert list(likely_renames(old, diagram(moved))) == []
    two = TEXT.replace("IsLate", "IsSlow").replace("IsReady", "IsThere")
    assert list(likely_renames(old, diagram(two))) == []


USER = b'''from flyball.fsm.run import guard


@guard('IsLate')  # keep me
def is_late(m, *params: str) -> bool:
    """is_late, IsLate"""
    return bool(params)


CHECKS = [is_late, other.is_late]
TEXT = "IsLate"
'''


def test_marker_function_and_references_follow_and_the_rest_stays() -> None:
    after = rename_in_file(USER, "guards.py", GUARDS, [Rename("guard", "IsLate", "IsSlow")])
    assert after == USER.replace(b"@guard('IsLate')", b'@guard("IsSlow")').replace(
        b"def is_late", b"def is_slow"
    ).replace(b"[is_late,", b"[is_slow,")


def test_a_function_whose_name_means_something_else_too_keeps_it() -> None:
    raw = USER + b"\n\ndef f(is_late): return is_late\n"
    after = rename_in_file(raw, "guards.py", GUARDS, [Rename("guard", "IsLate", "IsSlow")])
    assert after == raw.replace(b"@guard('IsLate')", b'@guard("IsSlow")')


def test_a_name_that_is_there_already_is_not_taken() -> None:
    raw = USER + b'\n\n@guard("IsSlow")\ndef is_slow(m): return True\n'
    with pytest.raises(RenameError, match="IsSlow is there already"):
        rename_in_file(raw, "guards.py", GUARDS, [Rename("guard", "IsLate", "IsSlow")])
