"""Schemas with rules, and objects for them: asked of a real API server and of `flyball.api.cel`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

INTEGER: Json = {"type": "integer"}
TEXT: Json = {"type": "string", "maxLength": 20}
NUMBER: Json = {"type": "number"}
MARKER: Json = {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'no'", "message": "the marker"}]}


@dataclass(frozen=True, slots=True)
class Case:
    """What a spec looks like, what it is, and for a change what it was; `refused` says what must come of it."""

    schema: Json
    new: Json
    old: Json | None = None
    refused: bool = True
    root_rules: tuple[Json, ...] = field(default=())


def spec(properties: Json, *rules: Json, **more: Any) -> Json:
    """Make the schema of an object; `marker` lets tests find out whether it counts already."""
    schema: Json = {"type": "object", "properties": {"marker": MARKER, **properties}, **more}
    return {**schema, "x-kubernetes-validations": list(rules)} if rules else schema


def inner(properties: Json, *rules: Json, **more: Any) -> Json:
    """Make the schema of an object without a marker."""
    schema: Json = {"type": "object", "properties": properties, **more}
    return {**schema, "x-kubernetes-validations": list(rules)} if rules else schema


def rule(text: str, **more: Any) -> Json:
    """Make a rule."""
    return {"rule": text, **more}


def ruled(schema: Json, text: str, **more: Any) -> Json:
    """Give a schema one rule."""
    return {**schema, "x-kubernetes-validations": [rule(text, **more)]}


def list_(items: Json, **more: Any) -> Json:
    """Make the schema of a short list."""
    return {"type": "array", "maxItems": 10, "items": items, **more}


def map_(values: Json, **more: Any) -> Json:
    """Make the schema of a small map."""
    return {"type": "object", "maxProperties": 10, "additionalProperties": values, **more}


def resource_schema(spec_: Json, *root_rules: Json) -> Json:
    """Make the schema of a whole resource."""
    schema: Json = {"type": "object", "properties": {"spec": spec_}}
    return {**schema, "x-kubernetes-validations": list(root_rules)} if root_rules else schema


KEYED: Json = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
ITEM: Json = {"type": "object", "required": ["name"], "properties": {"name": TEXT, "port": INTEGER}}
PORTS: Json = {"ports": list_(ITEM)}
INT_OR_STRING: Json = {"x-kubernetes-int-or-string": True, "maxLength": 10}
TIME: Json = {"type": "string", "format": "date-time"}

# --- rules that are refused with their kind ---------------------------------------------------------------------------

_BAD_EXPRESSIONS: dict[str, str] = {
    "unknown field": "self.zz > 1",
    "wrong types": "self.text > 5",
    "not a bool": "self.number + 1",
    "no operand": "self.number > 1 +",
    "no parenthesis": "(self.number > 1",
    "too many parentheses": "self.number > 1)",
    "unknown variable": "other.number > 1",
    "unknown function": "self.text.shout() == 'A'",
    "wrong argument": "self.text.startsWith(1)",
    "bad pattern": "self.text.matches('[')",
    "bad pattern to find": "self.text.find('[') == ''",
    "bad duration": "duration('x') > duration('1s')",
    "bad time": "timestamp('x') > timestamp('2020-01-01T00:00:00Z')",
    "bad conversion": "int('x') > 1",
    "mixed list": "[1, 'a'].size() == self.number",
    "mixed map": "{'a': 1, 'b': 'c'}.size() == self.number",
    "not a list": "self.number.all(x, true)",
    "loop over no bool": "[1].all(x, x)",
    "loop without a name": "[1].all(1, true)",
    "has of no field": "has(self)",
    "unknown character": "self.number # 1 > 1",
    "half a string": "self.text == 'abc",
    "reserved name": "package > 1",
    "bind is not known": "cel.bind(x, self.number, x > 1)",
    "strings have no reverse": "self.text.reverse() == 'a'",
    "different branches": "self.number > 1 ? 'a' : true",
    "null for a number": "self.number == null",
    "no message types": "Thing{a: 1} == self",
    "wide characters": "'é' == self.text && self.zz",
    "two lines": "self.number > 1 &&\nself.zz",
    "format needs numbers": "'%d'.format(['a']) == 'a'",
    "whole objects are not maps": "self == {'number': 1}",
    "lists of different things": "[1] == ['a']",
    "an unsigned literal": "self.number == 1u",
    "an optional that is none": "self.?number > 1",
}
_FIELDS: Json = {"number": INTEGER, "text": TEXT}

DEFINITIONS: dict[str, Json] = {
    **{name: spec(_FIELDS, rule(text, message="m")) for name, text in _BAD_EXPRESSIONS.items()},
    "empty rule": spec(_FIELDS, rule("")),
    "blank message": spec(_FIELDS, rule("self.number > 1", message=" ")),
    "message of two lines": spec(_FIELDS, rule("self.number > 1", message="a\nb")),
    "rule of two lines": spec(_FIELDS, rule("self.number >\n1")),
    "message expression is a number": spec(_FIELDS, rule("self.number > 1", messageExpression="1")),
    "blank message expression": spec(_FIELDS, rule("self.number > 1", messageExpression=" ")),
    "bad message expression": spec(_FIELDS, rule("self.number > 1", messageExpression="self.zz")),
    "unknown reason": spec(_FIELDS, rule("self.number > 1", reason="Because")),
    "field path to nothing": spec(_FIELDS, rule("self.number > 1", fieldPath=".zz")),
    "field path to what is not declared": spec({"deep": inner({})}, rule("has(self.deep)", fieldPath=".deep.er")),
    "field path without a dot": spec(_FIELDS, rule("self.number > 1", fieldPath="number")),
    "blank field path": spec(_FIELDS, rule("self.number > 1", fieldPath=" ")),
    "optional old self without old self": spec(_FIELDS, rule("self.number > 1", optionalOldSelf=True)),
    "optional is compared": spec(_FIELDS, rule("self.number > oldSelf.number", optionalOldSelf=True)),
    "second of two": spec(_FIELDS, rule("self.number > 1"), rule("self.text > 1", reason="FieldValueRequired")),
    "old self in a plain list": spec({"list": list_(ruled(INTEGER, "self > oldSelf"))}),
    "old self in a set": spec({"list": list_(ruled(INTEGER, "self > oldSelf"), **{"x-kubernetes-list-type": "set"})}),
    "old self below a plain list": spec({"list": list_(inner({"a": inner({"b": ruled(INTEGER, "self > oldSelf")})}))}),
    "rule on unknown": spec({"any": {"x-kubernetes-preserve-unknown-fields": True, **ruled({}, "self == oldSelf")}}),
    "unknown is not shown": spec({"any": {"x-kubernetes-preserve-unknown-fields": True}}, rule("has(self.any)")),
    "fields of unknown are not shown": spec(
        {"any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}, rule("self.any.a == 1")
    ),
    "unescaped name": spec({"a-b": INTEGER}, rule("self.a-b > 1")),
    "keyword as a name": spec({"namespace": TEXT}, rule("self.namespace == 'a' && namespace == 'b'")),
    "rule in a map": spec({"map": map_(ruled(TEXT, "self > 1"))}),
    "rule in a list": spec({"list": list_(ruled(TEXT, "self > 1"))}),
    "int or string is not compared": spec({"any": ruled(INT_OR_STRING, "self.size()")}),
}

# --- objects ----------------------------------------------------------------------------------------------------------

_TIMES: Json = {
    "at": TIME,
    "day": {"type": "string", "format": "date"},
    "after": {"type": "string", "format": "duration"},
    "raw": {"type": "string", "format": "byte", "maxLength": 20},
}
_MOMENT: Json = {"at": "2026-03-04T05:06:07+02:00", "day": "2026-03-04", "after": "90m", "raw": "YWJj"}
_NAMES: Json = {"a-b": INTEGER, "namespace": TEXT, "x.y": INTEGER, "a__b": INTEGER, "s/t": INTEGER}

OBJECTS: dict[str, Case] = {
    "holds": Case(spec(_FIELDS, rule("self.number > 1")), {"number": 2}, refused=False),
    "fails": Case(spec(_FIELDS, rule("self.number > 1")), {"number": 1}),
    "message": Case(spec(_FIELDS, rule("self.number > 1", message=" at least two ")), {"number": 1}),
    "message expression": Case(
        spec(_FIELDS, rule("self.number > 1", messageExpression="self.text + ' is not enough'")),
        {"number": 1, "text": "a"},
    ),
    "empty message expression": Case(
        spec(_FIELDS, rule("self.number > 1", messageExpression="''", message="m")), {"number": 1}
    ),
    "message expression of two lines": Case(
        spec(_FIELDS, rule("self.number > 1", messageExpression="'a\\nb'")), {"number": 1}
    ),
    "failing message expression": Case(
        spec(_FIELDS, rule("self.number > 1", messageExpression="self.text")), {"number": 1}
    ),
    "a field is missing": Case(spec(_FIELDS, rule("self.number > 1")), {}),
    "a missing field is asked for": Case(spec(_FIELDS, rule("!has(self.number)")), {}, refused=False),
    "forbidden": Case(
        spec(_FIELDS, rule("self.number > 1", reason="FieldValueForbidden", fieldPath=".number")), {"number": 1}
    ),
    "duplicate": Case(spec({"number": ruled(INTEGER, "self > 1", reason="FieldValueDuplicate")}), {"number": 1}),
    "required": Case(
        spec(_FIELDS, rule("has(self.text)", reason="FieldValueRequired", fieldPath=".text")), {"number": 1}
    ),
    "field path into a map": Case(
        spec({"map": map_(TEXT)}, rule("!('a.b' in self.map)", fieldPath=".map['a.b']")), {"map": {"a.b": "c"}}
    ),
    "number field": Case(spec({"number": ruled(INTEGER, "self > 1")}), {"number": 1}),
    "text field": Case(spec({"text": ruled(TEXT, "self.size() > 3")}), {"text": "é<"}),
    "boolean field": Case(spec({"on": ruled({"type": "boolean"}, "self")}), {"on": False}),
    "fraction": Case(spec({"part": ruled(NUMBER, "self > 1.5 && self > 2")}), {"part": 1.75}),
    "whole fraction": Case(
        spec({"part": ruled(NUMBER, "self > 1.5 && type(self) == double")}), {"part": 2}, refused=False
    ),
    "division by zero": Case(spec(_FIELDS, rule("1 / self.number > 1")), {"number": 0}),
    "overflow": Case(spec(_FIELDS, rule("self.number + 1 > 1")), {"number": 9223372036854775807}),
    "index": Case(spec({"list": list_(INTEGER)}, rule("self.list[2] > 1")), {"list": [1]}),
    "key": Case(spec({"map": map_(TEXT)}, rule("self.map['a'] == 'b'")), {"map": {}}),
    "errors are absorbed": Case(spec(_FIELDS, rule("1 / self.number > 1 || true")), {"number": 0}, refused=False),
    "int or string is text": Case(spec({"any": ruled(INT_OR_STRING, "self > 5")}), {"any": "x"}),
    "int or string by type": Case(
        spec({"any": ruled(INT_OR_STRING, "type(self) == int ? self > 5 : self.endsWith('%')")}), {"any": "x"}
    ),
    "list": Case(
        spec(PORTS, rule("self.ports.all(p, p.port > 0 && p.port < 65536)")), {"ports": [{"name": "a", "port": 0}]}
    ),
    "list item": Case(
        spec({"ports": list_({**ITEM, **ruled({}, "self.port > 0")})}),
        {"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 0}]},
    ),
    "exists one": Case(
        spec(PORTS, rule("self.ports.exists_one(p, p.name == 'a')")), {"ports": [{"name": "a"}, {"name": "a"}]}
    ),
    "map and filter": Case(
        spec(PORTS, rule("self.ports.filter(p, has(p.port)).map(p, p.port).sum() == 3")),
        {"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 3}, {"name": "c"}]},
    ),
    "map keys": Case(spec({"map": map_(TEXT)}, rule("self.map.all(k, k.startsWith('a'))")), {"map": {"b": "c"}}),
    "map values": Case(spec({"map": map_(ruled(INTEGER, "self > 1"))}), {"map": {"a b": 1}}),
    "two variables": Case(
        spec({"map": map_(INTEGER)}, rule("self.map.all(k, v, k.size() == v)")), {"map": {"ab": 2, "abc": 2}}
    ),
    "transformed map": Case(
        spec({"map": map_(INTEGER)}, rule("self.map.transformMap(k, v, v > 1, v + 1)['a'] == 4")), {"map": {"a": 2}}
    ),
    "sets ignore order": Case(
        spec({"a": list_(TEXT, **{"x-kubernetes-list-type": "set"}), "b": list_(TEXT)}, rule("self.a == self.b")),
        {"a": ["x", "y"], "b": ["y", "x"]},
        refused=False,
    ),
    "plain lists do not": Case(
        spec({"a": list_(TEXT), "b": list_(TEXT)}, rule("self.a == self.b")), {"a": ["x", "y"], "b": ["y", "x"]}
    ),
    "times": Case(
        spec(_TIMES, rule("self.at < timestamp('2020-01-01T00:00:00Z')", messageExpression="string(self.at)")), _MOMENT
    ),
    "parts of times": Case(
        spec(_TIMES, rule("self.day.getDayOfMonth() == 4 || self.at.getHours('America/New_York') == 5")), _MOMENT
    ),
    "durations": Case(
        spec(_TIMES, rule("self.after > duration('2h')", messageExpression="string(self.after)")), _MOMENT
    ),
    "bytes": Case(spec(_TIMES, rule("self.raw == b'abd'", messageExpression="string(self.raw)")), _MOMENT),
    "escaped names": Case(
        spec(
            _NAMES,
            rule("self.a__dash__b + self.x__dot__y + self.a__underscores__b + self.s__slash__t > 10"),
            rule("self.__namespace__ == 'x'"),
        ),
        {"a-b": 1, "namespace": "y", "x.y": 2, "a__b": 3, "s/t": 4},
    ),
    "nullable": Case(spec({"text": {**TEXT, "nullable": True}}, rule("has(self.text)")), {"text": None}),
    "nullable in a list": Case(
        spec({"list": list_({**TEXT, "nullable": True})}, rule("self.list.exists(x, x == 'a')")), {"list": [None, "b"]}
    ),
    "the name": Case(spec({}), {}, root_rules=(rule("self.metadata.name.startsWith('b')"),)),
    "the kind": Case(spec({}), {}, root_rules=(rule("self.kind == 'X' && self.apiVersion != ''"),)),
    "embedded": Case(
        spec(
            {
                "raw": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                    **ruled({}, "self.kind == 'Pod' && self.metadata.name == 'a'"),
                }
            }
        ),
        {"raw": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}}},
    ),
    "too expensive": Case(
        spec(
            {"list": list_(INTEGER, maxItems=100)},
            rule("self.list.all(a, self.list.all(b, self.list.all(c, a + b + c > 0)))"),
        ),
        {"list": list(range(1, 101))},
    ),
    "optional fields": Case(spec(_FIELDS, rule("self.?text.orValue('b') == 'a'")), {"number": 1}),
    "optional chain": Case(
        spec({"deep": inner({"er": inner({"est": INTEGER})})}, rule("self.?deep.er.est.hasValue()")), {"deep": {}}
    ),
    "patterns": Case(spec({"text": ruled(TEXT, "self.matches('^[a-c]+$')")}), {"text": "abcd"}),
    "found patterns": Case(spec({"text": ruled(TEXT, "self.findAll('[0-9]+').size() == 2")}), {"text": "1 2 3"}),
    "strings": Case(
        spec({"text": ruled(TEXT, "self.replace(', ', '-').upperAscii().substring(1) == '-B'")}),
        {"text": "a, c"},
    ),
    "format": Case(
        spec(_FIELDS, rule("false", messageExpression="'%s has %d, %.2f'.format([self.text, self.number, 1.5])")),
        {"text": "a", "number": 1000},
    ),
    "addresses": Case(
        spec({"text": ruled(TEXT, "isIP(self) && cidr('10.0.0.0/8').containsIP(self)")}), {"text": "11.0.0.1"}
    ),
    "no address": Case(spec({"text": ruled(TEXT, "ip(self).family() == 4")}), {"text": "1.2.3"}),
    "networks": Case(spec({"text": ruled(TEXT, "cidr(self).prefixLength() < 8")}), {"text": "10.0.0.0/8"}),
    "urls": Case(
        spec({"text": ruled(TEXT, "url(self).getHost() == 'b' && url(self).getScheme() == 'http'")}),
        {"text": "http://a:80/b?c=d"},
    ),
    "no url": Case(spec({"text": ruled(TEXT, "url(self).getHost() == 'b'")}), {"text": "a b"}),
    "quantities": Case(spec({"text": ruled(TEXT, "quantity(self).isLessThan(quantity('1Gi'))")}), {"text": "1025Mi"}),
    "no quantity": Case(spec({"text": ruled(TEXT, "quantity(self).isInteger()")}), {"text": "much"}),
    "versions": Case(
        spec({"text": ruled(TEXT, "semver(self, true).compareTo(semver('1.2.3')) > 0")}), {"text": "v1.2"}
    ),
    "named formats": Case(
        spec(
            {
                "text": ruled(
                    TEXT,
                    "!format.dns1123Label().validate(self).hasValue()",
                    messageExpression="self + ' is no label'",
                )
            }
        ),
        {"text": "Not_A_Label"},
    ),
    "sets": Case(spec({"list": list_(TEXT)}, rule("sets.contains(['a', 'b'], self.list)")), {"list": ["a", "c"]}),
    "sorted": Case(
        spec({"list": list_(INTEGER)}, rule("self.list.isSorted() && self.list.max() < 5")), {"list": [1, 3, 2]}
    ),
    "sorted by": Case(
        spec(PORTS, rule("self.ports.sortBy(p, p.name)[0].name == 'b'")), {"ports": [{"name": "b"}, {"name": "a"}]}
    ),
    "two rules": Case(spec(_FIELDS, rule("self.number > 1"), rule("self.number > 2", message="two")), {"number": 1}),
    "rules above and below": Case(
        spec({"deep": inner({"n": ruled(INTEGER, "self > 1")}, rule("self.n > 2"))}, rule("self.deep.n > 3")),
        {"deep": {"n": 1}},
    ),
}

# --- changes ----------------------------------------------------------------------------------------------------------

CHANGES: dict[str, Case] = {
    "immutable": Case(spec({"text": ruled(TEXT, "self == oldSelf")}), {"text": "b"}, {"text": "a"}),
    "unchanged": Case(spec({"text": ruled(TEXT, "self == oldSelf")}), {"text": "a"}, {"text": "a"}, refused=False),
    "new fields have no old value": Case(
        spec({"text": ruled(TEXT, "self == oldSelf")}), {"text": "a"}, {}, refused=False
    ),
    "removed fields are not asked": Case(
        spec({"text": ruled(TEXT, "self == oldSelf")}), {}, {"text": "a"}, refused=False
    ),
    "the object sees that": Case(spec(_FIELDS, rule("has(self.text) == has(oldSelf.text)")), {}, {"text": "a"}),
    "growing": Case(spec({"number": ruled(INTEGER, "self >= oldSelf")}), {"number": 1}, {"number": 2}),
    "items by key": Case(
        spec({"ports": {**list_({**ITEM, **ruled({}, "self.port >= oldSelf.port")}), **KEYED}}),
        {"ports": [{"name": "b", "port": 5}, {"name": "a", "port": 1}, {"name": "c", "port": 0}]},
        {"ports": [{"name": "a", "port": 2}, {"name": "b", "port": 4}]},
    ),
    "map values by key": Case(
        spec({"map": map_(ruled(INTEGER, "self >= oldSelf"))}), {"map": {"a": 1, "b": 0}}, {"map": {"a": 2}}
    ),
    "lists that are maps ignore order": Case(
        spec({"ports": {**list_(ITEM), **KEYED}}, rule("self.ports == oldSelf.ports")),
        {"ports": [{"name": "b"}, {"name": "a"}]},
        {"ports": [{"name": "a"}, {"name": "b"}]},
        refused=False,
    ),
    "optional old value": Case(
        spec({"number": ruled(INTEGER, "self > oldSelf.orValue(4)", optionalOldSelf=True)}), {"number": 4}, {}
    ),
    "optional old value that is there": Case(
        spec({"number": ruled(INTEGER, "self > oldSelf.orValue(4)", optionalOldSelf=True)}),
        {"number": 4},
        {"number": 3},
        refused=False,
    ),
    "message about an optional old value": Case(
        spec(
            {
                "number": ruled(
                    INTEGER,
                    "self > oldSelf.orValue(4)",
                    optionalOldSelf=True,
                    messageExpression="oldSelf.hasValue() ? 'was there' : 'was not there'",
                )
            }
        ),
        {"number": 2},
        {"number": 3},
    ),
    "old value in a message": Case(
        spec({"text": ruled(TEXT, "self == oldSelf", messageExpression="'was ' + oldSelf")}),
        {"text": "a"},
        {"text": "b"},
    ),
    "an unchanged value may stay wrong": Case(
        spec({"number": ruled(INTEGER, "self > 5"), "text": TEXT}),
        {"number": 1, "text": "b"},
        {"number": 1},
        refused=False,
    ),
    "a changed value may not": Case(spec({"number": ruled(INTEGER, "self > 5")}), {"number": 2}, {"number": 1}),
    "an unchanged item may stay wrong": Case(
        spec({"ports": {**list_({**ITEM, **ruled({}, "self.port > 5")}), **KEYED}}),
        {"ports": [{"name": "b", "port": 1}, {"name": "a", "port": 1}]},
        {"ports": [{"name": "a", "port": 1}]},
    ),
    "an unchanged item of a plain list": Case(
        spec({"ports": list_({**ITEM, **ruled({}, "self.port > 5")})}),
        {"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 1}]},
        {"ports": [{"name": "a", "port": 1}]},
    ),
    "an unchanged plain list may stay wrong": Case(
        spec({"ports": list_({**ITEM, **ruled({}, "self.port > 5")}), "text": TEXT}),
        {"ports": [{"name": "a", "port": 1}], "text": "b"},
        {"ports": [{"name": "a", "port": 1}]},
        refused=False,
    ),
    "errors of unchanged values count": Case(
        spec({"number": ruled(INTEGER, "1 / self > 1"), "text": TEXT}), {"number": 0, "text": "b"}, {"number": 0}
    ),
    "an unchanged map value may stay wrong": Case(
        spec({"map": map_(ruled(INTEGER, "self > 5"))}), {"map": {"a": 1, "b": 1}}, {"map": {"a": 1}}
    ),
    "unknown parts are compared": Case(
        spec(
            {"any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}, rule("self.any == oldSelf.any")
        ),
        {"any": {"a": 1}},
        {"any": {"a": 2}},
    ),
}
