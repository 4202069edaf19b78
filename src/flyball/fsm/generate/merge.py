"""Brings a user's file up to a diagram without touching what is theirs.

Functions are identified by marker and kind, never by name [fsm.md 5.8]:

1. what is missing is appended as a stub, with the imports it needs; imports are never removed;
2. an untouched stub gets a new docstring when the diagram says something else about it, nothing more;
3. everything else that is marked stays as it is, byte for byte;
4. an untouched stub that the diagram no longer mentions goes, with the comment lines attached to it;
5. an implemented one stays and is reported as `W-orphan`, unless `prune` is asked for.

The result is parsed again before it is given back: every statement that was not to change must still be there, in
order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from flyball.fsm.generate.imports import import_edits, resolve
from flyball.fsm.generate.marked import Bindings, Marked, Scan, scan
from flyball.fsm.generate.names import free_name
from flyball.fsm.generate.regions import is_untouched, removal
from flyball.fsm.generate.sourcetext import Edit, SourceFile, SourceProblem, apply_edits
from flyball.fsm.generate.stubs import FileShape
from flyball.fsm.generate.wanted import Wanted
from flyball.fsm.model import Finding

__all__ = ["Merged", "merge"]


@dataclass(slots=True)
class Merged:
    """A file after the merge, and what was done to it."""

    raw: bytes
    functions: dict[str, str] = field(default_factory=dict)
    """The function of each action or guard that the file holds."""
    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    """Implemented, no longer in the diagram, kept."""
    stubs: frozenset[str] = frozenset()
    """Names whose functions nobody has touched, as the file was before."""
    findings: list[Finding] = field(default_factory=list)


def merge(
    raw: bytes, file: str, shape: FileShape, wanted: Sequence[Wanted], *, prune: bool = False, held: Iterable[str] = ()
) -> Merged:
    """Merge what the diagram wants into a file's bytes; `held` names get no stub (a rename is proposed instead).

    Raises `SourceProblem` for a file that cannot be parsed or changed safely.
    """
    return _Merge(SourceFile.parse(raw, file), shape, {one.name: one for one in wanted}).run(prune, frozenset(held))


class _Merge:
    def __init__(self, source: SourceFile, shape: FileShape, wanted: Mapping[str, Wanted]) -> None:
        self.source = source
        self.shape = shape
        self.wanted = wanted
        self.bindings = Bindings.of(source.tree)
        self.scan: Scan = scan(source.tree, shape.words, self.bindings)
        self.merged = Merged(source.raw)
        self.edits: list[Edit] = []
        self.touched: list[ast.stmt] = []

    def run(self, prune: bool, held: frozenset[str]) -> Merged:
        self._note_unreadable()
        present = self._present()
        untouched = {name: one for name, one in present.items() if is_untouched(self.source, self.shape, one)}
        self.merged.stubs = frozenset(untouched)
        for name, marked in present.items():
            if name not in self.wanted:
                self._orphan(marked, name in untouched, prune)
            else:
                self.merged.functions[name] = marked.function
                if name in untouched:
                    self._refresh(marked, self.wanted[name])
        self._append([one for name, one in self.wanted.items() if name not in present and name not in held])
        if self.edits:
            text = apply_edits(self.source.text, self.edits)
            self.merged.raw = self.source.encode(text)
            self._verify()
        return self.merged

    def _present(self) -> dict[str, Marked]:
        """Marked functions by name; the same marker twice is an error."""
        found: dict[str, Marked] = {}
        for marked in self.scan.marked:
            first = found.setdefault(marked.name, marked)
            if first is not marked:
                self._find(
                    "E-duplicate-marker",
                    marked.literal,
                    f"{marked.kind} {marked.name} is marked twice: {first.function} in line {first.node.lineno} and "
                    f"{marked.function} in line {marked.node.lineno}",
                    marked.name,
                    "keep one of them, or give one another name in the diagram",
                    "error",
                )
        return found

    def _orphan(self, marked: Marked, untouched: bool, prune: bool) -> None:
        removable = marked.direct and len(marked.node.decorator_list) >= 1
        if (untouched and not self._mentioned(marked)) or (prune and removable and self._sole(marked)):
            start, end = removal(self.source, marked.node)
            self.edits.append(Edit(start, end, ""))
            self.touched.append(marked.node)
            self.merged.removed.append(marked.name)
            return
        self.merged.orphans.append(marked.name)
        self._find(
            "W-orphan",
            marked.literal,
            f"{marked.kind} {marked.name} ({marked.function}) is no longer in the diagram; it is kept",
            marked.name,
            "delete it, --prune it, or --rename it to what it is called now",
        )

    def _sole(self, marked: Marked) -> bool:
        """Whether the function carries no other marker that the diagram still wants."""
        return not any(
            other.node is marked.node and other.name in self.wanted for other in self.scan.marked if other is not marked
        )

    def _mentioned(self, marked: Marked) -> bool:
        """Whether other code of the file uses the function by its name."""
        return any(
            isinstance(node, ast.Name) and node.id == marked.function and isinstance(node.ctx, ast.Load)
            for node in ast.walk(self.source.tree)
        )

    def _refresh(self, marked: Marked, wanted: Wanted) -> None:
        literal = self.shape.docstring(wanted)
        first = marked.node.body[0]
        if literal is None or not isinstance(first, ast.Expr):
            return
        start, end = self.source.span(first.value)
        literal = literal.replace("\n", self.source.newline)
        if _same_text(self.source.text[start:end], literal):
            return
        self.edits.append(Edit(start, end, literal))
        self.touched.append(marked.node)
        self.merged.updated.append(marked.name)

    def _append(self, missing: list[Wanted]) -> None:
        if not missing:
            return
        references = resolve(self.shape.requirements, self.bindings)
        self.edits.extend(map(self._outside, import_edits(self.source, references, self.bindings)))
        taken = {*self.bindings.names, *references.missing.values()}
        stubs: list[str] = []
        for one in missing:
            function = self._free(one, taken)
            taken.add(function)
            stubs.append(self.shape.render(one, function, references))
            self.merged.functions[one.name] = function
            self.merged.added.append(one.name)
        text = "\n\n".join(stubs)
        end = len(self.source.text)
        self.edits.append(Edit(end, end, self._gap() + text.replace("\n", self.source.newline)))

    def _outside(self, insertion: Edit) -> Edit:
        """An insertion that does not fall into something that is removed."""
        for edit in self.edits:
            if edit.start < insertion.start < edit.end:
                return Edit(edit.start, edit.start, insertion.text)
        return insertion

    def _gap(self) -> str:
        """What stands between the end of the file and a stub: two blank lines, those already there included."""
        text = self.source.text
        if not text:
            return ""
        blank = 0
        for number in range(self.source.line_count - 1, 0, -1):
            if self.source.line(number).strip():
                break
            blank += 1
        ends = text[-1] in "\r\n"
        last = self.source.line(self.source.line_count)
        if not ends and not last.strip():
            return self.source.newline * max(1, 3 - blank)
        return self.source.newline * (max(0, 2 - blank) if ends else 3)

    def _free(self, one: Wanted, taken: set[str]) -> str:
        wanted = self.shape.default_name(one.name)
        function = free_name(wanted, taken)
        if function != wanted:
            owner = next((node for node in self.source.tree.body if getattr(node, "name", None) == wanted), None)
            line = owner.lineno if owner is not None else 1
            self._find_at(
                "W-name-taken",
                line,
                1,
                f"{wanted} is there, without the marker of {one.kind} {one.name}; the stub is called {function}",
                one.name,
                f"mark {wanted} as {one.kind} {one.name} if it is the implementation, and delete {function}",
            )
        return function

    def _note_unreadable(self) -> None:
        for decorator in self.scan.unreadable:
            self._find(
                "W-marker",
                decorator,
                "the marker's name is not a literal text, so it cannot be read without running the file",
                ast.unparse(decorator),
                'write it out: @action("Name")',
            )
        for marked in self.scan.hidden:
            self._find(
                "W-marker",
                marked.literal,
                f"{marked.function} is inside a function or class, where the machine cannot reach it",
                marked.name,
                "move it to the top of the module",
            )

    def _find(
        self, code: str, node: ast.expr, message: str, subject: str, remedy: str, severity: str = "warning"
    ) -> None:
        self._find_at(code, node.lineno, node.col_offset + 1, message, subject, remedy, severity)

    def _find_at(
        self, code: str, line: int, column: int, message: str, subject: str, remedy: str, severity: str = "warning"
    ) -> None:
        self.merged.findings.append(
            Finding(
                code,
                message,
                self.source.file,
                line,
                column,
                self.source.line(line).rstrip(),
                subject,
                remedy,
                "error" if severity == "error" else "warning",
            )
        )

    def _verify(self) -> None:
        """The result must hold every statement that was not to change, in its old order and wording."""
        after = SourceFile.parse(self.merged.raw, self.source.file)
        touched = {id(node) for node in self.touched}
        kept = [_text(self.source, node) for node in self.source.tree.body if id(node) not in touched]
        there = iter([_text(after, node) for node in after.tree.body])
        if not all(any(text == other for other in there) for text in kept):
            raise SourceProblem(
                self.source.file,
                1,
                1,
                "cannot be updated without changing code that is not generated; nothing is written",
            )


def _text(source: SourceFile, node: ast.stmt) -> str:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(one.lineno for one in decorators)])
    return source.text[source.line_start(first) : source.span(node)[1]]


def _same_text(present: str, wanted: str) -> bool:
    """Whether two docstring literals say the same: other indentation does not count."""
    if present == wanted:
        return True
    try:
        said = ast.literal_eval(present)
    except (SyntaxError, ValueError):
        return False
    return isinstance(said, str) and said.split() == str(ast.literal_eval(wanted.replace("\r\n", "\n"))).split()
