"""The stubs: what a new function looks like in each of the merged files.

A `FileShape` says everything that differs between actions, guards and their tests, so that the merger needs to know
none of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from flyball.fsm.generate.imports import References, Requirement
from flyball.fsm.generate.layout import call, docstring, lists, quoted, render
from flyball.fsm.generate.marked import Function
from flyball.fsm.generate.names import Kind, default_name, test_name
from flyball.fsm.generate.wanted import Use, Wanted

__all__ = ["TODO", "FileShape", "FunctionShape", "TestShape"]

TODO = "# TODO: implement"
RUN = "flyball.fsm.run"
TESTING = "flyball.fsm.testing"
IS_ERROR = "IsError"
PYTEST = Requirement("pytest")

_PLACE = r"[^\s,.]+"
_PLACES = rf"in {_PLACE}(?:, {_PLACE})*"
_ARROWS = rf"from {_PLACE} to {_PLACE}(?:, from {_PLACE} to {_PLACE})*"
_USES = re.compile(rf"(?:Used in \d+ places\. )?(?:Called|Asked) (?:{_PLACES}, and {_ARROWS}|{_PLACES}|{_ARROWS})\.")


class FileShape:
    """What is particular to one of the merged files."""

    kind: Kind
    words: Mapping[str, Kind]
    """The decorators that are markers here."""
    requirements: tuple[Requirement, ...]

    def default_name(self, name: str) -> str:
        """What a new stub's function is called if nothing else has the name."""
        raise NotImplementedError

    def render(self, wanted: Wanted, function: str, references: References) -> str:
        """The whole stub, lines ended by a line feed."""
        raise NotImplementedError

    def docstring(self, wanted: Wanted) -> str | None:
        """The literal of the docstring, where it follows the diagram; None where it never changes."""
        raise NotImplementedError

    def is_stub(self, name: str, node: Function, comments: list[str]) -> bool:
        """Whether a function with one plain marker is still what was generated; `comments` are those inside it."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class FunctionShape(FileShape):
    """actions.py and guards.py."""

    kind: Kind
    words: Mapping[str, Kind] = field(init=False)
    requirements: tuple[Requirement, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", {self.kind: self.kind})
        object.__setattr__(self, "requirements", (self.marker, self.machine))

    @property
    def marker(self) -> Requirement:
        """The decorator."""
        return Requirement(RUN, self.kind)

    @property
    def machine(self) -> Requirement:
        """The fixed alias of the machine's class."""
        return Requirement(".zz_generated_statemachine", "Machine", typing_only=True)

    def is_complete(self, name: str) -> bool:
        """Whether the generated body is a working one: that of the guard IsError."""
        return name == IS_ERROR and self.kind == "guard"

    def default_name(self, name: str) -> str:
        """The snake form."""
        return default_name(self.kind, name)

    def render(self, wanted: Wanted, function: str, references: References) -> str:
        """Marker, signature, docstring, body."""
        marker = _marker(references[self.marker], wanted.name)
        signature = _signature(self.kind, function, references.annotation(self.machine))
        body = _BODIES["is_error" if self.is_complete(wanted.name) else self.kind]
        return f"{marker}\n{signature}\n    {self.docstring(wanted)}\n{body}"

    def docstring(self, wanted: Wanted) -> str:
        """Where the diagram uses it."""
        sentence = _places("Called" if self.kind == "action" else "Asked", wanted.uses)
        if len(sentence) + 10 <= 88:
            return docstring(sentence)
        return docstring(f"Used in {len(wanted.uses)} places.", sentence)

    def is_stub(self, name: str, node: Function, comments: list[str]) -> bool:
        """Code, docstring and comments are the generated ones."""
        is_error = self.is_complete(name)
        if len(node.decorator_list) != 1 or not _is_default(self, name, node.name):
            return False
        if comments != ([] if is_error else [TODO]):
            return False
        documentation, body = _split(node)
        if documentation is None or not _USES.fullmatch(" ".join(documentation.split())):
            return False
        expected = _signature(self.kind, node.name, '"Machine"' if _is_quoted(node) else "Machine")
        code = _BODIES["is_error" if is_error else self.kind].replace(TODO, "").strip()
        return _same(node, body, f"{expected}\n    0\n    {code}\n")


