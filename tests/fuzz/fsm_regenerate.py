"""Random edits of user files, then random edits of the diagram: user text must come through the update byte for byte.

::

    python -m tests.fuzz.fsm_regenerate --count 100000 [--seed N]

A case makes the files of a random diagram, edits them as people do (and as they should not), changes the diagram, and
merges. Every 50th case does so with a whole package on the disk. A case that breaks a promise is printed with the seed
that makes it again. `run` is what the short run in the unit tests calls.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from flyball.fsm.compile import compile_text
from flyball.fsm.generate import Options, SourceProblem, prepare
from flyball.fsm.generate.imports import resolve
from flyball.fsm.generate.marked import Bindings, scan
from flyball.fsm.generate.merge import merge
from flyball.fsm.generate.names import Kind
from flyball.fsm.generate.newfiles import FileMaker
from flyball.fsm.generate.sourcetext import SourceFile
from flyball.fsm.generate.stubs import FileShape, FunctionShape, TestShape
from flyball.fsm.generate.wanted import wanted
from flyball.fsm.model import Diagram

PACKAGE = "app.statemachine.zz_generated_statemachine"
NAMES = ("Load", "Save", "CheckAll", "SetHTTPCode", "Print", "Class", "Größe", "Do", "Retry", "Clean2Up", "Import")
GUARDS = ("IsError", "IsReady", "HasItems", "IsHTTPError", "Not2Late", "Lambda", "IsÄlter", "Is")
PARAMS = ("", "", "(5)", "(a, b)", '("x y")', "(it's)", "(C:\\dir)", "(ä)")
BOM = b"\xef\xbb\xbf"
_LINES = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


# -- diagrams ----------------------------------------------------------------------------------------------------------


def random_diagram(rng: random.Random) -> str:
    """A sound diagram: every state has a default to the next one, the last one ends."""
    count = rng.randint(1, 5)
    lines = [f"title {rng.choice(('Machine', 'Traffic Light', 'Order', 'State'))}", "[*] --> S1"]
    for number in range(1, count + 1):
        lines.extend(_state(rng, f"S{number}", f"S{number + 1}" if number < count else "[*]"))
    if rng.random() < 0.3:
        lines += ["state S1 {", "  [*] --> In", *(f"  {one}" for one in _state(rng, "In", "[*]")), "}"]
        lines = [line for line in lines if not line.startswith("S1: do")]
    return "\n".join(lines) + "\n"


def _state(rng: random.Random, name: str, following: str) -> list[str]:
    slots = ("do", "do", "do", "entry", "exit")
    lines = [f"{name}: {rng.choice(slots)} / {rng.choice(NAMES)}{rng.choice(PARAMS)}" for _ in range(rng.randint(0, 2))]
    for _ in range(rng.randint(0, 2)):
        action = f"::{rng.choice(NAMES)}" if rng.random() < 0.3 else ""
        lines.append(f"{name} --> [*]: {rng.choice(GUARDS)}{rng.choice(PARAMS)}{action}")
    return [*lines, f"{name} --> {following}"]


def diagram_of(text: str) -> Diagram:
    """The diagram; the generator of diagrams makes no errors."""
    diagram, findings = compile_text(text, "random.puml")
    assert diagram is not None, findings
    assert all(one.severity != "error" for one in findings), findings
    return diagram


# -- edits of a file ---------------------------------------------------------------------------------------------------


class Text:
    """A file that is being edited: lines with their ends, and the marks that the edits left."""

    def __init__(self, text: str, rng: random.Random) -> None:
        self.lines = text.split("\n")
        self.rng = rng
        self.marks = 0

    def mark(self) -> str:
        """A word that is in the file once."""
        self.marks += 1
        return f"mark{self.marks}_"

    def place(self) -> int:
        """Some line."""
        return self.rng.randrange(len(self.lines) + 1)

    def find(self, start: str) -> int | None:
        """One of the lines that start like this."""
        found = [number for number, line in enumerate(self.lines) if line.startswith(start)]
        return self.rng.choice(found) if found else None

    def gap(self) -> int:
        """A place between top level statements."""
        found = [n for n, line in enumerate(self.lines) if line.startswith("@") and (n == 0 or not self.lines[n - 1])]
        return self.rng.choice([*found, len(self.lines)])


def comment(text: Text) -> None:
    """A comment anywhere."""
    indent = text.rng.choice(["", "", "    ", "        ", "\t"])
    text.lines.insert(text.place(), f"{indent}# {text.mark()} note ü \u2028 {text.rng.choice(['', 'TODO: implement'])}")


def trailing_comment(text: Text) -> None:
    """A comment behind a line."""
    number = text.place() - 1
    if text.lines and text.lines[number].strip():
        text.lines[number] += f"  # {text.mark()}"


def implement(text: Text) -> None:
    """Put a body in the place of the TODO, or before or behind it."""
    found = [number for number, line in enumerate(text.lines) if line.strip() == "# TODO: implement"]
    if found:
        number = text.rng.choice(found)
        body = f'    m.state.error = ValueError("{text.mark()}")'
        place = text.rng.randint(0, 2)
        text.lines[number : number + (place == 1)] = [body] if place != 2 else [text.lines[number], body]


def helper(text: Text) -> None:
    """A function, class or statement between the functions."""
    mark = text.mark()
    block = text.rng.choice(
        [
            [f"def {mark}(x: int) -> int:", "    def inner() -> int:", "        return x", "    return inner()"],
            [f"class {mark}:", '    """@action("Load")"""', "", "    def load(self) -> None: ..."],
            [f'{mark} = """', '@action("Load")', "# text", "async def load(m):", '"""'],
            [f"{mark} = [", "    1,", "]; other = 2"],
            [f"if {mark!r}:", '    @action("Save")', f"    def {mark}(m): return 1"],
            [f"{mark} = 1 + \\", "    2"],
            [f"def load(): return {mark!r}"],
            ["try:", "    import json", "except ImportError:", f"    {mark} = 1"],
            [f"async def {mark}():", "    pass", "    # end", "", "    # really"],
        ]
    )
    place = text.gap()
    text.lines[place:place] = [*block, "", ""]


def nested(text: Text) -> None:
    """A nested function with a marker, where no machine can reach it."""
    place = text.gap()
    text.lines[place:place] = [f"def {text.mark()}():", '    @action("Save")', "    def save(m): pass", "", ""]


def decorate(text: Text) -> None:
    """One more decorator, above or below."""
    number = text.find("@")
    if number is not None:
        text.lines.insert(number + text.rng.randint(0, 1), f"@timed({text.mark()!r})")


def option(text: Text) -> None:
    """An option of the marker."""
    number = text.find("@action(")
    if number is not None and text.lines[number].endswith(")"):
        text.lines[number] = text.lines[number][:-1] + text.rng.choice([", thread=True)", ", fails=False)"])


def rename(text: Text) -> None:
    """Another name for a function; the marker stays."""
    number = text.find("async def ") or text.find("def ")
    if number is not None:
        text.lines[number] = re.sub(r"def \w+", f"def {text.mark()}", text.lines[number], count=1)


def documentation(text: Text) -> None:
    """Another docstring."""
    number = text.find('    """')
    if number is not None and text.lines[number].endswith('"""'):
        text.lines[number] = f'    """{text.mark()} my own words."""'


