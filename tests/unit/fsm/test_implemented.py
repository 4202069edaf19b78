"""A diagram beside its package: stubs, missing functions, signatures, actions that never fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from flyball.cli.fsm_lint import command

DIAGRAM = """\
title T
[*] --> A
A: do / Load(a, b)
A: do / Save
A --> [*]: IsReady(x) :: Note
A --> [*]
"""

ACTIONS = '''\
from flyball.fsm.run import action


@action("Load")
async def load(m: object, first: str, second: str = "") -> None:
    print(first, second)


@action("Save", fails=False)
def save(m: object, *params: str) -> None:
    """Called in A."""
    # TODO: implement
'''

GUARDS = """\
from flyball.fsm.run import guard


@guard("IsReady")
def is_ready(m: object) -> bool:
    return True
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "t.puml").write_text(DIAGRAM)
    (tmp_path / "actions.py").write_text(ACTIONS)
    (tmp_path / "guards.py").write_text(GUARDS)
    return tmp_path


def _lint(package: Path, *more: str) -> tuple[int, list[str]]:
    result = CliRunner().invoke(command, [str(package / "t.puml"), "--package", str(package), *more])
    places = [line.replace(str(package), "") for line in result.stdout.splitlines() if line.startswith("/")]
    return result.exit_code, places


def test_what_the_functions_lack_is_told_at_its_place(package: Path) -> None:
    code, told = _lint(package)
    assert code == 1
    assert told == [
        "/actions.py:10:1: I-stub: the action Save is not implemented",
        "/guards.py:5:1: E-signature: is_ready cannot take the 1 parameters of IsReady(x) in line 5 of the diagram",
        "/t.puml:5:26: I-missing: the action Note has no function in actions.py",
    ]


def test_a_state_with_an_action_that_never_fails_needs_no_handler(package: Path) -> None:
    assert not [one for one in _lint(package)[1] if "W-unhandled-error" in one]
    (package / "actions.py").write_text(ACTIONS.replace(", fails=False", ""))
    assert [one for one in _lint(package)[1] if "W-unhandled-error" in one] != []


def test_a_package_that_is_whole_has_nothing_to_report(package: Path) -> None:
    note = '\n\n@action("Note")\ndef note(m: object) -> None:\n    print()\n'
    (package / "actions.py").write_text(ACTIONS.replace("    # TODO: implement\n", "    print()\n") + note)
    (package / "guards.py").write_text(GUARDS.replace("m: object", "m: object, *params: str"))
    assert _lint(package) == (0, [])


def test_an_empty_package_is_not_judged(package: Path) -> None:
    (package / "actions.py").unlink()
    (package / "guards.py").unlink()
    assert _lint(package, "-q")[1] == [
        "/t.puml:3:9: W-unhandled-error: nothing reacts when Load, Save of A fails",
    ]