@dataclass(frozen=True, slots=True)
class TestShape(FileShape):
    """test_actions.py and test_guards.py."""

    __test__ = False

    kind: Kind
    package: str
    """The package under test, as it is imported."""
    known: frozenset[tuple[str, tuple[str, ...]]] = frozenset()
    """Names with parameter lists that the present or the last diagram passes: the cases that are not a person's."""
    words: Mapping[str, Kind] = field(init=False)
    requirements: tuple[Requirement, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", {f"covers_{self.kind}": self.kind})
        object.__setattr__(self, "requirements", (PYTEST, self.marker, self.helper, self.machine))

    @property
    def marker(self) -> Requirement:
        """The decorator."""
        return Requirement(TESTING, f"covers_{self.kind}")

    @property
    def helper(self) -> Requirement:
        """What calls the function as the machine does."""
        return Requirement(TESTING, "run_action" if self.kind == "action" else "ask_guard")

    @property
    def machine(self) -> Requirement:
        """The fixed alias of the machine's class."""
        return Requirement(self.package, "Machine", typing_only=True)

    def default_name(self, name: str) -> str:
        """`test_` and the snake form."""
        return test_name(name)

    def render(self, wanted: Wanted, function: str, references: References) -> str:
        """Marker, one case, and the question it asks."""
        parametrize = f"@{references[PYTEST]}.mark.parametrize"
        cases = render(call(parametrize, '"params"', lists(wanted.params[:1])), after=0)
        signature = _test_signature(function, references.annotation(self.machine))
        return (
            f"{_marker(references[self.marker], wanted.name)}\n{cases}\n{signature}\n"
            f"    {_TEST_DOC[self.kind]}\n{self._body(wanted.name, references[self.helper])}"
        )

    def docstring(self, wanted: Wanted) -> None:
        """It never changes."""

    def is_stub(self, name: str, node: Function, comments: list[str]) -> bool:
        """Everything is the generated one, and the one case is the diagram's."""
        if comments or not _is_default(self, name, node.name):
            return False
        documentation, body = _split(node)
        case = _only_case(node)
        if documentation is None or case is None or (name, case) not in self.known:
            return False
        if f'"""{documentation}"""' != _TEST_DOC[self.kind]:
            return False
        expected = _test_signature(node.name, '"Machine"' if _is_quoted(node) else "Machine")
        helper = self.helper.name or ""
        return _same(node, body, f"{expected}\n    0\n{self._body(name, helper)}")

    def _body(self, name: str, helper: str) -> str:
        asked = render(call(helper, "machine", quoted(name), "*params"), 4, after=0)
        if self.kind == "action":
            return f"    {asked}\n    assert machine.state.error is None\n"
        return f"    assert {asked} is False\n"


_TEST_DOC: Mapping[Kind, str] = {
    "action": '"""Call it as the diagram does; write down what it must have done."""',
    "guard": '"""Ask it as the diagram does; arrange `machine.state` and write down the answer."""',
}
_BODIES = {
    "action": f"    {TODO}\n",
    "guard": f"    {TODO}\n    return False\n",
    "is_error": "    return m.has_error(*params)\n",
}


def _marker(word: str, name: str) -> str:
    return render(call(f"@{word}", quoted(name)), after=0)


def _signature(kind: Kind, function: str, machine: str) -> str:
    head = f"async def {function}" if kind == "action" else f"def {function}"
    result = "None" if kind == "action" else "bool"
    line = f"{head}(m: {machine}, *params: str) -> {result}:"
    return line if len(line) <= 88 else f"{head}(\n    m: {machine},\n    *params: str,\n) -> {result}:"


def _test_signature(function: str, machine: str) -> str:
    line = f"def {function}(machine: {machine}, params: list[str]) -> None:"
    return line if len(line) <= 88 else f"def {function}(\n    machine: {machine},\n    params: list[str],\n) -> None:"


def _places(verb: str, uses: tuple[Use, ...]) -> str:
    inside = dict.fromkeys(use.state for use in uses if use.slot != "transition")
    arrows = dict.fromkeys(f"from {use.state} to {use.target}" for use in uses if use.slot == "transition")
    parts = [f"in {', '.join(inside)}"] if inside else []
    parts += [", ".join(arrows)] if arrows else []
    return f"{verb} {', and '.join(parts)}."


def _is_default(shape: FileShape, name: str, function: str) -> bool:
    default = shape.default_name(name)
    return function == default or re.fullmatch(rf"{re.escape(default.rstrip('_'))}_\d+", function) is not None


def _split(node: Function) -> tuple[str | None, list[ast.stmt]]:
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return first.value.value, node.body[1:]
    return None, node.body


def _is_quoted(node: Function) -> bool:
    first = node.args.args[0].annotation if node.args.args else None
    return isinstance(first, ast.Constant)


def _only_case(node: Function) -> tuple[str, ...] | None:
    """The parameters of `@pytest.mark.parametrize("params", [[...]])`, if that is the other decorator."""
    others = [one for one in node.decorator_list if isinstance(one, ast.Call) and len(one.args) == 2]
    if (
        len(others) != 1
        or len(node.decorator_list) != 2
        or not ast.unparse(others[0].func).endswith("mark.parametrize")
    ):
        return None
    try:
        names, cases = (ast.literal_eval(argument) for argument in others[0].args)
    except ValueError:
        return None
    if names != "params" or not isinstance(cases, list) or len(cases) != 1 or others[0].keywords:
        return None
    return tuple(cases[0]) if isinstance(cases[0], list) else None


def _same(node: Function, body: list[ast.stmt], expected: str) -> bool:
    """Whether a function is the expected one, docstring and decorators aside; names that imports bring are free."""
    model = ast.parse(expected).body[0]
    assert isinstance(model, ast.FunctionDef | ast.AsyncFunctionDef)
    if type(node) is not type(model) or node.type_comment or getattr(node, "type_params", []):
        return False
    if _dump_signature(node) != _dump_signature(model):
        return False
    return [ast.dump(one) for one in body] == [ast.dump(one) for one in model.body[1:]]


def _dump_signature(node: Function) -> str:
    first = node.args.args[0].annotation if node.args.args else None
    text = ast.dump(node.args) + (ast.dump(node.returns) if node.returns else "")
    return text.replace(ast.dump(first), "Machine", 1) if isinstance(first, ast.Name | ast.Constant) else text
