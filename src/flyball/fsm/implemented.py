"""A diagram beside the functions of its package: which are stubs, missing, or cannot take what the diagram passes.

The package is read, never imported. What is declared with `fails=False` there needs no error handling in the diagram.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from flyball.fsm.generate.marked import Bindings, Marked, scan
from flyball.fsm.generate.sourcetext import SourceFile
from flyball.fsm.model import Call, Diagram, Finding, Machine, guard_calls

__all__ = ["Package", "read_package"]


@dataclass(slots=True)
class Package:
    """The marked functions of a package, by kind and name, and the file of each kind."""

    files: dict[str, Path] = field(default_factory=dict[str, Path])
    functions: dict[tuple[str, str], Marked] = field(default_factory=dict[tuple[str, str], Marked])

    @property
    def infallible(self) -> list[str]:
        """Actions that never fail by their declaration."""
        return [name for (kind, name), one in self.functions.items() if kind == "action" and one.never_fails]

    def check(self, diagram: Diagram) -> list[Finding]:
        """What the functions lack, in the order of the diagram."""
        return list(self._findings(diagram))

    def _findings(self, diagram: Diagram) -> Iterator[Finding]:
        told: set[tuple[str, str]] = set()
        for kind, call in _uses(diagram.machine):
            if kind not in self.files:
                continue
            function = self.functions.get((kind, call.name))
            if function is not None and not _accepts(function.node, len(call.params)):
                yield self._signature(kind, call, function)
            if (kind, call.name) in told:
                continue
            told.add((kind, call.name))
            if function is None:
                yield Finding(
                    "I-missing",
                    f"the {kind} {call.name} has no function in {self.files[kind].name}",
                    diagram.file,
                    call.position.line,
                    call.position.column,
                    subject=call.name,
                    remedy="run flyball fsm generate",
                    severity="info",
                )
            elif call.name != "IsError" and _is_stub(function.node):
                yield self._at(function, "I-stub", f"the {kind} {call.name} is not implemented", "write its body")

    def _signature(self, kind: str, call: Call, function: Marked) -> Finding:
        message = (
            f"{function.function} cannot take the {len(call.params)} parameters of {call.key} "
            f"in line {call.position.line} of the diagram"
        )
        finding = self._at(
            function, "E-signature", message, f"declare them, or `*params: str`, behind the machine of the {kind}"
        )
        return finding.as_error()

    def _at(self, function: Marked, code: str, message: str, remedy: str) -> Finding:
        file, node = self.files[function.kind], function.node
        line = file.read_text(encoding="utf-8", errors="replace").splitlines()[node.lineno - 1]
        return Finding(
            code, message, str(file), node.lineno, node.col_offset + 1, line, function.name, remedy, severity="info"
        )


def read_package(folder: Path) -> Package:
    """The marked functions of a generated package; a file that is not there holds none."""
    package = Package()
    for kind in ("action", "guard"):
        file = folder / f"{kind}s.py"
        if not file.is_file():
            continue
        source = SourceFile.parse(file.read_bytes(), str(file))
        package.files[kind] = file
        for one in scan(source.tree, {kind: kind}, Bindings.of(source.tree)).marked:
            package.functions[kind, one.name] = one
    return package


def _uses(machine: Machine) -> Iterator[tuple[str, Call]]:
    for _, level in machine.levels():
        for call in level.initial_do:
            yield "action", call
        transitions = list(level.initial)
        for state in level.states.values():
            for call in (*state.entry, *state.do, *state.exit):
                yield "action", call
            transitions.extend(state.transitions)
        for transition in transitions:
            for call in guard_calls(transition.guard):
                yield "guard", call
            for call in transition.actions:
                yield "action", call


def _accepts(node: ast.FunctionDef | ast.AsyncFunctionDef, count: int) -> bool:
    """Whether a function takes the machine and so many texts."""
    given = node.args
    most = len(given.posonlyargs) + len(given.args) - 1
    least = most - len(given.defaults)
    return count >= least and (given.vararg is not None or count <= most)


def _is_stub(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a body does nothing: a docstring, `pass`, `...`, `return`, `return False`."""
    for one in node.body:
        nothing = isinstance(one, ast.Pass) or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        if isinstance(one, ast.Return):
            nothing = one.value is None or (isinstance(one.value, ast.Constant) and not one.value.value)
        if not nothing:
            return False
    return True
