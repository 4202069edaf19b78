"""What the guard is told of a process that it shall start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Launch", "Mount"]


@dataclass(frozen=True, slots=True)
class Mount:
    """Something of the host at a path of the container."""

    source: str
    target: str
    read_only: bool = False
    if_there: bool = False
    """Only where the host has something at `target`, which is then covered."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One process: a container's first one, or a command beside it.

    `env` is all that the process gets. `isolate` asks for namespaces where they work. `uid` and `gid` are None for the
    kubelet's own user. `pids` and `memory` are limits for everything in the container, kept by a control group.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str = "/"
    hostname: str = "localhost"
    mounts: Sequence[Mount] = ()
    visible: Sequence[str] = ()
    """Paths of the host that the container sees although they lie in /tmp or /run."""
    uid: int | None = None
    gid: int | None = None
    groups: Sequence[int] = ()
    tty: bool = False
    isolate: bool = True
    read_only_root: bool = False
    pids: int | None = None
    memory: int | None = None
    rlimits: Mapping[str, int] = field(default_factory=dict[str, int])

    def plain(self) -> dict[str, Any]:
        """As the guard reads it."""
        return asdict(self)
