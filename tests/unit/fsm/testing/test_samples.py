"""What tests of an operator's machine start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from flyball.api import Ge, MinLength, Resource, Spec, Status
from flyball.fsm.generate.merge import merge
from flyball.fsm.generate.newfiles import FileMaker
from flyball.fsm.generate.stubs import FunctionShape
from flyball.fsm.generate.wanted import wanted
from flyball.fsm.run import AppContext, AppState, Machine, Table, action, machine_type
from flyball.fsm.testing import EventLog, diagram_of, is_stub, run_action, sample_of


class PartSpec(Spec):
    """One part."""

    image: Annotated[str, MinLength(1)]
    port: Annotated[int, Ge(1)]
    policy: Literal["Always", "Never"]
    replicas: int = 3


class PartStatus(Status):
    """Nothing of its own."""


class Part(Resource, group="test.example.com", version="v1"):
    """A kind with required fields."""

    spec: PartSpec
    status: PartStatus


def test_a_sample_has_what_the_schema_requires() -> None:
    sample = sample_of(Part, "demo")
    assert (sample.metadata.name, sample.metadata.namespace) == ("demo", "default")
    assert (sample.spec.image, sample.spec.port, sample.spec.policy, sample.spec.replicas) == ("x", 1, "Always", 3)


async def test_an_event_log_takes_any_call_awaited_or_not() -> None:
    events: Any = EventLog()
    events.normal("Created", message="it is there")
    await events.warning("Failed")
    assert events.calls == [("normal", ("Created",), {"message": "it is there"}), ("warning", ("Failed",), {})]


TEXT = "title Order\n[*] --> A\nA: do / Load(5)\nA: do / Save\nA --> [*]\n"


def test_a_stub_is_known_at_run_time_and_its_test_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = FunctionShape("action")
    head = FileMaker("shop").functions_head("action", empty=False).encode()
    raw = merge(head, "stubs_of_test_samples.py", shape, wanted(diagram_of(TEXT), "action")).raw
    text = raw.decode().replace("    # TODO: implement", "    assert m", 1)
    (tmp_path / "stubs_of_test_samples.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    import importlib

    module: Any = importlib.import_module("stubs_of_test_samples")
    assert not is_stub(module.load)
    assert is_stub(module.save)

    table = Table.of("Order", diagram_of(TEXT).machine, actions={"Load": module.load, "Save": module.save}, guards={})
    machine = machine_type(table, AppContext, AppState)()
    run_action(machine, "Load", "5")
    with pytest.raises(pytest.skip.Exception, match="action Save is not implemented yet"):
        run_action(machine, "Save")
    with pytest.raises(LookupError, match="Order has no action Other; it has Load, Save"):
        run_action(machine, "Other")


def test_parameters_are_converted_as_in_a_run() -> None:
    seen: list[int] = []

    @action("Load")
    def load(m: Machine[AppContext, AppState], number: int) -> None:
        seen.append(number)

    @action("Save")
    def save(m: Machine[AppContext, AppState]) -> None:
        raise ValueError("full")

    table = Table.of("Order", diagram_of(TEXT).machine, actions={"Load": load, "Save": save}, guards={})
    machine = machine_type(table, AppContext, AppState)()
    run_action(machine, "Load", "7")
    assert seen == [7]
    with pytest.raises(ValueError, match="full"):
        run_action(machine, "Save")
