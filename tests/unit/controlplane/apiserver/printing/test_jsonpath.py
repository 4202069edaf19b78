"""The paths of columns."""

from __future__ import annotations

from typing import Any

import pytest

from flyball.controlplane.apiserver.printing.jsonpath import JsonPath, JsonPathError, as_text, simple_path

OBJECT: dict[str, Any] = {
    "spec": {"a": 1, "l": ["p", "q", "r"], "m": {"k.x/y": "v"}, "n": None},
    "status": {"conditions": [{"type": "A", "status": "False", "n": 1}, {"type": "B", "status": "True", "n": 2}]},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.a", [1]),
        (".spec.nope", []),
        (".spec.nope.deeper", []),
        (".spec.n", [None]),
        (".spec.l[1]", ["q"]),
        (".spec.l[-1]", ["r"]),
        (".spec.l[0:2]", ["p", "q"]),
        (".spec.l[::2]", ["p", "r"]),
        (".spec.l[0,2]", ["p", "r"]),
        (".spec.l[*]", ["p", "q", "r"]),
        (r".spec.m.k\.x/y", ["v"]),
        (".spec.m['k.x/y']", ["v"]),
        ('.status.conditions[?(@.type=="B")].status', ["True"]),
        (".status.conditions[?(@.type=='C')].status", []),
        (".status.conditions[?(@.n>1)].type", ["B"]),
        (".status.conditions[?(@.n!=1)].type", ["B"]),
        (".status.conditions[?(@.nope)].type", []),
        (".status.conditions[*].type", ["A", "B"]),
        (".status..type", ["A", "B"]),
        (".", [OBJECT]),
    ],
)
def test_what_a_path_leads_to(path: str, found: list[Any]) -> None:
    assert JsonPath(path).find(OBJECT) == found


@pytest.mark.parametrize("path", [".spec.l[3]", ".spec.a[0]"])
def test_a_path_that_does_not_fit(path: str) -> None:
    with pytest.raises(JsonPathError):
        JsonPath(path).find(OBJECT)


@pytest.mark.parametrize("path", ["spec.a", ".spec.l[", ".spec.l[x]", ".a[?(@.b==c)]"])
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(JsonPathError):
        JsonPath(path)


def test_values_as_they_are_printed() -> None:
    assert [as_text(value) for value in ("x", 1, 1.5, True, None, {"k": ["v"]})] == [
        "x",
        "1",
        "1.5",
        "true",
        "<nil>",
        '{"k":["v"]}',
    ]
    assert simple_path(r".spec.a\.b.c") == ("spec", "a.b", "c")
