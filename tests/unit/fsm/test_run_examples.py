"""The worked examples: traffic light, order processor, SimpleJob in two editions, the finalizer pattern."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flyball.errors import NotFound
from flyball.fsm.operator import Done, OperatorContext, OperatorState, Result, reconcile_once
from flyball.fsm.run import (
    AppContext,
    AppState,
    Machine,
    Permanent,
    Requeue,
    StepLimitError,
    StuckError,
    TableError,
    action,
    guard,
    load,
)

EXAMPLES = Path(__file__).parent / "examples"


@guard("IsError")
def is_error(m: Machine[AppContext, AppState], *params: str) -> bool:
    return m.has_error(*params)


# -- traffic light ----------


@dataclass(slots=True)
class Light(AppState):
    fail_at: int = 0
    seconds: list[int] = field(default_factory=list[int])


@action("SwitchIn")
def switch_in(m: Machine[AppContext, Light], seconds: int) -> None:
    m.state.seconds.append(seconds)
    if len(m.state.seconds) == m.state.fail_at:
        raise RuntimeError("the lamp is broken")


def traffic_light() -> type[Machine[AppContext, Light]]:
    return load(EXAMPLES / "traffic_light.puml", switch_in, is_error, state=Light)


async def test_the_traffic_light_ends_with_the_seventh_switch() -> None:
    machine = traffic_light()(state=Light(fail_at=7))
    with pytest.raises(RuntimeError, match="lamp"):
        await machine.run()
    assert " ".join(machine.trace.states) == "Red Yellow Green FlashingYellow Red Yellow Green [*]"
    assert machine.state.seconds == [5, 1, 5, 3, 5, 1, 5]


async def test_the_traffic_light_without_failure_ends_at_the_step_limit() -> None:
    machine = traffic_light()()
    with pytest.raises(StepLimitError, match="TrafficLight did not end within 1000 steps"):
        await machine.run()


# -- order processor ----------


@dataclass
class Order:
    number: str
    stock: list[bool]
    status: str = ""
    reason: str = ""


@dataclass(slots=True)
class Shop(AppState):
    order: Order = field(default_factory=lambda: Order("", []))


def sets(name: str, status: str) -> Callable[..., Any]:
    @action(name)
    async def act(m: Machine[AppContext, Shop]) -> None:
        m.state.order.status = status

    return act


@action("CancelOrder")
async def cancel_order(m: Machine[AppContext, Shop], reason: str) -> None:
    m.state.order.status, m.state.order.reason = "Cancelled", reason


@guard("IsOutOfStock")
def is_out_of_stock(m: Machine[AppContext, Shop]) -> bool:
    return not all(m.state.order.stock)


@guard("HasShippingFailed")
def has_shipping_failed(m: Machine[AppContext, Shop]) -> bool:
    return False


def order_processor() -> type[Machine[AppContext, Shop]]:
    steps = {
        "InitializeOrder": "New",
        "ProcessOrder": "Processed",
        "ShipOrder": "Shipped",
        "CompleteOrder": "Completed",
        "HandleError": "Failed",
    }
    functions = [sets(name, status) for name, status in steps.items()]
    return load(
        EXAMPLES / "order_processor.puml",
        *functions,
        cancel_order,
        is_error,
        is_out_of_stock,
        has_shipping_failed,
        state=Shop,
    )


async def test_an_order_in_stock_is_completed() -> None:
    machine = order_processor()(state=Shop(order=Order("ORD-001", [True, True])))
    await machine.run()
    assert " ".join(machine.trace.states) == "InitializingOrder ProcessingOrder ShippingOrder CompletingOrder [*]"
    assert machine.state.order.status == "Completed"
    assert list(machine.trace.checks) == [
        f"{name}=false" for name in ("IsError", "IsError", "IsOutOfStock", "IsError", "HasShippingFailed", "IsError")
    ]


async def test_an_order_out_of_stock_is_cancelled() -> None:
    machine = order_processor()(state=Shop(order=Order("ORD-002", [False])))
    await machine.run()
    assert " ".join(machine.trace.states) == "InitializingOrder ProcessingOrder CancellingOrderOutOfStock [*]"
    assert (machine.state.order.status, machine.state.order.reason) == ("Cancelled", "OutOfStock")


# -- SimpleJob, first edition ----------


@dataclass
class World:
    """A cluster as small as can be: one SimpleJob, one Job."""

    simple_job: SimpleNamespace | None
    job: SimpleNamespace | None = None
    broken: bool = False


class Refused(Exception):
    """The API server does not want the status."""


@dataclass(slots=True)
class JobContext(OperatorContext):
    world: World = field(default_factory=lambda: World(None))


@dataclass(slots=True)
class JobState(OperatorState[SimpleNamespace]):
    job: SimpleNamespace | None = None


JobMachine = Machine[JobContext, JobState]


@action("Initialize")
async def initialize(m: JobMachine) -> None:
    m.state.instance = None


@action("LoadResource")
async def load_resource(m: JobMachine) -> None:
    assert m.state.resource_name == "demo"
    m.state.instance = m.context.world.simple_job


@action("CheckJobStatus")
async def check_job_status(m: JobMachine) -> None:
    m.state.job = m.context.world.job


@action("CreateJob")
async def create_job(m: JobMachine) -> None:
    assert m.state.instance is not None
    m.state.job = m.context.world.job = SimpleNamespace(active=0, succeeded=0, failed=0)
    m.state.instance.attempts += 1


@action("RetryJob")
async def retry_job(m: JobMachine) -> None:
    assert m.state.instance is not None
    m.context.world.job = None
    m.state.instance.attempts += 1


@action("SetPhase")
async def set_phase(m: JobMachine) -> None:
    job, instance = m.state.job, m.state.instance
    assert job is not None
    assert instance is not None
    if job.succeeded:
        instance.phase = "Completed"
    elif job.failed or instance.attempts >= instance.max_retries:
        instance.phase = "Failed"
    else:
        instance.phase = "Running" if job.active else "Pending"


@action("UpdateStatus")
async def update_status(m: JobMachine) -> None:
    assert m.state.instance is not None
    m.state.result = Done if m.state.instance.phase in ("Completed", "Failed") else Result.after(3)
    if m.context.world.broken:
        raise Refused("no")


@action("HandleError")
async def handle_error(m: JobMachine) -> None:
    m.state.result = Done


@guard("IsNotFound")
def is_not_found(m: JobMachine) -> bool:
    return m.state.instance is None


@guard("IsJobMissing")
def is_job_missing(m: JobMachine) -> bool:
    return m.state.job is None


@guard("IsMaxRetriesExceeded")
def is_max_retries_exceeded(m: JobMachine) -> bool:
    return m.state.instance is not None and m.state.instance.attempts >= m.state.instance.max_retries


@guard("IsJobFailed")
def is_job_failed(m: JobMachine) -> bool:
    return m.state.job is not None and m.state.job.failed > 0


GUARDS = (is_error, is_not_found, is_job_missing, is_max_retries_exceeded, is_job_failed)
LOADED = ["Initializing", "LoadingResource"]
CHECKED = [*LOADED, "CheckingJobStatus"]


def simple_job() -> type[JobMachine]:
    return load(
        EXAMPLES / "simplejob.puml",
        *(initialize, load_resource, check_job_status, create_job, retry_job, set_phase, update_status, handle_error),
        *GUARDS,
        context=JobContext,
        state=JobState,
    )


def demo(**changes: Any) -> SimpleNamespace:
    return SimpleNamespace(**({"attempts": 0, "max_retries": 3, "phase": ""} | changes))


def job(**changes: int) -> SimpleNamespace:
    return SimpleNamespace(**({"active": 0, "succeeded": 0, "failed": 0} | changes))


@pytest.mark.parametrize(
    ("world", "path", "phase", "result"),
    [
        (World(demo()), [*CHECKED, "CreatingJob", "UpdatingStatus"], "", Result.after(3)),
        (
            World(demo(attempts=1), job(active=1)),
            [*CHECKED, "SettingPhase", "UpdatingStatus"],
            "Running",
            Result.after(3),
        ),
        (World(demo(attempts=1), job(succeeded=1)), [*CHECKED, "SettingPhase", "UpdatingStatus"], "Completed", Done),
        (World(demo(attempts=1), job(failed=1)), [*CHECKED, "RetryingJob", "UpdatingStatus"], "", Result.after(3)),
        (World(demo(attempts=3), job(active=1)), [*CHECKED, "SettingPhase", "UpdatingStatus"], "Failed", Done),
    ],
)
async def test_simple_job_paths(world: World, path: list[str], phase: str, result: Result) -> None:
    machine = simple_job()(JobContext(world=world))
    machine.state.resource_name = "demo"
    assert await machine.run() == result
    assert list(machine.trace.states) == [*path, "[*]"]
    assert world.simple_job is not None
    assert world.simple_job.phase == phase


async def test_simple_job_gone() -> None:
    machine = simple_job()(JobContext(world=World(None)))
    machine.state.resource_name = "demo"
    assert await machine.run() == Done
    assert list(machine.trace.states) == [*LOADED, "[*]"]


async def test_simple_job_update_fails() -> None:
    world = World(demo(), broken=True)
    machine = simple_job()(JobContext(world=world))
    machine.state.resource_name = "demo"
    with pytest.raises(Refused):
        await machine.run()
    assert list(machine.trace.states) == [*CHECKED, "CreatingJob", "UpdatingStatus", "HandlingError", "[*]"]
    assert machine.outcome().result == Done


async def test_the_defect_of_two_runs_for_three_retries() -> None:
    world = World(demo())
    runs = 0
    for _ in range(10):
        before = world.job
        await reconcile_once(simple_job(), JobContext(world=world), "demo", "default")
        if world.job is not None and world.job is not before:
            runs += 1
            world.job.failed = 1
    assert runs == 2
    assert world.simple_job is not None
    assert (world.simple_job.attempts, world.simple_job.phase) == (3, "Failed")


# -- SimpleJob, current edition ----------


def test_the_current_edition_is_stuck_where_no_default_is_and_all_guards_are_false() -> None:
    from flyball.fsm.run import read_diagram
    from flyball.fsm.simulate import Scenario, simulate

    diagram = read_diagram(EXAMPLES / "simplejob_current.puml")
    stuck = simulate(diagram)
    loading = ["Initializing", "Initializing/InitializingContext", "Initializing/LoadingResource", "Initializing/[*]"]
    assert (stuck.path, stuck.stop) == ([*loading, "CheckingJobStatus"], "stuck:CheckingJobStatus")
    failed = simulate(diagram, Scenario(fail={"LoadResource": "always"}))
    assert failed.path == [*loading, "HandlingError", "[*]"]
    assert failed.checks == ["IsError=true", "IsError=true"]
    running = simulate(diagram, Scenario(guards={"IsJobRunning": True}))
    assert running.path == [*loading, "CheckingJobStatus", "UpdatingStatus", "[*]"]
    assert "SetPhase(Running|Job is running)" in running.actions


# -- the finalizer pattern ----------


@dataclass(slots=True)
class Thing(OperatorState[SimpleNamespace]):
    outside: set[str] = field(default_factory=set[str])
    broken: bool = False


ThingMachine = Machine[OperatorContext, Thing]


@guard("IsDeleting")
def is_deleting(m: ThingMachine) -> bool:
    return m.state.instance is not None and m.state.instance.deleting


@guard("HasFinalizer")
def has_finalizer(m: ThingMachine) -> bool:
    return m.state.instance is not None and "mine" in m.state.instance.finalizers


@action("Load")
async def load_thing(m: ThingMachine) -> None: ...


@action("CleanUp")
async def clean_up(m: ThingMachine) -> None:
    if m.state.broken:
        raise RuntimeError("the outside does not answer")
    m.state.outside.clear()


@action("RemoveFinalizer")
async def remove_finalizer(m: ThingMachine) -> None:
    assert m.state.instance is not None
    m.state.instance.finalizers.remove("mine")


@action("AddFinalizer")
async def add_finalizer(m: ThingMachine) -> None:
    assert m.state.instance is not None
    m.state.instance.finalizers.append("mine")


@action("Reconcile")
async def reconcile(m: ThingMachine) -> None:
    m.state.outside.add("made")


def finalizer_machine() -> type[ThingMachine]:
    return load(
        EXAMPLES / "finalizer.puml",
        *(load_thing, clean_up, remove_finalizer, add_finalizer, reconcile),
        *(is_error, is_not_found, is_deleting, has_finalizer),
        context=OperatorContext,
        state=Thing,
    )


async def thing(*finalizers: str, deleting: bool = False, broken: bool = False) -> ThingMachine:
    instance = SimpleNamespace(finalizers=list(finalizers), deleting=deleting)
    machine = finalizer_machine()(
        state=Thing(instance=instance, outside={"made"} if finalizers else set(), broken=broken)
    )
    await machine.settle()
    return machine


async def test_the_finalizer_is_added_before_anything_outside_exists() -> None:
    machine = await thing()
    assert list(machine.trace.actions) == ["Load", "AddFinalizer", "Reconcile"]
    assert machine.state.outside == {"made"}


async def test_deletion_cleans_up_and_then_removes_the_finalizer() -> None:
    machine = await thing("mine", deleting=True)
    assert list(machine.trace.actions) == ["Load", "CleanUp", "RemoveFinalizer"]
    assert machine.state.instance is not None
    assert (machine.state.instance.finalizers, machine.state.outside) == ([], set())
    assert (await thing("other", deleting=True)).trace.actions[-1] == "Load"


async def test_a_failing_clean_up_leaves_the_finalizer() -> None:
    machine = await thing("mine", deleting=True, broken=True)
    assert machine.state.instance is not None
    assert machine.state.instance.finalizers == ["mine"]
    assert isinstance(machine.outcome().error, RuntimeError)
    assert list(machine.trace.states)[-2:] == ["Finalizing/[*]", "[*]"]


# -- loading and operators ----------


def test_load_says_what_is_missing() -> None:
    with pytest.raises(TableError, match="TrafficLight: no function is marked for action SwitchIn"):
        load(EXAMPLES / "traffic_light.puml", is_error)


async def test_requeue_permanent_and_stuck_in_an_operator() -> None:
    from tests.support.machines import make

    from flyball.fsm.run import FINAL, AppContext, call, machine_type, state, to

    def operator(problem: Exception | None) -> ThingMachine:
        def act(m: ThingMachine) -> None:
            m.state.result = Result.now()
            if problem is not None:
                raise problem

        table = make(state("A", do=[call("Act")], transitions=[to(FINAL)]), actions={"Act": act}).table
        return machine_type(table, OperatorContext, Thing)()

    assert await operator(None).run() == Result.now()
    assert await operator(Requeue(after=5)).run() == Result.after(5)
    with pytest.raises(Permanent):
        await operator(Permanent("no")).run()
    with pytest.raises(NotFound):
        await operator(NotFound({"reason": "NotFound", "code": 404})).run()
    stuck = make(state("A", transitions=[to(FINAL, call("P"))]), guards={"P": lambda m: False}).table
    with pytest.raises(StuckError):
        await machine_type(stuck, AppContext, Thing)().run(timeout=5)


def test_a_context_without_a_client_says_so() -> None:
    with pytest.raises(Exception, match="the machine's context has no client"):
        OperatorContext().client.discovery  # noqa: B018
