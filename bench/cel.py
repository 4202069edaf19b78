"""Evaluations of CEL rules: `python -m bench.cel`.

One object with ten ports; each rule is compiled once and asked many times. Ours goes from the JSON object to the answer
every time, costs counted. Beside it cel-expr-python (bindings of cel-cpp), whose values are made once, and once more
with the object given anew for each evaluation, which is what happens in a server.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from bench.common import table
from cel_expr_python import cel

from flyball.api.cel import Environment, Rules, declare
from flyball.api.structural import compile_schema

PORT: Final = {"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}}
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "ports": {"type": "array", "items": PORT},
        "replicas": {"type": "integer"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
OBJECT: Final[dict[str, Any]] = {
    "ports": [{"name": f"port-{place}", "port": 8000 + place} for place in range(10)],
    "replicas": 3,
    "labels": {f"key-{place}": f"value-{place}" for place in range(10)},
}
RULES: Final = {
    "compare": "self.replicas > 1",
    "all of ten": "self.ports.all(p, p.port > 0 && p.port < 65536)",
    "one of ten": "self.ports.exists_one(p, p.name == 'port-7')",
    "map and filter ten": "self.ports.filter(p, p.port > 8004).map(p, p.name).size() == 5",
    "keys of ten": "self.labels.all(k, k.startsWith('key-') && self.labels[k] != '')",
    "ten with ten": "self.ports.all(p, self.ports.exists_one(q, q.name == p.name))",
}
BUDGET: Final = 40.0
"""Microseconds that a rule with a loop over ten items may take."""
RUNS: Final = 5


def main() -> int:
    """Print the table."""
    declared = declare(compile_schema(SCHEMA))
    rows = [_row(name, rule, declared) for name, rule in RULES.items()]
    print(table(("rule", "Flyball, µs", "cel-expr-python, µs", "the same, object given anew"), rows), end="\n\n")
    print(table(("", "µs"), _whole()), end="\n\n")
    return 0


def _row(name: str, rule: str, declared: Any) -> list[str]:
    program = Environment().compile(rule, {"self": declared.type})
    convert = declared.convert
    ours = _microseconds(lambda: program.evaluate([convert(OBJECT)]))
    other = cel.NewEnv(variables={"self": cel.Type.DYN})
    expression = other.compile(rule)
    activation = other.Activation({"self": OBJECT})
    kept = _microseconds(lambda: expression.eval(activation))
    anew = _microseconds(lambda: expression.eval(data={"self": OBJECT}))
    mark = "" if ours < BUDGET or name == "ten with ten" else " (too slow)"
    return [name, f"{ours:.1f}{mark}", f"{kept:.1f} ({kept / ours:.1f} x)", f"{anew:.1f} ({anew / ours:.1f} x)"]


def _whole() -> list[list[str]]:
    rules = [{"rule": rule} for rule in RULES.values()]
    schema = compile_schema({**SCHEMA, "x-kubernetes-validations": rules})
    checked = Rules(schema, root=False)
    return [
        ["compile these rules", f"{_microseconds(lambda: Rules(schema, root=False), 20):.0f}"],
        ["check an object against all of them", f"{_microseconds(lambda: checked.check(OBJECT)):.0f}"],
    ]


def _microseconds(work: Callable[[], object], count: int = 2000) -> float:
    """The time of one call, in the quickest of some runs."""
    fastest = float("inf")
    for _ in range(RUNS):
        started = time.perf_counter()
        for _ in range(count):
            work()
        fastest = min(fastest, time.perf_counter() - started)
    return fastest / count * 1e6


if __name__ == "__main__":
    raise SystemExit(main())
