"""Random sequences of applies, updates and patches by three managers, each made from a seed.

The same seed gives the same sequence, everywhere and for ever: sequences are recorded like any other case. They look
for what nobody thought of: who owns which field after nine writes by three managers.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

__all__ = ["SHAPES", "sequence"]

Written = dict[str, Any]
MANAGERS = ("one", "two", "three")
KEYS = ("a", "b", "c")
VERBS = ("apply", "apply", "apply", "apply", "forced", "merge", "merge", "update", "same")


def sequence(path: str, head: Written, shape: str, seed: int, length: int) -> list[Any]:
    """Steps on one object: `head` is what names it, `shape` says which fields are played with."""
    dice = random.Random(f"{shape} {seed}")
    name = f"{path}/{head['metadata']['name']}"
    first = _merged(head, _spec(shape, dice, whole=True))
    steps: list[Any] = [{"PATCH": f"{name}?fieldManager=one", "type": "apply", "body": first}]
    last: dict[str, Written] = {"one": first}
    for _ in range(length):
        manager, verb = dice.choice(MANAGERS), dice.choice(VERBS)
        query = f"?fieldManager={manager}"
        if verb == "same" and manager in last:
            steps.append({"PATCH": f"{name}{query}", "type": "apply", "body": last[manager]})
        elif verb in ("apply", "forced", "same"):
            body = last[manager] = _merged(head, _spec(shape, dice))
            steps.append({"PATCH": f"{name}{query}{'&force=true' * (verb == 'forced')}", "type": "apply", "body": body})
        elif verb == "merge":
            steps.append({"PATCH": f"{name}{query}", "type": "merge", "body": _spec(shape, dice, nulls=True)})
        else:
            steps.append({"GET": name, "save": "live", "quiet": True})
            steps.append({"PUT": f"{name}{query}", "from": "live", "merge": _spec(shape, dice, nulls=True)})
    return steps


def _spec(shape: str, dice: random.Random, *, whole: bool = False, nulls: bool = False) -> Written:
    return SHAPES[shape](dice, whole, nulls)


def _config_map(dice: random.Random, whole: bool, nulls: bool) -> Written:
    values: tuple[Any, ...] = ("1", "2", None) if nulls else ("1", "2")
    body: Written = {"data": {key: dice.choice(values) for key in _some(dice, KEYS)}}
    if dice.random() < 0.5:
        body["metadata"] = {"labels": {key: dice.choice(values) for key in _some(dice, KEYS)}}
    return body


def _deployment(dice: random.Random, whole: bool, nulls: bool) -> Written:
    applied = not nulls  # what may not change is in every apply
    spec: Written = {"selector": {"matchLabels": {"a": "b"}}} if applied else {}
    names = _some(dice, KEYS) or (("a",) if whole else ())
    containers = [_container(dice, name) for name in names]
    template: Written = {"metadata": {"labels": {"a": "b"}}} if applied else {}
    if containers:
        template["spec"] = {"containers": containers}
    if template:
        spec["template"] = template
    if dice.random() < 0.5:
        spec["replicas"] = dice.randint(1, 3)
    if dice.random() < 0.3:
        spec["minReadySeconds"] = dice.randint(0, 2)
    if dice.random() < 0.2:
        spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": dice.randint(1, 2)}}
    return {"spec": spec}


def _container(dice: random.Random, name: str) -> Written:
    """Ports are each container's own: of shared ones a real server warns sometimes, and sometimes not."""
    made: Written = {"name": name, "image": dice.choice(("i", "j"))}
    if dice.random() < 0.5:
        made["env"] = [{"name": key, "value": dice.choice("12")} for key in _some(dice, KEYS)]
    if dice.random() < 0.4:
        first = 80 + 2 * KEYS.index(name)
        made["ports"] = [{"containerPort": port} for port in _some(dice, (first, first + 1))]
    if dice.random() < 0.3:
        made["args"] = [dice.choice("xyz") for _ in range(dice.randint(0, 2))]
    return made


def _thing(dice: random.Random, whole: bool, nulls: bool) -> Written:
    makers: dict[str, Callable[[], Any]] = {
        "n": lambda: dice.randint(1, 3),
        "d": lambda: dice.randint(1, 3),
        "plain": lambda: [dice.choice(KEYS) for _ in range(dice.randint(0, 2))],
        "set": lambda: list(_some(dice, KEYS)),
        "map": lambda: [_keyed(dice, key) for key in _some(dice, KEYS)],
        "atom": lambda: {key: dice.choice("xy") for key in _some(dice, ("a", "b"))},
        "texts": lambda: {key: dice.choice("xy") for key in _some(dice, KEYS)},
        "objects": lambda: {key: {"a": dice.randint(1, 2)} for key in _some(dice, KEYS)},
        "free": lambda: {"x": {key: dice.randint(1, 2) for key in _some(dice, KEYS)}, "l": [dice.randint(1, 2)]},
    }
    chosen = _some(dice, tuple(makers))
    return {"spec": {name: None if nulls and dice.random() < 0.2 else makers[name]() for name in chosen}}


def _keyed(dice: random.Random, key: str) -> Written:
    made: Written = {"k": key}
    for name in _some(dice, ("v", "w")):
        made[name] = dice.randint(1, 2)
    return made


SHAPES: dict[str, Callable[[random.Random, bool, bool], Written]] = {
    "configmap": _config_map,
    "deployment": _deployment,
    "thing": _thing,
}


def _some(dice: random.Random, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Each with a probability of one half, sometimes in another order."""
    chosen = [value for value in values if dice.random() < 0.5]
    if dice.random() < 0.3:
        dice.shuffle(chosen)
    return tuple(chosen)


def _merged(head: Written, body: Written) -> Written:
    metadata = head["metadata"] | body.get("metadata", {})
    return head | body | {"metadata": metadata}
