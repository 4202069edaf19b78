"""The rules of the incremental update, one by one."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest

from flyball.fsm.compile import compile_text
from flyball.fsm.generate.merge import Merged, merge
from flyball.fsm.generate.newfiles import FileMaker
from flyball.fsm.generate.sourcetext import SourceProblem
from flyball.fsm.generate.stubs import FunctionShape, TestShape
from flyball.fsm.generate.wanted import Wanted, wanted

HEAD = FileMaker("app.statemachine").functions_head("action", empty=False)
ACTIONS = FunctionShape("action")


def actions(*names: str) -> list[Wanted]:
    """What a diagram wants that uses these actions, each in a state of its own."""
    lines = ["title T", "[*] --> S0"]
    for place, name in enumerate(names):
        lines += [f"S{place}: do / {name}", f"S{place} --> S{place + 1}"]
    lines += [f"S{len(names)} --> [*]"]
    diagram, findings = compile_text("\n".join(lines), "t.puml")
    assert diagram is not None, findings
    return wanted(diagram, "action")


def update(text: str | bytes, names: Iterable[str], *, prune: bool = False) -> Merged:
    raw = text if isinstance(text, bytes) else text.encode()
    return merge(raw, "actions.py", ACTIONS, actions(*names), prune=prune)


def fresh(*names: str) -> str:
    return update(HEAD, names).raw.decode()


IMPLEMENTED = '''
@action("Load")
async def load(m: Machine) -> None:
    """Load it."""
    m.state.error = None
'''


def test_a_missing_action_is_appended_behind_two_blank_lines() -> None:
    before = fresh("Load")
    merged = update(before, ["Load", "Save"])
    assert merged.added == ["Save"]
    assert merged.functions == {"Load": "load", "Save": "save"}
    assert merged.raw.decode() == before + (
        '\n\n@action("Save")\nasync def save(m: Machine, *params: str) -> None:\n'
        '    """Called in S1."""\n    # TODO: implement\n'
    )


def test_adding_and_removing_gives_the_same_bytes_again() -> None:
    before = fresh("Load")
    assert update(update(before, ["Load", "Save"]).raw, ["Load"]).raw.decode() == before


def test_an_implemented_action_is_never_touched() -> None:
    text = HEAD + "\n" + IMPLEMENTED
    assert update(text, ["Load"]).raw.decode() == text


def test_the_name_of_the_function_is_free() -> None:
    text = HEAD + "\n" + IMPLEMENTED.replace("def load", "def fetch_everything")
    merged = update(text, ["Load"])
    assert merged.raw.decode() == text
    assert merged.functions == {"Load": "fetch_everything"}


def test_an_untouched_stub_gets_a_new_docstring_and_nothing_else() -> None:
    before = fresh("Load", "Save")
    merged = update(before, ["Save", "Load"])
    assert sorted(merged.updated) == ["Load", "Save"]
    assert merged.raw.decode() == before.replace("S0", "S9").replace("S1", "S0").replace("S9", "S1")


def test_an_untouched_orphan_goes_with_the_comments_attached_to_it() -> None:
    before = fresh("Load", "Save")
    with_comment = before.replace('@action("Save")', '# about saving\n# +fsm:action:Save\n@action("Save")')
    merged = update(with_comment, ["Load"])
    assert merged.removed == ["Save"]
    assert merged.raw.decode() == fresh("Load")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    # TODO: implement\n", "    m.clear_error()\n"),
        ("    # TODO: implement\n", "    # TODO: implement\n    # look at issue 12\n"),
        ("    # TODO: implement\n", "    # first get the lock\n"),
        ("    # TODO: implement\n", ""),
        ('"""Called in S1."""', '"""My own words."""'),
        ('@action("Save")', '@action("Save", thread=True)'),
        ('@action("Save")', '@timed\n@action("Save")'),
        ("async def save(m: Machine, *params: str)", "async def save(m: Machine, after: str)"),
        ("async def save", "def save"),
        ("async def save", "async def save_it"),
    ],
)
def test_a_touched_orphan_is_kept_and_reported(old: str, new: str) -> None:
    before = fresh("Load", "Save")
    head, found, tail = before.rpartition(old)
    assert found
    text = head + new + tail
    merged = update(text, ["Load"])
    assert merged.raw.decode() == text
    assert merged.orphans == ["Save"]
    [finding] = merged.findings
    assert (finding.code, finding.subject, finding.severity) == ("W-orphan", "Save", "warning")
    assert finding.source_line == text.split("\n")[finding.line - 1]
    assert "Save" in finding.source_line


def test_prune_removes_an_implemented_orphan() -> None:
    text = fresh("Save") + "\n" + IMPLEMENTED
    merged = update(text, ["Save"], prune=True)
    assert merged.removed == ["Load"]
    assert merged.raw.decode() == fresh("Save") or merged.raw.decode() == fresh("Save") + "\n"


def test_an_untouched_orphan_that_other_code_calls_is_kept() -> None:
    text = fresh("Load", "Save") + "\n\nALSO = save\n"
    merged = update(text, ["Load"])
    assert merged.raw.decode() == text
    assert merged.orphans == ["Save"]


def test_the_same_marker_twice_is_an_error_with_both_places() -> None:
    text = HEAD + "\n" + IMPLEMENTED + "\n" + IMPLEMENTED
    [finding] = update(text, ["Load"]).findings
    assert (finding.code, finding.severity) == ("E-duplicate-marker", "error")
    assert "line 14" in finding.message
    assert "line 20" in finding.message


def test_an_unmarked_function_of_the_default_name_is_not_the_implementation() -> None:
    text = HEAD + "\n\ndef load() -> int:\n    return 1\n"
    merged = update(text, ["Load"])
    assert merged.functions == {"Load": "load_2"}
    assert merged.raw.decode().startswith(text)
    [finding] = merged.findings
    assert (finding.code, finding.line) == ("W-name-taken", 13)


def test_a_marker_that_is_no_literal_is_reported() -> None:
    text = HEAD + '\n\nNAME = "Load"\n\n\n@action(NAME)\nasync def load(m: Machine) -> None: ...\n'
    merged = update(text, ["Load"])
    assert {one.code for one in merged.findings} == {"W-marker", "W-name-taken"}


def test_a_marker_inside_a_function_is_reported_and_not_used() -> None:
    text = HEAD + '\n\ndef outer():\n    @action("Load")\n    def load(m): ...\n'
    merged = update(text, ["Load"])
    assert merged.added == ["Load"]
    assert [one.code for one in merged.findings] == ["W-marker"]


def test_a_marker_inside_an_if_of_the_module_is_used() -> None:
    text = HEAD + '\n\nif True:\n    @action("Load")\n    def load(m): ...\n'
    merged = update(text, ["Load"])
    assert merged.raw.decode() == text
    assert merged.functions == {"Load": "load"}


@pytest.mark.parametrize(
    ("imports", "marker"),
    [
        ("from flyball.fsm.run import action as act\n", "@act("),
        ("from flyball.fsm import run\n", "@run.action("),
        ("from flyball.fsm import run as fsm\n", "@fsm.action("),
        ("import flyball.fsm.run as engine\n", "@engine.action("),
    ],
)
def test_the_file_s_own_way_of_calling_the_decorator_is_found_and_used(imports: str, marker: str) -> None:
    text = "from __future__ import annotations\n" + imports + IMPLEMENTED.replace("@action(", marker)
    merged = update(text, ["Load", "Save"])
    assert merged.functions == {"Load": "load", "Save": "save"}
    assert f'{marker}"Save")' in merged.raw.decode()


def test_a_marker_of_another_library_is_not_ours() -> None:
    text = HEAD.replace("flyball.fsm.run", "other.tools") + "\n" + IMPLEMENTED
    merged = update(text, ["Load"])
    assert merged.functions == {"Load": "load_2"}
    assert "from flyball.fsm.run import action as fsm_action\n" in merged.raw.decode()


def test_missing_imports_come_with_the_stub() -> None:
    merged = update('"""Mine."""\nimport os\n\nX = os.sep\n', ["Load"])
    assert merged.raw.decode() == (
        '"""Mine."""\nimport os\nfrom typing import TYPE_CHECKING\nfrom flyball.fsm.run import action\n\n'
        "if TYPE_CHECKING:\n    from .zz_generated_statemachine import Machine\n\nX = os.sep\n"
        '\n\n@action("Load")\nasync def load(m: "Machine", *params: str) -> None:\n'
        '    """Called in S0."""\n    # TODO: implement\n'
    )


def test_an_empty_file_gets_imports_and_stubs() -> None:
    merged = update("", ["Load"])
    compile(merged.raw, "actions.py", "exec")
    assert merged.functions == {"Load": "load"}


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_line_ends_are_kept(ending: str) -> None:
    before = fresh("Load", "Save").replace("\n", ending)
    merged = update(before, ["Load", "Print"])
    assert merged.raw.decode() == fresh("Load", "Print").replace("\n", ending)


def test_a_file_without_a_newline_at_its_end() -> None:
    text = (HEAD + "\n" + IMPLEMENTED).rstrip("\n")
    merged = update(text, ["Load", "Save"])
    assert merged.raw.decode().startswith(text + '\n\n\n@action("Save")\n')


def test_byte_order_mark_and_encoding_are_kept() -> None:
    text = b"\xef\xbb\xbf" + HEAD.encode() + b"# \xc3\xa9\n"
    assert update(text, ["Load"]).raw.startswith(text)
    latin = b"# -*- coding: latin-1 -*-\n" + HEAD.encode() + b'X = "\xe9"\n'
    merged = update(latin, ["Größe"])
    assert merged.raw.startswith(latin)
    assert "async def größe(".encode("latin-1") in merged.raw


def test_a_name_that_the_file_s_encoding_lacks_is_an_error() -> None:
    with pytest.raises(SourceProblem, match="written in iso-8859-1, which has no"):
        update(b"# coding: latin-1\n" + HEAD.encode(), ["Łoad"])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"def (\n", 1),
        (b"x = 1\n\nreturn = 2\n", 3),
        (b"a\x00b\n", 1),
        (b"# coding: nonsense\n", 1),
        (b"x = 1\ny = '\xff'\n", 2),
        (b"x = (" * 300, 1),
    ],
)
def test_a_file_that_cannot_be_parsed_raises_with_its_line(text: bytes, line: int) -> None:
    with pytest.raises(SourceProblem) as caught:
        update(text, ["Load"])
    assert caught.value.line == line
    assert caught.value.file == "actions.py"


def test_text_that_looks_like_code_is_text() -> None:
    text = HEAD + '\n\nTEXT = """\n@action("Load")\nasync def load(m): ...\n# about saving\n"""\n'
    merged = update(text, ["Load"])
    assert merged.added == ["Load"]
    assert merged.raw.decode().startswith(text)


