"""Functions and tables: markers, parameters by annotation, and what is refused before any run."""

from __future__ import annotations

import enum
import sys
import types
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import pytest
from tests.support.machines import make

from flyball.fsm.run import (
    FINAL,
    AppContext,
    AppState,
    Machine,
    Table,
    TableError,
    action,
    bound,
    call,
    error_is,
    guard,
    machine_type,
    marker_of,
    state,
    to,
)
from flyball.fsm.run.values import convert

if TYPE_CHECKING:
    from decimal import Decimal

M = Machine[AppContext, AppState]


class Colour(enum.StrEnum):
    RED = "red"
    GREEN = "green"


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


@pytest.mark.parametrize(
    ("text", "wanted", "value"),
    [
        ("a b", str, "a b"),
        ("", str, ""),
        ("5", int, 5),
        ("-5", int, -5),
        ("2.5", float, 2.5),
        ("true", bool, True),
        ("No", bool, False),
        ("5m", timedelta, timedelta(minutes=5)),
        ("1h30m", timedelta, timedelta(minutes=90)),
        ("1.5s", timedelta, timedelta(seconds=1.5)),
        ("250ms", timedelta, timedelta(milliseconds=250)),
        ("2d", timedelta, timedelta(days=2)),
        ("-10s", timedelta, timedelta(seconds=-10)),
        ("red", Colour, Colour.RED),
        ("GREEN", Colour, Colour.GREEN),
        ("2", Level, Level.HIGH),
        ("HIGH", Level, Level.HIGH),
        ("b", Literal["a", "b"], "b"),
        ("2", Literal[1, 2], 2),
        ("", Optional[int], None),  # noqa: UP045 - the old spelling must work too
        ("7", int | None, 7),
        ("x", int | str, "x"),
        ("7", str | int, 7),
        ("7", Annotated[int, "seconds"], 7),
        ("7", Any, "7"),
    ],
)
def test_texts_become_values(text: str, wanted: Any, value: object) -> None:
    found = convert(text, wanted)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "wanted", "says"),
    [
        ("x", int, "'x' is not a whole number"),
        ("x", float, "not a number"),
        ("maybe", bool, "neither true nor false"),
        ("5", timedelta, "not a duration such as 5m"),
        ("m5", timedelta, "not a duration"),
        ("blue", Colour, "'blue' is none of red, green"),
        ("c", Literal["a", "b"], "'c' is none of a, b"),
        ("x", int | None, "not a whole number"),
        ("x", list[str], "none of str, int"),
    ],
)
def test_texts_that_are_no_value(text: str, wanted: Any, says: str) -> None:
    with pytest.raises((ValueError, TypeError), match=says):
        convert(text, wanted)


def one_call(function: Callable[..., Any], *params: str) -> M:
    """A machine that calls a function once."""
    table = Table(
        "Tested",
        initial=[to("A")],
        states=[state("A", do=[call("Act", *params)], transitions=[to(FINAL)])],
        actions={"Act": function},
        guards={},
    )
    return machine_type(table, AppContext, AppState)()


def test_parameters_are_converted_by_annotation() -> None:
    seen: list[object] = []

    @action("Act")
    def act(m: M, after: timedelta, colour: Colour, times: int = 1, *rest: float) -> None:
        seen.extend([after, colour, times, *rest])

    one_call(act, "5m", "red").run_sync()
    one_call(act, "5m", "red", "3", "0.5", "1").run_sync()
    assert seen == [timedelta(minutes=5), Colour.RED, 1, timedelta(minutes=5), Colour.RED, 3, 0.5, 1.0]


def test_untyped_parameters_are_texts_and_none_may_be_taken() -> None:
    seen: list[object] = []
    one_call(lambda m, *params: seen.append(params), "1", "").run_sync()
    one_call(lambda m, a, b: seen.append((a, b)), "1", "2").run_sync()
    one_call(lambda m: seen.append("none")).run_sync()
    assert seen == [("1", ""), ("1", "2"), "none"]


def test_a_bound_method_is_a_function_too() -> None:
    class Actions:
        seen: int = 0

        def act(self, m: M, number: int) -> None:
            self.seen = number

    actions = Actions()
    one_call(actions.act, "4").run_sync()
    assert actions.seen == 4


@pytest.mark.parametrize(
    ("function", "params", "says"),
    [
        (lambda m: None, ("1",), "passes 1 parameter, the function takes 0"),
        (lambda m, a, b: None, ("1",), "passes 1 parameter, the function takes 2"),
        (lambda m, a, b=None: None, (), "passes 0 parameters, the function takes 1 to 2"),
        (lambda m, a, *rest: None, (), "takes at least 1"),
        (lambda: None, (), "first parameter must be the machine"),
        (lambda m, *, a: None, (), "must be given by keyword"),
    ],
)
def test_a_wrong_number_of_parameters_is_refused(
    function: Callable[..., Any], params: tuple[str, ...], says: str
) -> None:
    with pytest.raises(TableError, match=says) as caught:
        one_call(function, *params)
    assert "action Act" in str(caught.value)
    assert "state A" in str(caught.value)
    assert __file__ in str(caught.value)


def test_a_text_that_does_not_fit_is_refused() -> None:
    def act(m: M, times: int) -> None: ...

    with pytest.raises(
        TableError, match=r"action Act\(often\) of state A does not fit .*act .*parameter times: 'often'"
    ):
        one_call(act, "often")


