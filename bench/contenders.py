"""How each library turns the answer to a list of Pods into objects; one entry for each way."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

Decode = Callable[[bytes], Any]


@dataclass(frozen=True, slots=True)
class Contender:
    """A way to read a list: its name in the table, how it is prepared, and how many Pods it is given."""

    name: str
    prepare: Callable[[], Decode]
    share: float = 1.0


def _orjson() -> Decode:
    import orjson

    return orjson.loads


def _raw() -> Decode:
    from flyball.api.rawlist import RawReader

    return lambda body: RawReader().list(body).items


def _typed() -> Decode:
    from flyball.api import decode
    from flyball.k8s.core.v1 import PodList

    return lambda body: decode(PodList, body)


class _Page(msgspec.Struct):
    items: list[msgspec.Raw]


def _typed_with_origin() -> Decode:
    from flyball.api import decode
    from flyball.k8s.core.v1 import Pod

    page = msgspec.json.Decoder(_Page).decode
    return lambda body: [decode(Pod, bytes(item)) for item in page(body).items]


def _kubernetes() -> Decode:
    from kubernetes import client  # type: ignore

    deserialize: Any = client.ApiClient().deserialize
    return lambda body: deserialize(body.decode(), "V1PodList", "application/json")


def _kubernetes_asyncio() -> Decode:
    import asyncio
    from types import SimpleNamespace

    from kubernetes_asyncio import client  # type: ignore

    async def made() -> Any:
        return client.ApiClient()

    deserialize: Any = asyncio.new_event_loop().run_until_complete(made()).deserialize
    return lambda body: deserialize(SimpleNamespace(data=body.decode()), "V1PodList")


def _lightkube(lazy: bool) -> Decode:
    from lightkube.resources.core_v1 import Pod  # type: ignore

    from_dict: Any = Pod.from_dict
    return lambda body: [from_dict(item, lazy=lazy) for item in json.loads(body)["items"]]


def _kr8s() -> Decode:
    from kr8s.asyncio.objects import Pod  # type: ignore

    pod: Any = Pod
    api = object()
    return lambda body: [pod(item, api=api) for item in json.loads(body)["items"]]


CONTENDERS: Final = {
    "orjson": Contender("orjson.loads (dicts)", _orjson),
    "raw": Contender("flyball, raw form (record + bytes)", _raw),
    "typed": Contender("flyball, typed (`PodList` at once)", _typed),
    "origin": Contender("flyball, typed with the bytes kept (`client.list`)", _typed_with_origin),
    "kubernetes": Contender("kubernetes", _kubernetes, share=0.1),
    "kubernetes_asyncio": Contender("kubernetes_asyncio", _kubernetes_asyncio, share=0.1),
    "lightkube": Contender("lightkube (lazy: nothing typed until read)", lambda: _lightkube(True)),
    "lightkube-all": Contender("lightkube (lazy=False)", lambda: _lightkube(False)),
    "kr8s": Contender("kr8s (wrapped dicts)", _kr8s),
}