def test_tests_follow_the_same_rules_and_cases_are_never_deleted() -> None:
    def shape_of(*names: str) -> TestShape:
        return TestShape("action", "app.zz", frozenset((one.name, one.params[0]) for one in actions(*names)))

    head = FileMaker("app.statemachine").tests_head("action", empty=False).encode()
    shape = shape_of("Load(5)", "Save")
    made = merge(head, "test_actions.py", shape, actions("Load(5)", "Save")).raw
    assert b'@covers_action("Load")\n@pytest.mark.parametrize("params", [["5"]])\ndef test_load(' in made

    assert merge(made, "test_actions.py", shape, actions("Save")).removed == ["Load"]
    cases = made.replace(b'[["5"]]', b'[["5"], ["6"]]')
    merged = merge(cases, "test_actions.py", shape, actions("Save"))
    assert merged.orphans == ["Load"]
    assert merged.raw == cases
    other = made.replace(b'[["5"]]', b'[["6"]]')
    assert merge(other, "test_actions.py", shape, actions("Save")).raw == other


def test_ten_thousand_lines_are_quick() -> None:
    text = fresh("Load") + "".join(f"\n\ndef f{n}(x: int) -> int:\n    y = x\n    return y\n" for n in range(2000))
    started = time.process_time()
    update(text, ["Load", "Save"])
    assert time.process_time() - started < 3
