"""Images that are there at once, and waiting for those that are not, as for one that cannot be pulled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from flyball.controlplane.kubelet.process.images import Image, InvalidImageName
from flyball.controlplane.kubelet.process.node import Node
from flyball.controlplane.kubelet.process.status import Known, Waiting
from flyball.controlplane.kubelet.process.waiting import Pauses
from flyball.k8s.core.v1 import Pod

__all__ = ["image_of"]

_JUST_FAILED: Final = 1.0
"""Seconds for which ErrImagePull is shown before it becomes ImagePullBackOff."""


async def image_of(node: Node, pod: Pod, known: Known, changed: Callable[[], None]) -> Image:
    """Return what a container's image stands for; without one, wait for ever, and say so in the kubelet's words."""
    name, pauses = known.spec.image or "", Pauses(first_at_once=False)
    while True:
        try:
            image = node.images.find(name)
        except InvalidImageName:
            parsed = f'couldn\'t parse image name "{name}": invalid reference format'
            message = f'Failed to apply default image tag "{name}": {parsed}'
            node.tell(pod, "Warning", "InspectFailed", message)
            await _wait(node, pod, known, changed, Waiting("InvalidImageName", message), pauses.after())
            continue
        if image is not None:
            node.tell(pod, "Normal", "Pulled", f'Container image "{name}" already present on machine')
            known.image_id = f"flyball://{name}"
            return image
        if known.spec.image_pull_policy == "Never":
            message = f'Container image "{name}" is not present with pull policy of Never'
            node.tell(pod, "Warning", "ErrImageNeverPull", message)
            await _wait(node, pod, known, changed, Waiting("ErrImageNeverPull", message), pauses.after())
            continue
        names = ", ".join(node.images.names)
        why = f'failed to pull "{name}": nothing is pulled here, and Pods may use {names}; add it: --image NAME=COMMAND'
        back_off = f'Back-off pulling image "{name}"'
        node.tell(pod, "Normal", "Pulling", f'Pulling image "{name}"')
        node.tell(pod, "Warning", "Failed", f'Failed to pull image "{name}": {why}')
        await _wait(node, pod, known, changed, Waiting("ErrImagePull", why), _JUST_FAILED)
        node.tell(pod, "Normal", "BackOff", back_off)
        waiting = Waiting("ImagePullBackOff", f"{back_off}: ErrImagePull: {why}")
        await _wait(node, pod, known, changed, waiting, pauses.after() - _JUST_FAILED)


async def _wait(
    node: Node, pod: Pod, known: Known, changed: Callable[[], None], waiting: Waiting, seconds: float
) -> None:
    node.tell(pod, "Warning", "Failed", f"Error: {waiting.reason}")
    known.waiting = waiting
    changed()
    await node.clock.sleep(seconds)
