# pyright: basic, reportMissingImports=false
"""An operator on kopf: what its handlers see and do stays in the cluster, where the test looks for it.

A Gadget gets a ConfigMap of the same name that carries its size; its status counts what was done to it; an index by
color is written down by a timer; a farewell is left behind when it is deleted.

    python kopf_operator.py NAMESPACE GROUP
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import Any

import kopf
import kubernetes

SPACE, GROUP = sys.argv[1:3]
KIND = (GROUP, "v1", "gadgets")
MERGE = "application/merge-patch+json"


def _core() -> Any:
    return kubernetes.client.CoreV1Api()


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    kubernetes.config.load_kube_config()
    settings.peering.standalone = True
    settings.posting.enabled = True
    settings.persistence.finalizer = "kopf.example.org/hold"
    settings.watching.reconnect_backoff = 0.1
    settings.networking.error_backoffs = [0.1, 0.2, 0.5]


@kopf.on.create(*KIND)
async def create(
    body: kopf.Body, name: str, spec: kopf.Spec, patch: kopf.Patch, retry: int, **_: Any
) -> dict[str, Any]:
    if retry == 0:
        raise kopf.TemporaryError("the first attempt is for nothing", delay=0.1)
    child = {"metadata": {"name": name}, "data": {"size": str(spec["size"])}}
    kopf.adopt(child)
    await asyncio.to_thread(_core().create_namespaced_config_map, SPACE, child, field_manager="kopf")
    patch.status["phase"] = "made"
    kopf.info(body, reason="Made", message=f"made {name} of size {spec['size']}")
    return {"attempt": retry}


@kopf.on.update(*KIND, field="spec.size")
async def resize(name: str, old: int, new: int, patch: kopf.Patch, **_: Any) -> None:
    change = {"data": {"size": str(new), "before": str(old)}}
    await asyncio.to_thread(_core().patch_namespaced_config_map, name, SPACE, change, _content_type=MERGE)
    patch.status["ready"] = new


@kopf.on.resume(*KIND)
def resume(status: kopf.Status, patch: kopf.Patch, **_: Any) -> None:
    patch.status["resumed"] = status.get("resumed", 0) + 1


@kopf.on.delete(*KIND)
async def delete(name: str, **_: Any) -> None:
    farewell = {"metadata": {"name": f"farewell-{name}"}}
    await asyncio.to_thread(_core().create_namespaced_config_map, SPACE, farewell)


@kopf.index(*KIND)
def by_color(name: str, spec: kopf.Spec, **_: Any) -> dict[str, str]:
    return {spec["color"]: name}


@kopf.timer(*KIND, interval=0.3, initial_delay=0.1)
def tick(by_color: kopf.Index, spec: kopf.Spec, status: kopf.Status, patch: kopf.Patch, **_: Any) -> None:
    patch.status["ticks"] = min(status.get("ticks", 0) + 1, 3)
    patch.status["peers"] = sorted(by_color.get(spec["color"], []))


@kopf.daemon(*KIND, cancellation_timeout=1.0)
async def watch_over(stopped: kopf.DaemonStopped, name: str, **_: Any) -> None:
    while not await stopped.wait(0.5):
        guard = {"metadata": {"labels": {"guarded": "yes"}}}
        with contextlib.suppress(kubernetes.client.ApiException):  # the ConfigMap is not there yet
            await asyncio.to_thread(_core().patch_namespaced_config_map, name, SPACE, guard, _content_type=MERGE)


@kopf.on.event("configmaps", labels={"seen-by": "kopf"})
async def seen(type: str | None, name: str, annotations: Any, **_: Any) -> None:
    if type != "DELETED" and "seen" not in annotations:
        note = {"metadata": {"annotations": {"seen": "yes"}}}
        await asyncio.to_thread(_core().patch_namespaced_config_map, name, SPACE, note, _content_type=MERGE)


if __name__ == "__main__":
    kopf.configure(verbose=False)
    kopf.run(standalone=True, namespaces=[SPACE])
