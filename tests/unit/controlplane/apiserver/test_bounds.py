"""How deep and how large a body may be."""

from __future__ import annotations

from typing import Any

import pytest

from flyball.controlplane.apiserver.body import read_body
from flyball.controlplane.apiserver.bounds import MAX_DEPTH, TooDeep, check_depth, check_yaml
from flyball.controlplane.apiserver.status import StatusError


def test_as_deep_as_allowed_and_one_more() -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    check_depth(value)
    with pytest.raises(TooDeep):
        check_depth([value])
    check_yaml(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    with pytest.raises(TooDeep):
        check_yaml(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1))


def test_aliases_count_as_often_as_they_are_used() -> None:
    check_yaml(b"a: &a [1, 2]\nb: [*a, *a]")
    lines = ["a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 7)]
    with pytest.raises(TooDeep, match="aliases"):
        check_yaml("\n".join(lines).encode())


@pytest.mark.parametrize(
    ("raw", "twice"),
    [
        (b'{"a":1,"b":{"c":"\\"","d":[{"e":1}]}}', []),
        (b'{"a":1,"b":2,"a":3}', ["a"]),
        (b'{"a":{"b":1,"b":2},"c":[{"d":1,"d":1}]}', ["a.b", "c[0].d"]),
        (b'{"a":"\\u0022","b":"\\u0022","c":1,"c":2}', ["c"]),
        (b'{"a":"\\u00e9"}', []),
    ],
)
def test_fields_that_come_twice(raw: bytes, twice: list[str]) -> None:
    assert read_body(raw, "application/json", strict=True, protobuf=None).duplicates == twice


@pytest.mark.parametrize("kind", ["application/json", "application/yaml"])
def test_too_deep_is_a_bad_request(kind: str) -> None:
    with pytest.raises(StatusError) as refused:
        read_body(b'{"a":' * 1000 + b"1" + b"}" * 1000, kind, strict=True, protobuf=None)
    assert refused.value.code == 400
