"""Numbers about the process, under the names that dashboards for controller-runtime and client-go know.

The rooms below tell numbers by name (`Metrics`); `Registry` keeps them, cheaply and without a library. Who serves
`/metrics` asks `exposition` for the text, which needs prometheus-client; programs' own prometheus-client metrics are in
the answer too.

Beside the known names there are: `flyball_strict_warnings_total{item}`, `flyball_live_reads_total{controller}`,
`flyball_reconcile_conflicts_total{controller}`, `flyball_informer_healthy{name}`, `flyball_loop_lag_seconds`,
`flyball_loop_blocked_total`, `flyball_resident_memory_bytes`.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from flyball.client.transport import HttpRequest, HttpResponse, Send

__all__ = ["BUCKETS", "CONTENT_TYPE", "HELP", "Family", "Registry", "RequestCounter", "exposition"]

Labels = tuple[tuple[str, str], ...]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

HELP: Final = {
    "controller_runtime_reconcile_total": "Passes of a controller by how they ended.",
    "controller_runtime_reconcile_errors_total": "Passes that failed.",
    "controller_runtime_terminal_reconcile_errors_total": "Passes that failed for good.",
    "controller_runtime_reconcile_panics_total": "Always zero: an exception is an error here.",
    "controller_runtime_reconcile_timeouts_total": "Passes that ran over their deadline.",
    "controller_runtime_reconcile_time_seconds": "How long passes took.",
    "controller_runtime_max_concurrent_reconciles": "Workers of a controller.",
    "controller_runtime_active_workers": "Workers that are busy.",
    "workqueue_depth": "Keys that wait for a worker.",
    "workqueue_adds_total": "Keys that were added.",
    "workqueue_queue_duration_seconds": "How long keys waited before a worker took them.",
    "workqueue_work_duration_seconds": "How long keys were worked on.",
    "workqueue_unfinished_work_seconds": "Seconds of all passes under way, added up.",
    "workqueue_longest_running_processor_seconds": "Seconds of the oldest pass under way.",
    "workqueue_retries_total": "Keys that were put into back-off.",
    "rest_client_requests_total": "Requests to the API server.",
    "leader_election_master_status": "1 on the replica that leads, 0 on the others.",
    "leader_election_slowpath_total": "Renewals of the lease that had to read it first.",
    "flyball_strict_warnings_total": "Broken rules of the controller model, by rule.",
    "flyball_live_reads_total": "Reads that went past the cache.",
    "flyball_reconcile_conflicts_total": "Passes that a newer version of an object ended.",
    "flyball_informer_healthy": "1 for a watch that is up to date, 0 for one that is not.",
    "flyball_loop_lag_seconds": "How late the event loop was when it was last asked.",
    "flyball_loop_blocked_total": "How often something blocked the event loop.",
    "flyball_resident_memory_bytes": "Memory of the process.",
    "flyball_memory_growth_total": "How often the process was found to have grown.",
}
"""What names mean; others are served without an explanation."""

_RECONCILE: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0),
    *(50.0, 60.0),
)
_WORKQUEUE: Final = tuple(float(f"1e{power}") for power in range(-8, 4))
_USUAL: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

BUCKETS: Final = {
    "controller_runtime_reconcile_time_seconds": _RECONCILE,
    "workqueue_queue_duration_seconds": _WORKQUEUE,
    "workqueue_work_duration_seconds": _WORKQUEUE,
}
"""Upper bounds of histograms; others have prometheus-client's own."""


@dataclass(slots=True)
class _Histogram:
    counts: list[int]
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class Family:
    """All numbers of one name: samples are suffix, labels and value."""

    name: str
    type: Literal["counter", "gauge", "histogram"]
    help: str
    samples: list[tuple[str, dict[str, str], float]] = field(default_factory=list[tuple[str, dict[str, str], float]])


