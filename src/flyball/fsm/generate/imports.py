"""What a stub needs imported, how the file calls it already, and where a missing import goes."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from flyball.fsm.generate.marked import Bindings
from flyball.fsm.generate.names import free_name
from flyball.fsm.generate.sourcetext import Edit, SourceFile

__all__ = ["References", "Requirement", "import_edits", "import_lines", "resolve"]


@dataclass(frozen=True, slots=True)
class Requirement:
    """`from module import name`, or `import module` without a name; `typing_only` for annotations."""

    module: str
    name: str | None = None
    typing_only: bool = False

    @property
    def word(self) -> str:
        """The name that the import binds if it is free."""
        return self.name or self.module.partition(".")[0]


@dataclass(slots=True)
class References:
    """How a file calls what its stubs need, and which imports it still lacks."""

    words: dict[Requirement, str] = field(default_factory=dict)
    missing: dict[Requirement, str] = field(default_factory=dict)
    """Requirement and the name that its import is to bind."""
    quoted: bool = False
    """Whether names that are imported for annotations only must stand in quotes."""

    def __getitem__(self, requirement: Requirement) -> str:
        return self.words[requirement]

    def annotation(self, requirement: Requirement) -> str:
        """The reference as an annotation."""
        word = self.words[requirement]
        return f'"{word}"' if self.quoted else word


def resolve(requirements: Iterable[Requirement], bindings: Bindings) -> References:
    """Look each requirement up among the names of a file; names that mean something else there are not reused."""
    found = References(quoted=not bindings.future_annotations)
    taken = set(bindings.names)
    for requirement in requirements:
        word = bindings.name_for(requirement.module, requirement.name)
        if word is None:
            word = requirement.word if requirement.word not in taken else _alias(requirement, taken)
            taken.add(word)
            found.missing[requirement] = word
        found.words[requirement] = word
    return found


def _alias(requirement: Requirement, taken: Collection[str]) -> str:
    return free_name(f"fsm_{requirement.word}" if requirement.word.islower() else f"Fsm{requirement.word}", taken)


def import_lines(references: References, bindings: Bindings) -> list[str]:
    """The lines that import what is missing, without line ends; block for type checkers last."""
    plain = [_line(one, word) for one, word in references.missing.items() if not one.typing_only]
    typing_only = [_line(one, word) for one, word in references.missing.items() if one.typing_only]
    if not typing_only:
        return plain
    guard = bindings.name_for("typing", "TYPE_CHECKING")
    if guard is None:
        alias = "TYPE_CHECKING" if "TYPE_CHECKING" not in bindings.names else "FSM_TYPE_CHECKING"
        guard = alias
        plain.insert(0, _line(Requirement("typing", "TYPE_CHECKING"), alias))
    return [*plain, "", f"if {guard}:", *(f"    {line}" for line in typing_only)]


def _line(requirement: Requirement, word: str) -> str:
    alias = "" if word == requirement.word else f" as {word}"
    if requirement.name is None:
        return f"import {requirement.module}{alias}"
    return f"from {requirement.module} import {requirement.name}{alias}"


def import_edits(source: SourceFile, references: References, bindings: Bindings) -> list[Edit]:
    """The insertion of the missing imports, behind the imports that open the file."""
    lines = import_lines(references, bindings)
    if not lines:
        return []
    leading = _leading(source.tree)
    newline = source.newline
    text = newline.join(lines)
    if leading is None:
        return [_at_top(source, text)]
    place = _end_of_line(source, leading)
    before = "" if _ends_with_newline(source, place) else newline
    if isinstance(leading, ast.If) or _is_docstring(leading):
        before += newline
    return [Edit(place, place, f"{before}{text}{newline}")]


def _leading(tree: ast.Module) -> ast.stmt | None:
    """The last statement of the opening block of docstring and imports."""
    last: ast.stmt | None = None
    for place, statement in enumerate(tree.body):
        if isinstance(statement, ast.Import | ast.ImportFrom) or _guards_imports(statement):
            last = statement
        elif not (place == 0 and _is_docstring(statement)):
            break
        else:
            last = statement
    return last


def _guards_imports(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If | ast.Try) and all(
        isinstance(child, ast.Import | ast.ImportFrom) for child in statement.body
    )


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _at_top(source: SourceFile, text: str) -> Edit:
    """Before the first statement, behind the comments that open the file."""
    place = 0
    for number in range(1, source.line_count + 1):
        line = source.line(number)
        if not line.lstrip("\ufeff").startswith("#"):
            break
        place = source.line_start(number + 1)
    before = "" if _ends_with_newline(source, place) else source.newline
    after = source.newline * (3 if source.tree.body else 1)
    return Edit(place, place, f"{before}{text}{after}")


def _end_of_line(source: SourceFile, statement: ast.stmt) -> int:
    """The start of the line behind a statement, and behind whatever else stands on its lines."""
    end = statement.end_lineno or statement.lineno
    for other in source.tree.body:
        if other.lineno <= end:
            end = max(end, other.end_lineno or other.lineno)
    while source.line(end).rstrip("\r\n").endswith("\\") and end < source.line_count:
        end += 1
    return source.line_start(end + 1)


def _ends_with_newline(source: SourceFile, place: int) -> bool:
    return place == 0 or source.text[place - 1] in "\r\n"
