"""The rules of a schema (`x-kubernetes-validations`), compiled once and asked about objects."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from flyball.api.cel.code import ProgramError
from flyball.api.cel.declared import Declared, declare, escape
from flyball.api.cel.environment import PER_CALL_LIMIT, Environment, Program
from flyball.api.cel.errors import CelError, CompileError, CostExceeded, EvalError
from flyball.api.cel.fieldpaths import resolve
from flyball.api.cel.operators import NO_OVERLOAD
from flyball.api.cel.types import Type, optional_of
from flyball.api.cel.values import NONE, OptionalValue
from flyball.api.fielderrors import FieldError, Reason
from flyball.api.structural.schema import Schema
from flyball.api.structural.validate import same

__all__ = ["BUDGET", "CompiledRule", "Rules", "compile_rule", "default_environment"]

BUDGET: Final = 10_000_000
"""What all rules may cost together, for one object."""

_BROKEN: Final = "rule compiler initialization error: failed to convert to declType for CEL validation rules"
_LONGEST_MESSAGE: Final = 5 * 1024
_OUT_OF_BUDGET: Final = "no further validation rules will be run"
_REASONS: Final = {
    "FieldValueRequired": Reason.REQUIRED,
    "FieldValueForbidden": Reason.FORBIDDEN,
    "FieldValueDuplicate": Reason.DUPLICATE,
}


@cache
def default_environment() -> Environment:
    """Return the environment of the rules of custom resources."""
    return Environment()


class CompiledRule(NamedTuple):
    """A rule, or why it is none."""

    source: Mapping[str, Any]
    program: Program | None
    error: str = ""
    message: Program | None = None
    message_error: str = ""
    field: str = ""

    @property
    def uses_old(self) -> bool:
        """Whether it compares with what was there before."""
        return self.program is not None and "oldSelf" in self.program.uses

    @property
    def takes_none(self) -> bool:
        """Whether what was there before is an optional."""
        return bool(self.source.get("optionalOldSelf"))

    def told(self) -> str:
        """Return the rule as errors name it."""
        return str(self.source.get("message") or self.source.get("rule") or "").strip()

    def default_message(self) -> str:
        """Return what is said when it does not hold."""
        message = self.source.get("message")
        return str(message).strip() if message else f"failed rule: {self.told()}"


def compile_rule(
    source: Mapping[str, Any], schema: Schema, type_: Type, environment: Environment | None = None
) -> CompiledRule:
    """Compile one rule of a schema that expressions see as a type."""
    environment = environment or default_environment()
    text = str(source.get("rule") or "")
    if not text.strip():
        return CompiledRule(source, None)
    variables = {"self": type_, "oldSelf": optional_of(type_) if source.get("optionalOldSelf") else type_}
    program, error = _compiled(environment, text, variables, "bool", "cel expression must evaluate to a bool", "")
    if program is None:
        return CompiledRule(source, None, error)
    message: Program | None = None
    message_error = ""
    if source.get("messageExpression"):
        wanted = "messageExpression must evaluate to a string"
        expression = str(source["messageExpression"])
        message, message_error = _compiled(environment, expression, variables, "string", wanted, "messageExpression ")
    return CompiledRule(source, program, "", message, message_error, _field(source, schema))


def _compiled(
    environment: Environment, text: str, variables: Mapping[str, Type], kind: str, wanted: str, name: str
) -> tuple[Program | None, str]:
    try:
        program = environment.compile(text, variables)
    except CompileError as error:
        return None, f"{name}compilation failed: {error}"
    except ProgramError as error:
        return None, f"{name or 'program '}instantiation failed: {error}"
    return (program, "") if program.type.kind == kind else (None, wanted)


def _field(source: Mapping[str, Any], schema: Schema) -> str:
    try:
        return resolve(str(source.get("fieldPath") or ""), schema)
    except ValueError:
        return ""


# --- the tree of rules ------------------------------------------------------------------------------------------------


class _Node:
    """The rules of one node of a schema, and of the nodes below that have some."""

    __slots__ = ("additional", "all_of", "broken", "declared", "items", "properties", "rules", "schema")

    def __init__(self, schema: Schema, declared: Declared, rules: list[CompiledRule]) -> None:
        self.schema = schema
        self.declared = declared
        self.rules = rules
        self.broken = False
        self.properties: dict[str, _Node] = {}
        self.additional: _Node | None = None
        self.items: _Node | None = None
        self.all_of: list[_Node] = []

    @property
    def is_empty(self) -> bool:
        return not (self.rules or self.broken or self.properties or self.additional or self.items or self.all_of)


class _Builder:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def build(self, found: Schema, schema: Schema, declared: Declared) -> _Node | None:
        """Collect the rules of `found`: the schema itself, or a part of its `allOf`."""
        node = _Node(schema, declared, [])
        if declared.type is None:
            node.broken = bool(found.rules)
        else:
            node.rules = [compile_rule(rule, schema, declared.type, self._environment) for rule in found.rules]
        self._children(node, found, schema)
        node.all_of = [part for each in found.all_of if (part := self.build(each, schema, declared)) is not None]
        return None if node.is_empty else node

    def _children(self, node: _Node, found: Schema, schema: Schema) -> None:
        if found.items is not None and schema.items is not None and _has_rules(found.items):
            declared = declare(schema.items, root=schema.items.embedded, name="selfType.@idx")
            node.items = self.build(found.items, schema.items, declared)
        if found.additional is not None and schema.additional is not None and _has_rules(found.additional):
            declared = declare(schema.additional, root=schema.additional.embedded, name="selfType.@elem")
            node.additional = self.build(found.additional, schema.additional, declared)
        for name, child in found.properties.items():
            spine = schema.properties.get(name)
            if spine is None or not _has_rules(child):
                continue
            declared = declare(spine, root=spine.embedded, name="selfType")
            if declared.type is None and escape(name) is not None:
                continue
            built = self.build(child, spine, declared)
            if built is not None:
                node.properties[name] = built


def _has_rules(schema: Schema, *, joined: bool = True) -> bool:
    """Tell whether a schema has rules anywhere; those that are only in an `allOf` count if they are `joined`."""
    if schema.rules or (joined and any(map(_has_rules, schema.all_of))):
        return True
    parts = [*schema.properties.values(), schema.items, schema.additional]
    return any(part is not None and _has_rules(part, joined=joined) for part in parts)


class Rules:
    """All rules of a schema. Compiled once; `check` may be called from several threads."""

    __slots__ = ("_root",)

    def __init__(self, schema: Schema, *, root: bool = True, environment: Environment | None = None) -> None:
        """Compile the rules; `root` says that the schema is that of a whole resource."""
        builder = _Builder(environment or default_environment())
        self._root = (
            builder.build(schema, schema, declare(schema, root=root)) if _has_rules(schema, joined=False) else None
        )

    def __bool__(self) -> bool:
        """Tell whether there is any rule."""
        return self._root is not None

    def check(
        self, obj: Any, old: Any = None, *, path: str = "", ratchet: bool = True, budget: int = BUDGET
    ) -> list[FieldError]:
        """Ask all rules about an object, and about what has become of its old value.

        With `ratchet`, as on an API server, a rule that does not hold is no error where the value is what it was
        before; rules that look at the old value always count.
        """
        if self._root is None:
            return []
        check = _Check(budget)
        correlation = _Correlation(obj, old) if ratchet and old is not None else None
        check.node(self._root, path, obj, old, correlation, None)
        return check.errors


class _Correlation:
    """A value beside what it was before."""

    __slots__ = ("_same", "new", "old")

    def __init__(self, new: Any, old: Any) -> None:
        self.new = new
        self.old = old
        self._same: bool | None = None

    def unchanged(self) -> bool:
        if self._same is None:
            self._same = same(self.new, self.old)
        return self._same

    def field(self, name: str, new: Any) -> _Correlation | None:
        if isinstance(self.old, Mapping) and name in self.old:
            return _Correlation(new, self.old[name])
        return None


class _Stop(Exception):
    """The budget is spent."""


class _Check:
    """One walk over an object."""

    def __init__(self, budget: int) -> None:
        self.errors: list[FieldError] = []
        self._left = budget

    def node(
        self, node: _Node, path: str, obj: Any, old: Any, now: _Correlation | None, above: _Correlation | None
    ) -> None:
        try:
            self._node(node, path, obj, old, now, above)
        except _Stop:
            return

    def _node(
        self, node: _Node, path: str, obj: Any, old: Any, now: _Correlation | None, above: _Correlation | None
    ) -> None:
        if obj is None:
            return
        if node.rules or node.broken:
            self._rules(node, path, obj, old, (now or above))
        for part in node.all_of:
            self._node(part, path, obj, old, None, above)
        if isinstance(obj, list) and node.items is not None:
            self._items(node, node.items, path, obj, old, now, above)
        elif isinstance(obj, dict):
            self._fields(node, path, obj, old if isinstance(old, dict) else {}, now, above)

    def _items(
        self,
        node: _Node,
        items: _Node,
        path: str,
        obj: list[Any],
        old: Any,
        now: _Correlation | None,
        above: _Correlation | None,
    ) -> None:
        before = _by_keys(node.schema, old)
        for place, item in enumerate(obj):
            known = before.get(_keys_of(node.schema, item)) if before else None
            inner = _Correlation(item, known) if now is not None and known is not None else None
            self._node(items, f"{path}[{place}]", item, known, inner, now or above)

    def _fields(
        self,
        node: _Node,
        path: str,
        obj: dict[str, Any],
        old: dict[str, Any],
        now: _Correlation | None,
        above: _Correlation | None,
    ) -> None:
        for name, value in obj.items():
            inner = None if now is None else now.field(name, value)
            if node.additional is not None:
                self._node(node.additional, f"{path}[{name}]", value, old.get(name), inner, now or above)
            child = node.properties.get(name)
            if child is not None:
                place = f"{path}.{name}" if path else name
                self._node(child, place, value, old.get(name), inner, now or above)

    # --- rules --------------------------------------------------------------------------------------------------------

    def _rules(self, node: _Node, path: str, obj: Any, old: Any, correlation: _Correlation | None) -> None:
        kind = str(node.schema.source.get("type") or "")
        if node.broken:
            self.errors.append(FieldError.invalid(path, kind, _BROKEN))
            return
        if self._left <= 0:
            self._spent(path, kind)
        value = _converted(node, obj)
        before = None if old is None or not any(rule.uses_old for rule in node.rules) else _converted(node, old)
        for rule in node.rules:
            if rule.error:
                self.errors.append(FieldError.invalid(path, kind, f"rule compile error: {rule.error}"))
            elif rule.program is not None and (old is not None or rule.takes_none or not rule.uses_old):
                self._rule(rule, rule.program, path, kind, obj, (value, before), correlation)

    def _spent(self, path: str, kind: str) -> None:
        words = f"validation failed due to running out of cost budget, {_OUT_OF_BUDGET}"
        self.errors.append(FieldError.invalid(path, kind, words))
        raise _Stop

    def _rule(
        self,
        rule: CompiledRule,
        program: Program,
        path: str,
        kind: str,
        obj: Any,
        values: tuple[Any, Any],
        correlation: _Correlation | None,
    ) -> None:
        value, before = values
        known = (NONE if before is None else OptionalValue(before)) if rule.takes_none else before
        try:
            if isinstance(value, EvalError):
                raise value
            holds, cost = program.evaluate([value, known], PER_CALL_LIMIT)
        except CostExceeded as error:
            if self._left < PER_CALL_LIMIT:
                self._spent(path, kind)
            words = f"'{error}': {_OUT_OF_BUDGET} due to call cost exceeds limit for rule: {rule.told()}"
            self.errors.append(FieldError.invalid(path, kind, words))
            raise _Stop from None
        except EvalError as error:
            self._pay(error.cost, path, kind)
            self.errors.append(FieldError.invalid(path, kind, _evaluation_words(error, rule)))
            return
        self._pay(cost, path, kind)
        if holds is True:
            return
        place = (f"{path}.{rule.field}" if path else rule.field) if rule.field else path
        detail = self._message(rule, (value, before), place, kind)
        if rule.uses_old or correlation is None or not correlation.unchanged():
            self.errors.append(_error(rule, place, kind, obj, detail))

    def _pay(self, cost: int, path: str, kind: str) -> None:
        if cost > self._left:
            self._spent(path, kind)
        self._left -= cost

    def _message(self, rule: CompiledRule, values: tuple[Any, Any], path: str, kind: str) -> str:
        program = rule.message
        if program is None or ("oldSelf" in program.uses and values[1] is None):
            return rule.default_message()
        words = f"messageExpression evaluation failed due to running out of cost budget, {_OUT_OF_BUDGET}"
        try:
            found, cost = program.evaluate(list(values), PER_CALL_LIMIT)
        except CostExceeded:
            if self._left >= PER_CALL_LIMIT:
                expression = rule.source["messageExpression"]
                words = f'{_OUT_OF_BUDGET} due to call cost exceeds limit for messageExpression: "{expression}"'
            self.errors.append(FieldError.invalid(path, kind, words))
            raise _Stop from None
        except EvalError as error:
            self._left -= min(error.cost, self._left)
            return rule.default_message()
        if cost > self._left:
            self.errors.append(FieldError.invalid(path, kind, words))
            raise _Stop
        self._left -= cost
        text = found.strip() if isinstance(found, str) else ""
        usable = text and "\n" not in text and len(text.encode("utf-8", "surrogatepass")) <= _LONGEST_MESSAGE
        return text if usable else rule.default_message()


def _converted(node: _Node, obj: Any) -> Any:
    """Return the value of JSON, or the error that it has none."""
    try:
        return obj if node.declared.convert is None else node.declared.convert(obj)
    except EvalError as error:
        return error


def _evaluation_words(error: CelError, rule: CompiledRule) -> str:
    if str(error).startswith(NO_OVERLOAD):
        words = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{error}': {words}: {rule.told()}"
    return f"{error} evaluating rule: {rule.told()}"


def _error(rule: CompiledRule, path: str, kind: str, obj: Any, detail: str) -> FieldError:
    reason = _REASONS.get(str(rule.source.get("reason") or ""), Reason.INVALID)
    if kind in ("object", "array") or reason in (Reason.REQUIRED, Reason.FORBIDDEN):
        return FieldError(reason, path, "" if reason is Reason.DUPLICATE else detail)
    return FieldError(reason, path, "" if reason is Reason.DUPLICATE else detail, obj)


def _by_keys(schema: Schema, old: Any) -> dict[Any, Any]:
    """Return the items of an old list by their keys; only lists that are maps have such."""
    if schema.list_type != "map" or not schema.map_keys or not isinstance(old, list):
        return {}
    found: dict[Any, Any] = {}
    for item in old:
        keys = _keys_of(schema, item)
        if keys is not None:
            found.setdefault(keys, item)
    return found


def _keys_of(schema: Schema, item: Any) -> Any:
    if not isinstance(item, dict):
        return None
    values = [item.get(name) for name in schema.map_keys]
    if any(value is None or isinstance(value, (dict, list)) for value in values):
        return None
    return tuple((type(value), value) for value in values)