class Registry:
    """Keeps what it is told; any thread may tell. It is the `Metrics` of the rooms below."""

    def __init__(self) -> None:
        """Start without numbers."""
        self._lock = threading.Lock()
        self._counters: dict[str, dict[Labels, float]] = {}
        self._gauges: dict[str, dict[Labels, float]] = {}
        self._histograms: dict[str, dict[Labels, _Histogram]] = {}
        self._sources: list[Callable[[], None]] = []

    def counter(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        """Add to a number that only grows."""
        key = _key(labels)
        with self._lock:
            family = self._counters.setdefault(name, {})
            family[key] = family.get(key, 0.0) + value

    def gauge(self, name: str, value: float, /, **labels: str) -> None:
        """Set a number."""
        with self._lock:
            self._gauges.setdefault(name, {})[_key(labels)] = value

    def histogram(self, name: str, value: float, /, **labels: str) -> None:
        """Count one more observation."""
        key = _key(labels)
        bounds = BUCKETS.get(name, _USUAL)
        with self._lock:
            family = self._histograms.setdefault(name, {})
            found = family.get(key)
            if found is None:
                found = family[key] = _Histogram([0] * (len(bounds) + 1))
            found.counts[bisect_left(bounds, value)] += 1
            found.total += value

    def add_source(self, source: Callable[[], None]) -> None:
        """Call `source` before numbers are read, so that it can set gauges that nobody keeps up to date."""
        self._sources.append(source)

    def value(self, name: str, /, **labels: str) -> float:
        """The number of a counter or gauge, or the count of a histogram; zero when nobody told one."""
        self._refresh()
        key = _key(labels)
        with self._lock:
            for kind in (self._counters, self._gauges):
                if name in kind:
                    return kind[name].get(key, 0.0)
            found = self._histograms.get(name, {}).get(key)
            return float(sum(found.counts)) if found is not None else 0.0

    def families(self) -> Iterator[Family]:
        """Everything that is known now, by name."""
        self._refresh()
        with self._lock:
            found = [
                *(_plain(name, "counter", values) for name, values in self._counters.items()),
                *(_plain(name, "gauge", values) for name, values in self._gauges.items()),
                *(_buckets(name, values) for name, values in self._histograms.items()),
            ]
        yield from sorted(found, key=lambda family: family.name)

    def _refresh(self) -> None:
        for source in self._sources:
            source()


def _key(labels: dict[str, str]) -> Labels:
    items = tuple(labels.items())
    if len(items) < 2 or (len(items) == 2 and items[0] <= items[1]):
        return items
    return tuple(sorted(items))


def _plain(name: str, kind: Literal["counter", "gauge"], values: dict[Labels, float]) -> Family:
    return Family(name, kind, HELP.get(name, ""), [("", dict(labels), value) for labels, value in values.items()])


def _buckets(name: str, values: dict[Labels, _Histogram]) -> Family:
    family = Family(name, "histogram", HELP.get(name, ""))
    bounds = [*(repr(bound) for bound in BUCKETS.get(name, _USUAL)), "+Inf"]
    for labels, found in values.items():
        total = 0
        for bound, count in zip(bounds, found.counts, strict=True):
            total += count
            family.samples.append(("_bucket", {**dict(labels), "le": bound}, float(total)))
        family.samples.extend([("_count", dict(labels), float(total)), ("_sum", dict(labels), found.total)])
    return family


class RequestCounter:
    """An interceptor that counts answers as client-go does; `<error>` stands for none."""

    def __init__(self, metrics: Registry, host: str) -> None:
        """`host` is the label of that name."""
        self._metrics = metrics
        self._host = host

    async def __call__(self, request: HttpRequest, send: Send) -> HttpResponse:
        """Send it and count what came."""
        code = "<error>"
        try:
            answer = await send(request)
            code = str(answer.status)
            return answer
        finally:
            self._metrics.counter("rest_client_requests_total", code=code, method=request.method, host=self._host)


def exposition(registry: Registry) -> bytes:
    """The text for Prometheus, with the program's own prometheus-client metrics; ImportError without that library."""
    from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
    from prometheus_client.core import Metric

    class Ours:
        def collect(self) -> Iterator[Any]:
            for family in registry.families():
                made = Metric(family.name.removesuffix("_total"), family.help, family.type)
                for suffix, labels, value in family.samples:
                    made.add_sample(family.name + suffix, labels, value)
                yield made

    ours = CollectorRegistry()
    ours.register(Ours())
    return generate_latest(ours) + generate_latest(REGISTRY)
