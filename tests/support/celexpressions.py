"""Writes expressions of the language, at random but well typed (mostly), for tests that compare engines."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["VALUES", "Writer"]

VALUES = {
    "i": 3,
    "j": -7,
    "s": "héllo",
    "t": "a",
    "b": True,
    "l": [1, 2, 3],
    "e": [],
    "w": ["a", "bc", "a"],
    "m": {"a": 1},
}
"""What the variables are."""

_VARIABLES = {"int": ["i", "j"], "string": ["s", "t"], "bool": ["b"], "list(int)": ["l", "e"], "list(string)": ["w"]}
_LITERALS = {
    "int": ["0", "1", "-1", "2", "7", "0x1F", "9223372036854775807", "-9223372036854775808"],
    "uint": ["0u", "1u", "5u", "18446744073709551615u"],
    "double": ["0.0", "1.5", "-2.25", "1e10", "3.0"],
    "string": ["''", "'a'", "'bc'", '"é"', "r'\\d'", "'a,b'"],
    "bytes": ["b''", "b'a'", "b'\\xff'"],
    "bool": ["true", "false"],
    "duration": ["duration('1h')", "duration('-90s')", "duration('2s')"],
    "timestamp": ["timestamp('2026-01-02T03:04:05Z')", "timestamp('1969-12-31T23:59:59Z')"],
}


class Writer:
    """Writes one expression; `pick(n)` chooses a number below n."""

    def __init__(self, pick: Callable[[int], int], variables: str = "") -> None:
        self._pick = pick
        self._prefix = variables
        self._names = 0
        self._scope: dict[str, list[str]] = {}

    def write(self, kind: str, depth: int) -> str:
        """Write an expression of a type."""
        choices: list[Callable[[], str]] = [lambda: self._leaf(kind)]
        if depth > 0:
            choices += self._branches(kind, depth - 1)
        return choices[self._pick(len(choices))]()

    def _leaf(self, kind: str) -> str:
        names = [self._prefix + name for name in _VARIABLES.get(kind, [])] + self._scope.get(kind, [])
        found = [*_LITERALS.get(kind, []), *names, *names]
        if not found:
            item = kind.removeprefix("list(").removesuffix(")")
            return f"[{', '.join(self._leaf(item) for _ in range(self._pick(3)))}]" if kind != item else "{}"
        return found[self._pick(len(found))]

    def _branches(self, kind: str, depth: int) -> list[Callable[[], str]]:
        def part(inner: str) -> str:
            return self.write(inner, depth)

        found: list[Callable[[], str]] = [lambda: f"({part('bool')} ? {part(kind)} : {part(kind)})"]
        if kind in ("int", "uint", "double"):
            found += [
                lambda op=op: f"({part(kind)} {op} {part(kind)})" for op in ("+-*" if kind == "double" else "+-*/")
            ]
            found.append(lambda: f"{kind}({part('int')})")
        if kind == "int":
            found += [
                lambda: f"({part('int')} % {part('int')})",
                lambda: f"-({part('int')})",
                lambda: f"size({part('string')})",
                lambda: f"{part('list(int)')}.size()",
                lambda: f"{part('list(int)')}[{part('int')}]",
                lambda: f"int({part('double')})",
                lambda: f"{part('timestamp')}.getFullYear()",
                lambda: f"{part('duration')}.getMinutes()",
                lambda: f"{self._prefix}m['a']",
            ]
        if kind == "string":
            found += [
                lambda: f"({part('string')} + {part('string')})",
                lambda: f"string({part('int')})",
                lambda: f"string({part('bool')})",
                lambda: f"{part('list(string)')}[{part('int')}]",
                lambda: f"string({part('timestamp')})",
            ]
        if kind == "bool":
            found += self._tests(part)
        if kind == "duration":
            found += [
                lambda: f"({part('duration')} + {part('duration')})",
                lambda: f"({part('timestamp')} - {part('timestamp')})",
            ]
        if kind == "timestamp":
            found += [lambda: f"({part('timestamp')} + {part('duration')})", lambda: f"timestamp({part('int')})"]
        if kind == "bytes":
            found += [lambda: f"bytes({part('string')})", lambda: f"({part('bytes')} + {part('bytes')})"]
        if kind.startswith("list("):
            found += self._lists(kind, part)
        return found

    def _tests(self, part: Callable[[str], str]) -> list[Callable[[], str]]:
        kinds = ["int", "uint", "double", "string", "bytes", "bool", "duration", "timestamp"]

        def compared(op: str) -> str:
            kind = kinds[self._pick(len(kinds))]
            return f"({part(kind)} {op} {part(kind)})"

        found: list[Callable[[], str]] = [lambda op=op: compared(op) for op in ("==", "!=", "<", "<=", ">", ">=")]
        return [
            *found,
            lambda: f"({part('bool')} && {part('bool')})",
            lambda: f"({part('bool')} || {part('bool')})",
            lambda: f"!({part('bool')})",
            lambda: f"({part('int')} in {part('list(int)')})",
            lambda: f"({part('string')} in {self._prefix}m)",
            lambda: f"({part('list(string)')} == {part('list(string)')})",
            lambda: f"{part('string')}.startsWith({part('string')})",
            lambda: f"{part('string')}.contains({part('string')})",
            lambda: f"has({self._prefix}m.a)",
            lambda: self._loop("all", "bool", part),
            lambda: self._loop("exists", "bool", part),
            lambda: self._loop("exists_one", "bool", part),
        ]

    def _lists(self, kind: str, part: Callable[[str], str]) -> list[Callable[[], str]]:
        item = kind[5:-1]
        return [
            lambda: f"[{part(item)}, {part(item)}]",
            lambda: f"({part(kind)} + {part(kind)})",
            lambda: self._loop("map", item, part),
            lambda: self._loop("filter", "bool", part, kind),
        ]

    def _loop(self, macro: str, body: str, part: Callable[[str], str], over: str = "") -> str:
        kind = over or ("list(int)", "list(string)")[self._pick(2)]
        range_ = part(kind)
        self._names += 1
        name = f"v{self._names}"
        names = self._scope.setdefault(kind[5:-1], [])
        names.append(name)
        text = f"{range_}.{macro}({name}, {part(body)})"
        names.remove(name)
        return text
