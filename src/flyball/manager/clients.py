"""The three ways of one process to the API server: for caches, for controllers, for the election."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flyball.client import Client
from flyball.client.interceptors import RateLimit
from flyball.client.retry import Retry
from flyball.client.transport import Interceptor
from flyball.clock import Clock
from flyball.manager.fence import Fence
from flyball.manager.metrics import Registry, RequestCounter

__all__ = ["Ways", "ways_of"]


class Ways(NamedTuple):
    """Clients over the same connections."""

    caches: Client
    """Reads and watches, on every replica."""
    controllers: Client
    """Everything, but only while this process leads."""
    election: Client
    """Repeats nothing by itself, is not fenced, and never waits for the others' turn."""


def ways_of(client: Client, fence: Fence, metrics: Registry, *, qps: float | None, clock: Clock) -> Ways:
    """Make them; what stands between `client` and its transport stands there for each of them, nearest to the verbs."""
    counter = RequestCounter(metrics, client.host)
    limit = [RateLimit(qps, clock=clock)] if qps else []
    return Ways(
        _derived(client, [*limit, fence.caches, counter]),
        _derived(client, [*limit, fence.controllers, counter]),
        _derived(client, [counter], repeat=False),
    )


def _derived(client: Client, innermost: Sequence[Interceptor], *, repeat: bool = True) -> Client:
    session = client._session  # pyright: ignore[reportPrivateUsage]
    options = session.options
    kept = [one for one in session.interceptors if repeat or not isinstance(one, Retry)]
    return Client(
        transport=session.transport,
        namespace=session.namespace,
        dry_run=options.dry_run,
        field_validation=options.field_validation,
        field_manager=options.field_manager,
        timeout=options.timeout,
        on_warning=session._on_warning,  # pyright: ignore[reportPrivateUsage]
        retry=None,
        interceptors=[*kept, *innermost],
    )
