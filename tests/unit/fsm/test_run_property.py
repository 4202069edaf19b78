"""Random machines: the engine does what a slow and obvious interpreter of the rules does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.machines import answered, logged, make

from flyball.fsm import model
from flyball.fsm.run import FINAL, StepLimitError, StuckError
from flyball.fsm.run.words import machine as level

LIMIT = 40

# -- the interpreter ----------


class Over(Exception):
    """The run ends early: stuck or over the limit."""


class Interrupt(Exception):
    """An error transition of a composite around takes over."""

    def __init__(self, owner: tuple[str, ...], transition: model.Transition) -> None:
        super().__init__()
        self.owner = owner
        self.transition = transition


@dataclass
class World:
    """What the rules see and leave behind."""

    true: set[str]
    fail: set[str]
    stay: bool
    states: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    error: str | None = None
    steps: int = 0

    def act(self, calls: tuple[model.Call, ...]) -> str | None:
        for call in calls:
            self.calls.append(call.key)
            if call.key in self.fail or call.name in self.fail:
                self.error = call.key if call.key in self.fail else call.name
                return call.key
        return None

    def holds(self, guard: model.GuardExpr) -> bool:
        match guard:
            case model.Call():
                return self.error is not None if guard.name == "IsError" else guard.key in self.true
            case model.Not(operand):
                return not self.holds(operand)
            case model.And(operands):
                return all(self.holds(operand) for operand in operands)
            case model.Or(operands):
                return any(self.holds(operand) for operand in operands)

    def count(self) -> None:
        if self.steps == LIMIT:
            raise Over
        self.steps += 1


Outer = tuple[tuple[tuple[str, ...], model.State], ...]


def takes(world: World, state: model.State, transitions: tuple[model.Transition, ...]) -> model.Transition | None:
    """The error transition of one state that takes a failure."""
    del state
    for transition in transitions:
        if (
            transition.error is not None
            and not transition.error.names
            and (transition.guard is None or world.holds(transition.guard))
        ):
            return transition
    return None


def nearest(world: World, transitions: tuple[model.Transition, ...], outer: Outer) -> model.Transition | None:
    """Of the state itself; or Interrupt for a composite around it; or None."""
    own = takes(world, model.State("?"), transitions)
    if own is not None:
        return own
    for path, composite in reversed(outer):
        found = takes(world, composite, composite.transitions)
        if found is not None:
            raise Interrupt(path, found)
    return None


def interpret(world: World, machine: model.Machine, prefix: tuple[str, ...], outer: Outer) -> None:
    """One level, from its initial state to its final one."""
    name: str | None = None  # the initial pseudo state
    fresh = True
    while True:
        state = model.State("[*]", do=machine.initial_do, transitions=machine.initial)
        state = state if name is None else machine.states[name]
        path = (*prefix, state.name)
        try:
            failed = world.act(state.entry) if fresh else None
            if failed is None:
                if state.inner is not None:
                    interpret(world, state.inner, path, (*outer, (path, state)))
                else:
                    failed = world.act(state.do)
            chosen = choose(world, state, failed, outer)
        except Interrupt as interrupt:
            world.act(state.exit)
            if interrupt.owner != path:
                raise
            chosen = interrupt.transition
        else:
            if chosen is None:
                world.count()
                fresh = False
                continue
            world.act(state.exit)
        target = arrive(world, state, chosen, outer)
        world.states.append("/".join((*prefix, target))) if target == FINAL else enter(world, prefix, target)
        if target == FINAL:
            return
        name, fresh = target, True


def enter(world: World, prefix: tuple[str, ...], target: str) -> None:
    world.count()
    world.states.append("/".join((*prefix, target)))


def choose(world: World, state: model.State, failed: str | None, outer: Outer) -> model.Transition | None:
    """Which transition is taken; None to stay."""
    if failed is not None:
        found = nearest(world, state.transitions, outer)
        if found is not None:
            return found
    for transition in state.transitions:
        if transition.is_guarded and transition.guard is not None and world.holds(transition.guard):
            return transition
    for transition in state.transitions:
        if transition.is_default:
            return transition
    if world.stay or state.poll:
        return None
    raise Over


def arrive(world: World, state: model.State, chosen: model.Transition, outer: Outer) -> str:
    """Where a transition leads once its actions have run."""
    while True:
        if world.act(chosen.actions) is None:
            return chosen.target
        found = nearest(world, () if chosen.error is not None else state.transitions, outer)
        if found is None:
            return FINAL
        chosen = found


# -- random machines ----------

ACTIONS = ("X", "Y", "Z")
GUARDS = ("P", "Q", "R", "IsError")


def calls(names: tuple[str, ...]) -> st.SearchStrategy[model.Call]:
    params = st.sampled_from([(), ("1",), ("1", "2")])
    return st.builds(
        lambda name, given: model.Call(name, () if name == "IsError" else given), st.sampled_from(names), params
    )


def lists(most: int) -> st.SearchStrategy[tuple[model.Call, ...]]:
    return st.lists(calls(ACTIONS), max_size=most).map(tuple)


guards: st.SearchStrategy[model.GuardExpr] = st.recursive(
    calls(GUARDS),
    lambda inner: st.one_of(
        inner.map(model.Not),
        st.lists(inner, min_size=2, max_size=3).map(lambda some: model.And(tuple(some))),
        st.lists(inner, min_size=2, max_size=3).map(lambda some: model.Or(tuple(some))),
    ),
    max_leaves=4,
)


def transitions(names: list[str]) -> st.SearchStrategy[model.Transition]:
    errors = st.sampled_from([None, None, None, model.ErrorMatch(), model.ErrorMatch(("Other",))])
    return st.builds(
        lambda target, guard, actions, error: model.Transition("?", target, guard, actions, error),
        st.sampled_from([*names, FINAL]),
        st.one_of(st.none(), guards),
        lists(1),
        errors,
    )


@st.composite
def machines(draw: st.DrawFn, depth: int = 2) -> model.Machine:
    names = [f"S{number}" for number in range(draw(st.integers(1, 4)))]
    moves = st.lists(transitions(names), max_size=4).map(tuple)
    states: list[model.State] = []
    for name in names:
        state = model.State(name, draw(lists(1)), draw(lists(2)), draw(lists(1)), draw(moves), poll=draw(st.booleans()))
        if depth and draw(st.integers(0, 3)) == 0:
            state = replace(state, inner=draw(machines(depth - 1)))
        states.append(state)
    initial = draw(st.lists(transitions(names), min_size=1, max_size=2).map(tuple))
    return level(initial, states, draw(lists(1)))


def uses(machine: model.Machine, kind: tuple[str, ...]) -> Iterator[str]:
    for name in kind:
        for params in ((), ("1",), ("1", "2")):
            yield model.Call(name, params).key


KEYS = st.sampled_from(
    [model.Call(name, params).key for name in (*ACTIONS, *GUARDS) for params in ((), ("1",), ("1", "2"))]
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(machine=machines(), true=st.sets(KEYS, max_size=6), fail=st.sets(KEYS, max_size=5), stay=st.booleans())
def test_the_engine_does_what_the_rules_say(machine: model.Machine, true: set[str], fail: set[str], stay: bool) -> None:
    world = World(true, {key for key in fail if key[0] in "XYZ"}, stay)
    over = False
    try:
        interpret(world, machine, (), ())
    except Over:
        over = True
    tested = make(
        *machine.states.values(),
        initial=machine.initial,
        initial_do=machine.initial_do,
        actions={name: logged(name) for name in ACTIONS},
        guards={name: answered(name) for name in GUARDS},
        max_steps=LIMIT,
        on_no_transition="stay" if stay else "error",
        debug=False,
    )()
    tested.state.true = true
    tested.state.fail = {key: ValueError(key) for key in world.fail}
    error = tested.settle_sync().error
    assert list(tested.trace.states) == world.states
    assert tested.state.calls == world.calls
    assert isinstance(error, StuckError | StepLimitError) is over
    if not over:
        assert (None if error is None else str(error)) == world.error
