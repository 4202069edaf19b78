"""From a diagram to a plan of what to write, and the writing of it.

`prepare` reads everything and computes every file; nothing on the disk changes. The plan says what would change, what
there is to say about it, and whether it may be written at all. `Plan.write` writes it in one go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from flyball.fsm.compile import compile_text
from flyball.fsm.generate.journal import Change, Journal, Recovery, Step
from flyball.fsm.generate.machine_module import machine_module, member_name, old_text
from flyball.fsm.generate.marked import Bindings, scan
from flyball.fsm.generate.merge import Merged, merge
from flyball.fsm.generate.names import Kind, clashes, package_problem
from flyball.fsm.generate.newfiles import Api, FileMaker
from flyball.fsm.generate.options import Options
from flyball.fsm.generate.places import PlaceError, Places, find_places, settings
from flyball.fsm.generate.projectfiles import main_module, pyproject
from flyball.fsm.generate.renames import (
    Rename,
    RenameError,
    likely_renames,
    parse_rename,
    rename_in_diagram,
    rename_in_file,
)
from flyball.fsm.generate.sourcetext import SourceFile, SourceProblem
from flyball.fsm.generate.stubs import FileShape, FunctionShape, TestShape
from flyball.fsm.generate.wanted import wanted
from flyball.fsm.model import Diagram, Finding

__all__ = ["FilePlan", "Plan", "journal_of", "prepare", "project_files", "recover"]

Role = Literal["generated", "merged", "kept"]
_KINDS: tuple[Kind, ...] = ("action", "guard")
_FILES: Mapping[Kind, str] = {"action": "actions.py", "guard": "guards.py"}


@dataclass(slots=True)
class FilePlan:
    """One file: what it is, what it held, what it is to hold."""

    path: Path
    role: Role
    before: bytes | None
    after: bytes
    merged: Merged | None = None

    @property
    def change(self) -> Literal["new", "update", ""]:
        """How the file changes; empty when it does not."""
        if self.before is None:
            return "new"
        return "" if self.before == self.after else "update"


@dataclass(slots=True)
class Plan:
    """All files of a package, and what there is to say."""

    journal: Journal
    files: list[FilePlan] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    diagram: Diagram | None = None
    places: Places | None = None

    @property
    def ok(self) -> bool:
        """Whether it may be written: there is no error among the findings."""
        return all(one.severity != "error" for one in self.findings)

    @property
    def changed(self) -> list[FilePlan]:
        """The files that would change."""
        return [one for one in self.files if one.change]

    def write(self, step: Step | None = None) -> None:
        """Write every changed file, or none."""
        if step is not None:
            self.journal.step = step
        self.journal.write([Change(one.path, one.before, one.after) for one in self.changed])


def journal_of(options: Options) -> Journal:
    """The journal that a call of the generator uses; look for what an earlier call left behind before preparing one."""
    places = _places(options)
    return Journal(places.package.parent, places.package.name)


def recover(options: Options) -> Recovery:
    """Finish or undo what an earlier call left behind."""
    return journal_of(options).recover()


def prepare(options: Options) -> Plan:
    """Compute every file. Problems of the diagram or of the user's files are findings; misuse raises."""
    return _Preparation(options).run()


def _places(options: Options) -> Places:
    problem = package_problem(options.package)
    if problem is not None:
        raise PlaceError(f"the package cannot be called {options.package!r}: {problem}")
    return find_places(
        options.output, options.package, options.tests, here=options.here, new_project=options.module is not None
    )


def project_files(options: Options) -> list[Path]:
    """The files of a new project that must not be there already."""
    places = _places(options)
    module = options.module or ""
    return [places.project / "pyproject.toml", places.project / "src" / module / "__main__.py"]