def reorder(text: Text) -> None:
    """Exchange two blocks."""
    blocks = "\n".join(text.lines).split("\n\n\n")
    if len(blocks) > 2:
        one, two = text.rng.sample(range(1, len(blocks)), 2)
        blocks[one], blocks[two] = blocks[two], blocks[one]
        text.lines = "\n\n\n".join(blocks).split("\n")


def remove(text: Text) -> None:
    """Take a block or a line out: a stub, the imports."""
    if text.rng.random() < 0.5:
        blocks = "\n".join(text.lines).split("\n\n\n")
        del blocks[text.rng.randrange(len(blocks))]
        text.lines = "\n\n\n".join(blocks).split("\n")
    elif text.lines:
        del text.lines[text.rng.randrange(len(text.lines))]


def twice(text: Text) -> None:
    """The same block twice."""
    blocks = "\n".join(text.lines).split("\n\n\n")
    blocks.append(text.rng.choice(blocks))
    text.lines = "\n\n\n".join(blocks).split("\n")


def break_it(text: Text) -> None:
    """No Python any more."""
    text.lines.insert(text.place(), text.rng.choice(["def (", ")", "   x = = 1", '"""', "a\x00b", "return return"]))


EDITS: tuple[Callable[[Text], None], ...] = (
    *(comment, comment, comment, trailing_comment, implement, implement, helper, helper, nested, decorate, option),
    *(rename, documentation, reorder, reorder, remove, twice, break_it),
)


