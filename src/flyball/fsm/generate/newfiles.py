"""The files that are written once and then belong to the user, and the heads of those that are merged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from flyball.fsm.generate.layout import WIDTH, quoted
from flyball.fsm.generate.machine_module import HEADER
from flyball.fsm.generate.names import Kind

__all__ = ["Api", "FileMaker", "import_from"]

_ABOUT: dict[Kind, str] = {
    "action": "Actions: the work that the machine does in its states and on its transitions.",
    "guard": "Guards: the questions that decide which way the machine goes. They only read.",
}
_YOURS = "Written once, yours from then on."


@dataclass(frozen=True, slots=True)
class Api:
    """The resource class of an operator's machine."""

    module: str
    name: str
    group: str = ""
    version: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class FileMaker:
    """Writes new files of one package."""

    package: str
    """How the package is imported."""
    api: Api | None = None
    """In operator mode."""

    @property
    def generated(self) -> str:
        """The generated module."""
        return f"{self.package}.zz_generated_statemachine"

    # -- the package ---------------------------------------------------------------------------------------------------

    def package_init(self) -> str:
        """`__init__.py`: what others import."""
        return _lines(
            f'"""A state machine: its class, states and data. {_YOURS}"""',
            "# ruff: noqa",
            "",
            "from .extended_state import Context as Context",
            "from .extended_state import ExtendedState as ExtendedState",
            "from .zz_generated_statemachine import *",
        )

    def functions_head(self, kind: Kind, *, empty: bool) -> str:
        """actions.py and guards.py without functions."""
        head = [f'"""{_ABOUT[kind]}"""', "", "from __future__ import annotations"]
        if empty:
            return _lines(*head)
        return _lines(
            *head,
            "",
            "from typing import TYPE_CHECKING",
            "",
            f"from flyball.fsm.run import {kind}",
            "",
            "if TYPE_CHECKING:",
            "    from .zz_generated_statemachine import Machine",
        )

    def extended_state(self) -> str:
        """extended_state.py: context and data."""
        if self.api is None:
            imports = ["from flyball.fsm.run import AppContext, AppState"]
            bases = ("AppContext", "AppState")
        else:
            imports = [
                "from flyball.fsm.operator import OperatorContext, OperatorState",
                "",
                *import_from(self.api.module, [self.api.name]),
            ]
            bases = ("OperatorContext", f"OperatorState[{self.api.name}]")
        return _lines(
            f'"""What the machine works with, and what it works on. {_YOURS}"""',
            "",
            "from __future__ import annotations",
            "",
            "from dataclasses import dataclass",
            "",
            *imports,
            "",
            "",
            "@dataclass(slots=True)",
            f"class Context({bases[0]}):",
            '    """What actions need to work: clients, settings. Give each field a default."""',
            "",
            "",
            "@dataclass(slots=True)",
            f"class ExtendedState({bases[1]}):",
            '    """The data of a run: actions write it, guards read it. Give each field a default."""',
        )

    def folder_init(self) -> str:
        """`__init__.py` of the folders around the package."""
        return _lines(f'"""{_YOURS}"""')

    def resource(self) -> str:
        """The module of the resource class."""
        assert self.api is not None
        name = self.api.name
        options = [f"group={quoted(self.api.group)}", f"version={quoted(self.api.version)}"]
        if self.api.kind != name:
            options.append(f"kind={quoted(self.api.kind)}")
        return _lines(
            f'"""The API: what a {self.api.kind} looks like. {_YOURS}"""',
            "",
            "from flyball.api import Resource, Spec, Status",
            "",
            "",
            f"class {name}Spec(Spec):",
            '    """What is asked for."""',
            "",
            "",
            f"class {name}Status(Status):",
            '    """What was found and done."""',
            "",
            "",
            *_opened(f"class {name}", ["Resource", *options]),
            f'    """A {self.api.kind}."""',
            "",
            f"    spec: {name}Spec",
            f"    status: {name}Status",
        )

    # -- tests ---------------------------------------------------------------------------------------------------------

    def tests_head(self, kind: Kind, *, empty: bool) -> str:
        """test_actions.py and test_guards.py without tests."""
        head = [
            f'"""Tests of single {kind}s; a test is skipped while its {kind} is a stub."""',
            "",
            "from __future__ import annotations",
        ]
        if empty:
            return _lines(*head)
        helper = "run_action" if kind == "action" else "ask_guard"
        words = sorted([f"covers_{kind}", helper])
        return _lines(
            *head,
            "",
            "from typing import TYPE_CHECKING",
            "",
            "import pytest",
            f"from flyball.fsm.testing import {', '.join(words)}",
            "",
            "if TYPE_CHECKING:",
            *import_from(self.generated, ["Machine"], 4),
        )

    def machine_tests(self) -> str:
        """test_zz_generated_statemachine.py: the machine against its diagram."""
        return _lines(
            HEADER,
            '"""The machine does what its diagram says: every transition, every failing action, and every run ends."""',
            "",
            "from __future__ import annotations",
            "",
            "import hashlib",
            "",
            "import pytest",
            "from flyball.fsm.testing import (",
            "    Case,",
            "    diagram_of,",
            "    random_run,",
            "    rehearsals,",
            "    rehearse,",
            ")",
            "",
            *import_from(self.generated, ["DIAGRAM", "DIAGRAM_SHA256", "Machine"]),
            "",
            "PLAN = rehearsals(DIAGRAM)",
            "",
            "",
            "def test_the_table_is_the_diagram() -> None:",
            '    """Nobody has changed the generated module by hand."""',
            "    assert hashlib.sha256(DIAGRAM.encode()).hexdigest() == DIAGRAM_SHA256",
            "    assert Machine.table.machine == diagram_of(DIAGRAM).machine",
            "",
            "",
            '@pytest.mark.parametrize("case", PLAN.transitions, ids=str)',
            "def test_a_transition_is_taken(case: Case) -> None:",
            '    """Guards forced along the shortest way to it: states, calls and checks are those of the diagram."""',
            "    assert rehearse(Machine, case) == case.expected",
            "",
            "",
            '@pytest.mark.parametrize("case", PLAN.failures, ids=str)',
            "def test_a_failing_action_leads_where_the_diagram_says(case: Case) -> None:",
            '    """Each action that can fail does, once."""',
            "    assert rehearse(Machine, case) == case.expected",
            "",
            "",
            '@pytest.mark.parametrize("seed", range(20))',
            "def test_every_run_ends(seed: int) -> None:",
            '    """Whatever the guards answer: at the end, stuck, or at the step limit."""',
            '    assert random_run(Machine, seed) in {"end", "stuck", "step-limit"}',
        )

    def tests_conftest(self, entry: str) -> str:
        """conftest.py of all tests, where no project file makes the sources importable; `entry` is their folder."""
        return _lines(
            '"""Makes the sources importable; not needed once pytest\'s `pythonpath` or an installation does."""',
            "",
            "import sys",
            "from pathlib import Path",
            "",
            f"sys.path.insert(0, str(Path(__file__).resolve().parent / {quoted(entry)}))",
        )

    def conftest(self) -> str:
        """conftest.py of the package's tests: the machine under test and, for an operator, a sample object."""
        local = [*self._import_machine()]
        words = ["register_marks"]
        if self.api is not None:
            words = ["EventLog", "ImaginedPass", "register_marks", "sample_of"]
            context = import_from(f"{self.package}.extended_state", ["Context"])
            local = _sorted_imports([import_from(self.api.module, [self.api.name]), context, self._import_machine()])
        return _lines(
            f'"""What the tests share. {_YOURS}"""',
            "",
            "from __future__ import annotations",
            "",
            "import pytest",
            f"from flyball.fsm.testing import {', '.join(words)}",
            "",
            *local,
            "",
            "",
            "def pytest_configure(config: pytest.Config) -> None:",
            '    """Make the marks of the tests known."""',
            "    register_marks(config)",
            "",
            "",
            *(self._fixtures() if self.api is None else self._operator_fixtures(self.api)),
        )

    def integration(self) -> str:
        """test_integration.py of an operator: one pass over one object in a cluster."""
        assert self.api is not None
        local = [
            import_from(f"{self.package}.extended_state", ["Context"]),
            self._import_machine(),
        ]
        return _lines(
            f'"""The machine in a cluster. {_YOURS}"""',
            "",
            "from __future__ import annotations",
            "",
            "import asyncio",
            "from typing import TYPE_CHECKING",
            "",
            "import pytest",
            "from flyball.fsm.operator import reconcile_once",
            "from flyball.fsm.testing import cluster_or_skip, install_or_skip",
            "",
            *_sorted_imports(local),
            "",
            "if TYPE_CHECKING:",
            *import_from(self.api.module, [self.api.name], 4),
            "",
            "",
            "@pytest.mark.integration",
            *_function(
                "test_one_pass_over_a_new_object", ["request: pytest.FixtureRequest", f"sample: {self.api.name}"]
            ),
            '    """A new object is reconciled once without an error; say here what the pass must have done."""',
            "    cluster = cluster_or_skip(request)",
            "",
            "    async def story() -> None:",
            "        await install_or_skip(cluster.client, type(sample))",
            "        await cluster.client.create(sample)",
            "        await reconcile_once(",
            "            Machine,",
            "            Context(client=cluster.client),",
            "            sample.metadata.name,",
            "            sample.metadata.namespace,",
            "        )",
            "",
            "    asyncio.run(story())",
        )

    def _import_machine(self) -> list[str]:
        return import_from(self.generated, ["Machine"])

    @staticmethod
    def _fixtures() -> list[str]:
        return [
            "@pytest.fixture",
            "def machine() -> Machine:",
            '    """A machine that has not run."""',
            "    return Machine()",
        ]

    @staticmethod
    def _operator_fixtures(api: Api) -> list[str]:
        return [
            "@pytest.fixture",
            f"def sample() -> {api.name}:",
            '    """An object to reconcile, made from the schema; fill in what your tests need."""',
            f'    return sample_of({api.name}, "sample", namespace="default")',
            "",
            "",
            "@pytest.fixture",
            "def events() -> EventLog:",
            '    """What the machine records."""',
            "    return EventLog()",
            "",
            "",
            "@pytest.fixture",
            f"def ctx(sample: {api.name}) -> ImaginedPass:",
            '    """The pass that the machine works in: what is there, and what was done."""',
            "    return ImaginedPass(sample)",
            "",
            "",
            "@pytest.fixture",
            *_function_returning(
                "machine", [f"sample: {api.name}", "events: EventLog", "ctx: ImaginedPass"], "Machine"
            ),
            '    """A machine that has not run, with the sample loaded."""',
            "    one = Machine(Context(recorder=events, ctx=ctx))",
            "    one.state.resource_name = sample.metadata.name",
            "    one.state.namespace = sample.metadata.namespace",
            "    one.state.instance = sample",
            "    return one",
        ]


def _sorted_imports(statements: list[list[str]]) -> list[str]:
    return [line for statement in sorted(statements, key=lambda lines: lines[0].split()[1]) for line in statement]


def _function(name: str, parameters: list[str]) -> list[str]:
    return _function_returning(name, parameters, "None")


def _function_returning(name: str, parameters: list[str], answer: str) -> list[str]:
    line = f"def {name}({', '.join(parameters)}) -> {answer}:"
    return [line] if len(line) <= WIDTH else [f"def {name}(", *(f"    {one}," for one in parameters), f") -> {answer}:"]


def import_from(module: str, names: Iterable[str], indent: int = 0) -> list[str]:
    """`from module import names`, opened where it is too long; names that are sorted already."""
    space = " " * indent
    names = list(names)
    line = f"{space}from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return [line]
    return [f"{space}from {module} import (", *(f"{space}    {name}," for name in names), f"{space})"]


def _opened(head: str, items: list[str]) -> list[str]:
    line = f"{head}({', '.join(items)}):"
    return [line] if len(line) <= WIDTH else [f"{head}(", *(f"    {item}," for item in items), "):"]


def _lines(*lines: str) -> str:
    return "\n".join((*lines, ""))