class _Preparation:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.places = _places(options)
        self.plan = Plan(Journal(self.places.package.parent, self.places.package.name), places=self.places)
        self.input = options.here / options.input
        self.renames: list[Rename] = []
        self.renamed: dict[str, str] = {}
        self.api = self._api()
        self.maker = FileMaker(self.places.module, self.api)

    def run(self) -> Plan:
        raw = _read(self.input)
        if raw is None:
            raise PlaceError(f"cannot read {self.options.input}: there is no such file; name the diagram with --input")
        text = _decode(raw, self.options.input)
        diagram = self._diagram(text)
        if diagram is None or not self.plan.ok:
            return self.plan
        if self.options.renames:
            diagram = self._rename(raw, text, diagram)
            if diagram is None or not self.plan.ok:
                return self.plan
        self._check_names(diagram)
        before = self._before()
        self._functions(diagram, before)
        if self.options.with_tests and self.plan.ok:
            self._tests(diagram, before)
        self.plan.diagram = diagram
        if self.plan.ok:
            self._kept()
            self.plan.files.sort(key=lambda one: str(one.path))
        return self.plan

    # -- the diagram ---------------------------------------------------------------------------------------------------

    def _diagram(self, text: str) -> Diagram | None:
        diagram, findings = compile_text(
            text,
            str(self.options.input),
            self.options.diagram,
            self.options.strict,
            infallible=self._infallible(),
        )
        self.plan.findings = list(findings)
        return diagram

    def _infallible(self) -> list[str]:
        """Actions that the user has marked `fails=False`."""
        raw = _read(self.places.package / "actions.py")
        if raw is None:
            return []
        try:
            source = SourceFile.parse(raw, "actions.py")
        except SourceProblem:
            return []
        marked = scan(source.tree, {"action": "action"}, Bindings.of(source.tree)).marked
        return [one.name for one in marked if one.never_fails]

    def _before(self) -> Diagram | None:
        """The diagram that the present package was made from."""
        raw = _read(self.places.package / "zz_generated_statemachine.py")
        text = None if raw is None else old_text(raw)
        return None if text is None else compile_text(text, "")[0]

    def _rename(self, raw: bytes, text: str, diagram: Diagram) -> Diagram | None:
        for asked in self.options.renames:
            kind, old, new = parse_rename(asked)
            rename = Rename(kind or self._kind_of(old, new, diagram), old, new)
            names = diagram.actions if rename.kind == "action" else diagram.guards
            if old in names and new in names:
                raise RenameError(
                    f"cannot rename {rename}: the diagram uses both names; rename it in the diagram by hand"
                )
            if old in names:
                text = rename_in_diagram(text, diagram, rename)
                self.plan.findings = []
                after = self._diagram(text)
                if after is None:
                    return None
                diagram = after
            elif new not in names:
                raise RenameError(f"cannot rename {rename}: the diagram has neither of the names")
            self.renames.append(rename)
        encoded = text.encode("utf-8")
        if raw.startswith(b"\xef\xbb\xbf"):
            encoded = b"\xef\xbb\xbf" + encoded
        self.plan.files.append(FilePlan(self.input, "merged", raw, encoded))
        return diagram

    def _kind_of(self, old: str, new: str, diagram: Diagram) -> Kind:
        before = self._before()
        known = [one for one in (diagram, before) if one is not None]
        kinds: list[Kind] = [
            kind
            for kind in _KINDS
            if any({old, new} & set(one.actions if kind == "action" else one.guards) for one in known)
        ]
        if len(kinds) != 1:
            what = "both an action and a guard" if kinds else "neither an action nor a guard"
            raise RenameError(f"cannot rename {old}: it is {what}; write action:{old}={new} or guard:{old}={new}")
        return kinds[0]

    def _check_names(self, diagram: Diagram) -> None:
        for kind in _KINDS:
            for first, second, snake in clashes(diagram.actions if kind == "action" else diagram.guards):
                self._error(
                    "E-name-clash",
                    f"the {kind}s {first} and {second} would both be the function {snake}",
                    second,
                    f"call one of them otherwise in the diagram, for example {second}2",
                )
        members: dict[str, str] = {}
        for _, state in diagram.machine.walk():
            other = members.setdefault(member_name(state.name), state.name)
            if other != state.name:
                self._error(
                    "E-name-clash",
                    f"the states {other} and {state.name} would have the same name in Python",
                    state.name,
                    "call one of them otherwise in the diagram",
                )

    # -- actions and guards --------------------------------------------------------------------------------------------

    def _functions(self, diagram: Diagram, before: Diagram | None) -> None:
        functions: dict[Kind, dict[str, str]] = {}
        for kind in _KINDS:
            path = self.places.package / _FILES[kind]
            names = wanted(diagram, kind)
            heads = (self.maker.functions_head(kind, empty=not names), self.maker.functions_head(kind, empty=True))
            merged = self._merge(path, FunctionShape(kind), heads, kind, diagram)
            functions[kind] = merged.functions if merged else {}
            if merged and before is not None and self.options.propose_renames:
                self._propose(before, diagram, kind, merged)
        if self.plan.ok:
            ordered = {kind: dict(sorted(functions[kind].items())) for kind in _KINDS}
            text = machine_module(diagram, self.input.name, ordered["action"], ordered["guard"])
            self._generated(self.places.package / "zz_generated_statemachine.py", text)

    def _merge(
        self, path: Path, shape: FileShape, heads: tuple[str, str], kind: Kind, diagram: Diagram
    ) -> Merged | None:
        """Merge one file; `heads` are what a new one begins with, and what one begins with that has no functions."""
        before = _read(path)
        shown = self._shown(path)
        if (path.with_suffix("") / "__init__.py").is_file():
            self._error(
                "E-user-file",
                f"{shown} would be hidden by the package {path.stem} beside it",
                path.name,
                f"keep the marked functions in {path.name}; they may call what is elsewhere",
            )
            return None
        try:
            raw = heads[0].encode() if before is None or before == heads[1].encode() else before
            if self.renames and before is not None:
                raw = rename_in_file(raw, shown, shape, self.renames, self.renamed)
                self._note_renamed(path, shape, before, raw)
            prune = self.options.prune and isinstance(shape, FunctionShape)
            merged = merge(raw, shown, shape, wanted(diagram, kind), prune=prune)
        except SourceProblem as problem:
            self.plan.findings.append(
                Finding(
                    "E-user-file",
                    f"{problem.reason}; nothing is written",
                    problem.file,
                    problem.line,
                    problem.column,
                    problem.source_line,
                    path.name,
                    "correct the file and run again",
                )
            )
            return None
        self.plan.findings.extend(self._weighed(merged.findings))
        self.plan.files.append(FilePlan(path, "merged", before, merged.raw, merged))
        return merged

    def _note_renamed(self, path: Path, shape: FileShape, before: bytes, after: bytes) -> None:
        """Which functions have another name now, for the tests that call them."""
        if not isinstance(shape, FunctionShape):
            return
        old, new = (_functions_by_name(raw, shape) for raw in (before, after))
        for rename in self.renames:
            if rename.kind == shape.kind and rename.old in old and rename.new in new:
                self.renamed[f"{path.stem}.{old[rename.old]}"] = new[rename.new]

    def _propose(self, before: Diagram, diagram: Diagram, kind: Kind, merged: Merged) -> None:
        for rename in likely_renames(before, diagram):
            if rename.kind == kind and rename.old in merged.orphans and rename.new in merged.added:
                self._error(
                    "E-rename",
                    f"{kind} {rename.old} is gone and {rename.new} stands in its place: no stub is added for a rename",
                    rename.new,
                    f"--rename {rename} keeps the implementation; --no-rename adds a stub and keeps it as an orphan",
                )

    # -- tests ---------------------------------------------------------------------------------------------------------

    def _tests(self, diagram: Diagram, before: Diagram | None) -> None:
        folder = self.places.tests
        self._refuse_other_package(folder)
        for kind in _KINDS:
            names = wanted(diagram, kind)
            known = {(one.name, one.params[0]) for one in names}
            known |= {(one.name, one.params[0]) for one in wanted(before, kind)} if before is not None else set()
            known |= {(new.new, params) for new in self.renames for name, params in known if name == new.old}
            shape = TestShape(kind, self.maker.generated, frozenset(known))
            heads = (self.maker.tests_head(kind, empty=not names), self.maker.tests_head(kind, empty=True))
            self._merge(folder / f"test_{_FILES[kind]}", shape, heads, kind, diagram)
        self._generated(folder / "test_zz_generated_statemachine.py", self.maker.machine_tests())

    def _refuse_other_package(self, folder: Path) -> None:
        raw = _read(folder / "test_zz_generated_statemachine.py")
        if raw is not None and f"from {self.maker.generated} import".encode() not in raw:
            raise PlaceError(
                f"{self._shown(folder)} holds the tests of another package; choose another folder with --tests, "
                f"or another name with --package"
            )

    # -- files that are written once -----------------------------------------------------------------------------------

    def _kept(self) -> None:
        package, maker = self.places.package, self.maker
        fresh = not package.is_dir()
        for folder in self.places.parents:
            self._keep(folder / "__init__.py", maker.folder_init())
        self._keep(package / "__init__.py", maker.package_init())
        self._keep(package / "extended_state.py", maker.extended_state())
        if self.api is not None and self._lacks(self.api.module):
            self._keep(self._module_file(self.api.module), maker.resource())
        if self.options.with_tests:
            self._kept_tests()
        if self.options.module is not None:
            self._project(self.options.module)
        if fresh:
            self._hint_other_package()

    def _kept_tests(self) -> None:
        places, maker = self.places, self.maker
        root = places.tests_root
        if _is_fresh(root) or (root / "__init__.py").is_file():
            self._keep(root / "__init__.py", maker.folder_init())
            self._keep(places.tests / "__init__.py", maker.folder_init())
        if places.path_entry:
            self._keep(root / "conftest.py", maker.tests_conftest(_relative(places.root, root)))
        self._keep(places.tests / "conftest.py", maker.conftest())
        if self.api is not None:
            self._keep(places.tests / "test_integration.py", maker.integration())

    def _project(self, module: str) -> None:
        project = self.places.project
        api = self.api
        main = main_module(
            module,
            self.options.package,
            api_module=api.module if api else "",
            api_name=api.name if api else "",
        )
        self._keep(project / "pyproject.toml", pyproject(module))
        self._keep(project / "src" / module / "__main__.py", main)
        self._keep(project / "src" / module / "py.typed", "")

    def _hint_other_package(self) -> None:
        parent = self.places.package.parent
        if not parent.is_dir():
            return
        for other in sorted(parent.glob("*/zz_generated_statemachine.py")):
            if other.parent != self.places.package and self.plan.diagram is not None:
                text = old_text(other.read_bytes())
                same = None if text is None else compile_text(text, "")[0]
                if same is not None and same.title == self.plan.diagram.title:
                    self.plan.hints.append(
                        f"{self._shown(other.parent)} holds a machine of the same title; "
                        "if this package takes its place, move your code and delete it"
                    )

    # -- the resource class --------------------------------------------------------------------------------------------

    def _api(self) -> Api | None:
        options = self.options
        if not options.operator:
            return None
        module, _, name = (options.resource or f"{self.places.top}.api:{options.api_kind}").partition(":")
        if not name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
            raise PlaceError(f"cannot read the resource {options.resource!r}; write module:Class")
        group = (options.group or options.api_kind).lower()
        if "." not in group:
            file = self.places.project / "pyproject.toml"
            found = settings(file if file.is_file() else None, "tool", "flyball")
            group = f"{group}.{found.get('domain', 'example.com')}"
        return Api(module, name, group, options.api_version.lower(), options.api_kind)

    def _module_file(self, module: str) -> Path:
        return self.places.root.joinpath(*module.split(".")).with_suffix(".py")

    def _lacks(self, module: str) -> bool:
        """Whether a module below the import root is missing; modules from elsewhere are not ours to write."""
        parts = module.split(".")
        file = self._module_file(module)
        if file.is_file() or (self.places.root.joinpath(*parts) / "__init__.py").is_file():
            return False
        return parts[0] == self.places.top

    # -- small things --------------------------------------------------------------------------------------------------

    def _generated(self, path: Path, text: str) -> None:
        self.plan.files.append(FilePlan(path, "generated", _read(path), text.encode()))

    def _keep(self, path: Path, text: str) -> None:
        if not path.exists() and all(one.path != path for one in self.plan.files):
            self.plan.files.append(FilePlan(path, "kept", None, text.encode()))

    def _error(self, code: str, message: str, subject: str, remedy: str) -> None:
        self.plan.findings.append(Finding(code, message, str(self.options.input), 1, 1, "", subject, remedy))

    def _weighed(self, findings: Iterable[Finding]) -> list[Finding]:
        if not self.options.strict:
            return list(findings)
        return [one.as_error() if one.severity == "warning" else one for one in findings]

    def _shown(self, path: Path) -> str:
        return str(path.relative_to(self.options.here)) if path.is_relative_to(self.options.here) else str(path)


def _functions_by_name(raw: bytes, shape: FunctionShape) -> dict[str, str]:
    source = SourceFile.parse(raw, _FILES[shape.kind])
    marked = scan(source.tree, shape.words, Bindings.of(source.tree)).marked
    return {one.name: one.function for one in marked}


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _decode(raw: bytes, file: Path) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise PlaceError(f"cannot read {file}: it is not UTF-8 ({problem.reason}); store it as UTF-8") from problem


def _is_fresh(folder: Path) -> bool:
    return not folder.is_dir() or not any(folder.rglob("*.py"))


def _relative(root: Path, folder: Path) -> str:
    if root.is_relative_to(folder.parent):
        inside = root.relative_to(folder.parent)
        return "../" + inside.as_posix() if inside.parts else ".."
    return str(root)
