"""Numbers about passes and queues, under the names that controller-runtime's and client-go's dashboards know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flyball.cache import Metrics
from flyball.controller.queue import Backoff, Queue
from flyball.controller.request import Request

if TYPE_CHECKING:
    from flyball.controller.passes import End
    from flyball.controller.runtime import ControllerRuntime

__all__ = ["PassMetrics", "Totals", "measured_queue"]


class _QueueNumbers:
    def __init__(self, metrics: Metrics, name: str) -> None:
        self._metrics = metrics
        self._name = name

    def added(self, depth: int) -> None:
        self._metrics.counter("workqueue_adds_total", name=self._name, controller=self._name)
        self._metrics.gauge("workqueue_depth", depth, name=self._name, controller=self._name)

    def taken(self, depth: int, waited: float) -> None:
        self._metrics.gauge("workqueue_depth", depth, name=self._name, controller=self._name)
        self._metrics.histogram("workqueue_queue_duration_seconds", waited, name=self._name, controller=self._name)

    def finished(self, worked: float) -> None:
        self._metrics.histogram("workqueue_work_duration_seconds", worked, name=self._name, controller=self._name)

    def retried(self) -> None:
        self._metrics.counter("workqueue_retries_total", name=self._name, controller=self._name)


def measured_queue(runtime: ControllerRuntime, name: str, backoff: Backoff) -> Queue[Request]:
    """A queue that counts."""
    return Queue(clock=runtime.clock, backoff=backoff, metrics=_QueueNumbers(runtime.metrics, name))


class PassMetrics:
    """How passes end and how long they take."""

    def __init__(self, metrics: Metrics, controller: str) -> None:
        """Of one controller."""
        self._metrics = metrics
        self._controller = controller

    def workers(self, count: int) -> None:
        """So many passes may run at once."""
        self._metrics.gauge("controller_runtime_max_concurrent_reconciles", count, controller=self._controller)

    def active(self, count: int) -> None:
        """So many run now."""
        self._metrics.gauge("controller_runtime_active_workers", count, controller=self._controller)

    def ended(self, end: End, seconds: float) -> None:
        """One more pass is over."""
        self._metrics.histogram("controller_runtime_reconcile_time_seconds", seconds, controller=self._controller)
        self._metrics.counter("controller_runtime_reconcile_total", controller=self._controller, result=_result(end))
        verdict = end.verdict
        if verdict is None:
            return
        if verdict.answer == "silent":
            self._metrics.counter("flyball_reconcile_conflicts_total", controller=self._controller)
        if verdict.answer in ("backoff", "terminal"):
            self._metrics.counter("controller_runtime_reconcile_errors_total", controller=self._controller)
        if verdict.answer == "terminal":
            self._metrics.counter("controller_runtime_terminal_reconcile_errors_total", controller=self._controller)
        if end.timed_out:
            self._metrics.counter("controller_runtime_reconcile_timeouts_total", controller=self._controller)


class Totals:
    """Numbers about single objects, told as their sum: a label for each object would make too many numbers."""

    def __init__(self, metrics: Metrics) -> None:
        """Nothing is known yet."""
        self._metrics = metrics
        self._known: dict[str, dict[Request, float]] = {}
        self._sums: dict[str, float] = {}

    def put(self, name: str, request: Request, value: float) -> None:
        """The number of one object is this now."""
        known = self._known.setdefault(name, {})
        self._tell(name, value - known.get(request, 0.0))
        known[request] = value

    def forget(self, request: Request) -> None:
        """The object is gone, and its numbers with it."""
        for name, known in self._known.items():
            self._tell(name, -known.pop(request, 0.0))

    def _tell(self, name: str, difference: float) -> None:
        total = self._sums[name] = self._sums.get(name, 0.0) + difference
        self._metrics.gauge(name, total)


def _result(end: End) -> str:
    verdict = end.verdict
    if verdict is None or verdict.answer == "ended":
        return "success" if end.wait is None else "requeue_after"
    if verdict.answer == "after":
        return "requeue_after"
    return "requeue" if verdict.answer == "silent" else "error"