def edited(raw: str, rng: random.Random) -> bytes:
    """Edit, and store in one of the ways in which files are stored."""
    text = Text(raw, rng)
    for _ in range(rng.randint(0, 6)):
        rng.choice(EDITS)(text)
    whole = "\n".join(text.lines)
    if rng.random() < 0.15:
        whole = whole.replace("    ", "\t")
    if rng.random() < 0.2:
        whole = whole.rstrip("\n")
    if rng.random() < 0.1:
        whole += rng.choice(["\n\n\n\n", "   ", "\n    \n", "\x0c\n", "# end"])
    ends = rng.random()
    if ends < 0.2:
        whole = whole.replace("\n", "\r\n")
    elif ends < 0.25:
        whole = whole.replace("\n", "\r")
    elif ends < 0.3:
        whole = "".join(line + rng.choice(["\n", "\r\n"]) for line in whole.split("\n"))
    start = BOM if rng.random() < 0.05 else b""
    return start + whole.encode("utf-8")


# -- one case ----------------------------------------------------------------------------------------------------------


def case(rng: random.Random) -> None:
    """One file: made, edited, merged with another diagram; raises AssertionError when a promise is broken."""
    kind: Kind = rng.choice(("action", "guard"))
    old, new = diagram_of(random_diagram(rng)), diagram_of(random_diagram(rng))
    maker = FileMaker("app.statemachine")
    if rng.random() < 0.7:
        shape: FileShape = FunctionShape(kind)
        head = maker.functions_head(kind, empty=not wanted(old, kind))
    else:
        known = {(one.name, one.params[0]) for diagram in (old, new) for one in wanted(diagram, kind)}
        shape = TestShape(kind, PACKAGE, frozenset(known))
        head = maker.tests_head(kind, empty=not wanted(old, kind))
    made = merge(head.encode(), "made.py", shape, wanted(old, kind)).raw.decode()
    raw = edited(made, rng)
    hold(raw, shape, old, new, prune=False)


def hold(raw: bytes, shape: FileShape, old: Diagram, new: Diagram, *, prune: bool) -> None:
    """Merge and look at every promise."""
    kind = shape.kind
    try:
        SourceFile.parse(raw, "user.py")
    except SourceProblem:
        _raises(raw, shape, new)
        return
    merged = merge(raw, "user.py", shape, wanted(new, kind), prune=prune)
    if any(one.severity == "error" for one in merged.findings):
        return
    _lines_survive(raw, merged.raw, shape, old, new)
    names = {one.name for one in wanted(new, kind)}
    after = SourceFile.parse(merged.raw, "user.py")
    marked = scan(after.tree, shape.words, Bindings.of(after.tree)).marked
    assert names <= {one.name for one in marked}, "a wanted function is missing"
    assert set(merged.functions) == names
    again = merge(merged.raw, "user.py", shape, wanted(new, kind), prune=prune)
    assert again.raw == merged.raw, "a second merge changes something"


