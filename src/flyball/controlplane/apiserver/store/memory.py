"""Storage that keeps nothing: the store lives in memory and ends with the process."""

from __future__ import annotations

from flyball.controlplane.apiserver.store.contract import Change, Contents

__all__ = ["MemoryStorage"]


class MemoryStorage:
    """The storage of a cluster that nobody wants back after its end."""

    durable = False

    def load(self) -> Contents:
        """Begin with nothing."""
        return Contents(0, ())

    async def write(self, batch: list[Change]) -> None:
        """Keep nothing: what is in memory is all there is."""

    async def close(self) -> None:
        """Hold nothing that could be let go."""
