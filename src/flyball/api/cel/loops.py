"""What macros stand for, as loops of Python: the same results, errors and costs as the trees they expand into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from flyball.api.cel.code import LIMIT, SPENT, VARIES, Code, Evaluate, charge
from flyball.api.cel.errors import CostExceeded, EvalError
from flyball.api.cel.nodes import Fold
from flyball.api.cel.operators import NO_OVERLOAD, told
from flyball.api.cel.values import ABSENT, ListValue, MapValue, MapView

if TYPE_CHECKING:
    from flyball.api.cel.compiler import Compiler

__all__ = ["compile_fold"]

_END: Final = object()
Items = Callable[[list[Any]], Iterator[Any]]


def compile_fold(compiler: Compiler, fold: Fold) -> Code:
    """Compile a loop."""
    if fold.kind == "bind":
        return compiler.with_bound(fold.accu, compiler.new_slot(), fold.init, fold.result)
    range_ = compiler.compile(fold.range)
    slot = compiler.new_slot()
    variables = {fold.var: slot}
    if fold.var2 is None:
        items = _items(range_.call)
    else:
        second = compiler.new_slot()
        variables[fold.var2] = second
        items = _pairs(range_.call, second)
    body = compiler.within(variables, fold.body)
    where = None if fold.where is None else compiler.within(variables, fold.where)
    match fold.kind:
        case "all":
            return Code(_quantified(items, slot, body, stop=False, asked=2), range_.cost + 1)
        case "exists":
            return Code(_quantified(items, slot, body, stop=True, asked=3), range_.cost + 1)
        case "one":
            return Code(_one(items, slot, body), range_.cost + 2)
        case "list":
            return Code(_listed(items, slot, body, where), range_.cost + 1)
        case "entries":
            return Code(_mapped(items, slot, body, where, keyed=True), range_.cost + 1)
        case _:
            return Code(_mapped(items, slot, body, where, keyed=False), range_.cost + 1)


def _items(range_: Evaluate) -> Items:
    def items(frame: list[Any]) -> Iterator[Any]:
        value = range_(frame)
        if isinstance(value, (list, ListValue, MapView)):
            return iter(value)
        raise EvalError(NO_OVERLOAD)

    return items


def _pairs(range_: Evaluate, second: int) -> Items:
    """Go through indices or keys, with the values in a slot of their own."""

    def items(frame: list[Any]) -> Iterator[Any]:
        value = range_(frame)
        if isinstance(value, (list, ListValue)):
            for place, item in enumerate(value):
                frame[second] = item
                yield place
        elif isinstance(value, MapView):
            for key in value:
                frame[second] = value.find(key)
                yield key
        else:
            raise EvalError(NO_OVERLOAD)

    return items


def _quantified(items: Items, slot: int, body: Code, *, stop: bool, asked: int) -> Evaluate:
    """Ask of each item until one says `stop`; `asked` is the price of the question whether to go on."""
    call, each = body.call, asked + 1 + body.cost

    def loop(frame: list[Any]) -> Any:
        error: EvalError | None = None
        left = items(frame)
        for item in left:
            spent = frame[SPENT] = frame[SPENT] + each
            if spent > frame[LIMIT]:
                raise CostExceeded
            frame[slot] = item
            try:
                value = call(frame)
            except EvalError as caught:
                error = error or caught
                continue
            if value is stop:
                if next(left, _END) is not _END:
                    frame[SPENT] += asked
                return stop
            if type(value) is not bool:
                error = error or EvalError(NO_OVERLOAD)
        if error is not None:
            raise error
        return not stop

    return loop


def _one(items: Items, slot: int, body: Code) -> Evaluate:
    call, each = body.call, body.cost

    def loop(frame: list[Any]) -> bool:
        found = 0
        error: EvalError | None = None
        for item in items(frame):
            charge(frame, each)
            frame[slot] = item
            try:
                value = call(frame)
            except EvalError as caught:
                error = caught
                continue
            if value is True:
                found += 1
                frame[SPENT] += 2
            elif value is not False:
                error = EvalError(NO_OVERLOAD)
        if error is not None:
            raise error
        return found == 1

    return loop


def _price_of_item(body: Code) -> int:
    """Tell what it costs to add an item: a list is made of it, unless it is always the same."""
    return 2 + (0 if body.value is not VARIES else 10 + body.cost)


def _listed(items: Items, slot: int, body: Code, where: Code | None) -> Evaluate:
    call, each = body.call, _price_of_item(body)
    if where is not None:
        return _filtered(items, slot, body, where)

    def loop(frame: list[Any]) -> list[Any]:
        made: list[Any] = []
        for item in items(frame):
            spent = frame[SPENT] = frame[SPENT] + each
            if spent > frame[LIMIT]:
                raise CostExceeded
            frame[slot] = item
            made.append(call(frame))
        return made

    return loop


def _filtered(items: Items, slot: int, body: Code, where: Code) -> Evaluate:
    call, each, test, asked = body.call, _price_of_item(body), where.call, where.cost

    def loop(frame: list[Any]) -> list[Any]:
        made: list[Any] = []
        for item in items(frame):
            spent = frame[SPENT] = frame[SPENT] + asked
            if spent > frame[LIMIT]:
                raise CostExceeded
            frame[slot] = item
            value = test(frame)
            if value is True:
                frame[SPENT] += each
                made.append(call(frame))
            elif value is not False:
                raise EvalError(NO_OVERLOAD)
        return made

    return loop


def _mapped(items: Items, slot: int, body: Code, where: Code | None, *, keyed: bool) -> Evaluate:
    """Make a map: of the keys and what the body says, or of the maps that the body makes."""
    call, each = body.call, body.cost + (3 if keyed else 2)
    test, asked = (None, 0) if where is None else (where.call, where.cost)

    def loop(frame: list[Any]) -> MapValue:
        made = MapValue()
        for item in items(frame):
            charge(frame, asked)
            frame[slot] = item
            value = True if test is None else test(frame)
            if value is False:
                continue
            if value is not True:
                raise EvalError(NO_OVERLOAD)
            frame[SPENT] += each
            if keyed:
                _insert(made, item, call(frame))
            else:
                found = call(frame)
                for key in found:
                    _insert(made, key, found.find(key))
        return made

    return loop


def _insert(made: MapValue, key: Any, value: Any) -> None:
    if made.find(key) is not ABSENT:
        raise EvalError(f"insert failed: key {told(key)} already exists")
    made.insert(key, value)