def _raises(raw: bytes, shape: FileShape, new: Diagram) -> None:
    line = 0
    try:
        merge(raw, "user.py", shape, wanted(new, shape.kind))
    except SourceProblem as problem:
        line = problem.line
    assert line >= 1, "a file that cannot be parsed was merged, or the error names no line"


def _lines_survive(before: bytes, after: bytes, shape: FileShape, old: Diagram, new: Diagram) -> None:
    """Every line outside of untouched stubs is still there, in order; blank lines do not count."""
    kept = [line for line in _outside_stubs(before.removeprefix(BOM), shape, old, new) if line.strip()]
    assert after.startswith(BOM) == before.startswith(BOM)
    there = iter(_LINES.findall(after.removeprefix(BOM)))
    for line in kept:
        if not any(line == other or (line == other.rstrip(b"\r\n")) for other in there):
            raise AssertionError(f"a line is gone or has moved: {line!r}")


def _outside_stubs(raw: bytes, shape: FileShape, old: Diagram, new: Diagram) -> list[bytes]:
    """The lines of a file without the stubs that stand there as generated, and the comments on them."""
    lines = [line for line in _LINES.findall(raw) if line]
    plain = [line.rstrip().replace(b"\t", b"    ") for line in lines]
    gone: set[int] = set()
    for stub in _stub_texts(shape, old) | _stub_texts(shape, new):
        wanted_lines = stub.encode().rstrip(b"\n").split(b"\n")
        for start in range(len(plain) - len(wanted_lines) + 1):
            if plain[start : start + len(wanted_lines)] == wanted_lines:
                gone.update(range(start, start + len(wanted_lines)))
                above = start - 1
                while above >= 0 and plain[above].startswith(b"#"):
                    gone.add(above)
                    above -= 1
    return [line for number, line in enumerate(lines) if number not in gone]


def _stub_texts(shape: FileShape, diagram: Diagram) -> set[str]:
    found: set[str] = set()
    for future in (True, False):
        references = resolve(shape.requirements, Bindings(future_annotations=future))
        for one in wanted(diagram, shape.kind):
            found.add(shape.render(one, shape.default_name(one.name), references))
            found.add(shape.render(one, f"{shape.default_name(one.name).rstrip('_')}_2", references))
    return found


def package_case(rng: random.Random, folder: Path) -> None:
    """A whole package on the disk: all of it is updated, or nothing."""
    source = folder / "machine.puml"
    source.write_text(random_diagram(rng), "utf-8")
    options = Options(source, folder / "src" / "app", here=folder, propose_renames=False)
    prepare(options).write()
    before = _snapshot(folder)
    for path in sorted(folder.rglob("*.py")):
        if path.name in {"actions.py", "guards.py", "test_actions.py", "test_guards.py"} and rng.random() < 0.5:
            path.write_bytes(edited(path.read_text("utf-8"), rng))
    source.write_text(random_diagram(rng), "utf-8")
    before = _snapshot(folder)
    plan = prepare(options)
    if plan.ok:
        plan.write()
        times = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
        again = prepare(options)
        assert again.ok, again.findings
        assert not again.changed, [str(one.path) for one in again.changed]
        again.write()
        assert times == {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    else:
        assert _snapshot(folder) == before
        assert all(one.line >= 1 and one.file for one in plan.findings)


def _snapshot(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def run(count: int, seed: int = 0, *, whole: int = 50) -> None:
    """Run cases; every `whole`-th one with a package on the disk."""
    for number in range(seed, seed + count):
        rng = random.Random(number)
        try:
            if whole and number % whole == 0:
                with tempfile.TemporaryDirectory() as folder:
                    package_case(rng, Path(folder))
            else:
                case(rng)
        except Exception as problem:
            raise AssertionError(f"seed {number}: {problem}") from problem


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    started = time.monotonic()
    run(given.count, given.seed)
    print(f"{given.count} cases in {time.monotonic() - started:.0f} s: no user text was lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
