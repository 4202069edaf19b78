"""The operator in kopf, in its two styles: BENCH_STYLE=event, or the usual one."""

from __future__ import annotations

import os
from typing import Any

import kopf
from protocol import EPOCH, STATUS, finish, note, say

THING = ("bench.example.org", "v1", "things")


@kopf.on.login()
def login(**given: Any) -> Any:
    return kopf.login_with_kubeconfig(**given)


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False
    say("started")


@kopf.on.cleanup()
def end(**_: Any) -> None:
    finish()


async def look(name: str, spec: Any, status: Any, patch: Any, **_: Any) -> None:
    note(name, spec["b"])
    if STATUS and status.get("seen") != spec["b"] + EPOCH:
        patch.status["seen"] = spec["b"] + EPOCH


if os.environ["BENCH_STYLE"] == "event":
    kopf.on.event(*THING)(look)
else:
    kopf.on.create(*THING)(look)
    kopf.on.resume(*THING)(look)
    kopf.on.update(*THING)(look)