def test_an_annotation_that_is_unknown_at_run_time_is_refused() -> None:
    def act(m: M, amount: Decimal) -> None: ...

    with pytest.raises(TableError, match="Decimal is not known at run time; import it outside of TYPE_CHECKING"):
        one_call(act, "1")


def test_unresolvable_annotations_of_the_machine_and_the_result_do_not_matter() -> None:
    seen: list[timedelta] = []

    def act(m: Decimal, after: timedelta) -> Decimal | None:
        seen.append(after)
        return None

    one_call(act, "1s").run_sync()
    assert seen == [timedelta(seconds=1)]


# -- tables ----------


def table(**changes: Any) -> Table:
    given: dict[str, Any] = {
        "initial": [to("A")],
        "states": [state("A", do=[call("Act")], transitions=[to(FINAL, call("Ask"))])],
        "actions": {"Act": lambda m: None},
        "guards": {"Ask": lambda m: True},
    }
    return Table("Tested", **(given | changes))


@action("Other")
def other(m: M) -> None:
    """Marked with another name."""


@guard("Act")
def a_guard(m: M) -> bool:
    """Marked as another kind."""
    return True


async def waits(m: M) -> bool:
    return True


@action("Act", thread=True)
async def threaded(m: M) -> None:
    """Async and in a thread at once."""


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"actions": {}}, r"action Act of state A has no function; write one marked @action\(\"Act\"\)"),
        ({"guards": {}}, "guard Ask of state A has no function"),
        ({"actions": {"Act": lambda m: None, "More": lambda m: None}}, "no state uses the action More"),
        ({"actions": {"Act": other}}, r"action Act is bound to other .* marked @action\(\"Other\"\)"),
        ({"actions": {"Act": a_guard}}, r"marked @guard\(\"Act\"\)"),
        ({"actions": {"Act": 5}}, "cannot be called"),
        ({"guards": {"Ask": waits}}, "guard Ask, waits .* is async"),
        ({"actions": {"Act": threaded}}, "is async; thread=True is for plain ones"),
        ({"initial": []}, r"\[\*\] leads nowhere"),
        ({"initial": [to("Nowhere")]}, "leads to Nowhere, which is no state beside it"),
    ],
)
def test_tables_that_cannot_be_built(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(TableError, match=says):
        table(**changes)


def test_one_name_marked_twice_in_a_module_is_refused() -> None:
    module = types.ModuleType("twins")
    source = "from flyball.fsm.run import action\n" + "".join(
        f"@action('Act')\ndef {name}(m): ...\n" for name in ("first", "second")
    )
    exec(source, module.__dict__)
    sys.modules["twins"] = module
    try:
        with pytest.raises(TableError, match=r"action Act is marked twice: first .* and second"):
            table(actions={"Act": module.__dict__["second"]})
    finally:
        del sys.modules["twins"]


def test_markers_store_what_they_are_given_and_change_nothing() -> None:
    def plain(m: M) -> None: ...

    assert action("Act", fails=False)(plain) is plain
    marker = marker_of(plain)
    assert marker is not None
    assert (marker.kind, marker.name, marker.thread, marker.fails) == ("action", "Act", False, False)
    with pytest.raises(TableError, match="already the action Act"):
        guard("Ask")(plain)  # type: ignore[type-var]


def test_rebound_is_the_same_table_over_other_functions() -> None:
    seen: list[str] = []
    original = table()
    replayed = original.rebound(actions=lambda name: lambda m, *params: seen.append(name))
    machine_type(replayed, AppContext, AppState)().run_sync()
    assert seen == ["Act"]
    assert replayed.machine is original.machine
    assert replayed.guards == original.guards


def test_bound_takes_marked_functions_and_modules() -> None:
    from flyball.fsm import model

    diagram = model.Diagram("Tested", table().machine, actions=("Act",), guards=("Ask",))

    @action("Act")
    def act(m: M) -> None: ...

    @guard("Ask")
    def ask(m: M) -> bool:
        return True

    module = types.ModuleType("some")
    module.__dict__.update(ask=ask, other=other)
    assert bound(diagram, act, module).actions == {"Act": act}
    with pytest.raises(TableError, match="no function is marked for guard Ask"):
        bound(diagram, act)
    with pytest.raises(TableError, match="has no marker"):
        bound(diagram, act, ask, lambda m: None)
    with pytest.raises(TableError, match="marked twice"):
        bound(diagram, act, module, threaded)


def test_error_is_by_class_base_class_or_reason() -> None:
    assert not error_is(None)
    assert not error_is(None, "ValueError")
    assert error_is(ValueError())
    assert error_is(ValueError(), "KeyError", "ValueError")
    assert error_is(FileNotFoundError(), "OSError")
    assert not error_is(ValueError(), "KeyError")


def test_a_guard_that_returns_something_to_await_is_an_error() -> None:
    machine = make(state("A", transitions=[to(FINAL, call("P"))]), guards={"P": lambda m: waits(m)})()
    error = machine.settle_sync().error
    assert "plain functions" in str(error)


def test_a_guard_may_answer_with_anything_true_or_false() -> None:
    machine = make(
        state("A", transitions=[to("A", call("P")), to(FINAL, call("Q"))]), guards={"P": lambda m: [], "Q": lambda m: 1}
    )()
    machine.run_sync()
    assert list(machine.trace.checks) == ["P=false", "Q=true"]
