"""Numbers and the text that Prometheus reads."""

from __future__ import annotations

import subprocess
import sys
import threading

import prometheus_client
import pytest
from prometheus_client.parser import text_string_to_metric_families

from flyball.client.transport import HttpRequest, HttpResponse
from flyball.errors import ConnectError
from flyball.manager.metrics import Registry, RequestCounter, exposition

pytestmark = pytest.mark.capability("C53")


def test_prometheus_reads_what_is_written() -> None:
    numbers = Registry()
    numbers.counter("controller_runtime_reconcile_total", controller="shell", result="success")
    numbers.counter("controller_runtime_reconcile_total", 2, result="success", controller="shell")
    numbers.gauge("workqueue_depth", 4, name="shell", controller="shell")
    numbers.histogram("controller_runtime_reconcile_time_seconds", 0.3, controller="shell")
    numbers.histogram("controller_runtime_reconcile_time_seconds", 700.0, controller="shell")
    found = {one.name: one for one in text_string_to_metric_families(exposition(numbers).decode())}
    total = found["controller_runtime_reconcile"].samples
    assert [(one.name, one.labels, one.value) for one in total] == [
        ("controller_runtime_reconcile_total", {"controller": "shell", "result": "success"}, 3.0)
    ]
    assert found["workqueue_depth"].samples[0].value == 4
    times = {
        one.labels.get("le", one.name): one.value for one in found["controller_runtime_reconcile_time_seconds"].samples
    }
    assert (times["0.25"], times["0.3"], times["60.0"], times["+Inf"]) == (0, 1, 1, 2)
    assert times["controller_runtime_reconcile_time_seconds_sum"] == 700.3
    assert found["workqueue_depth"].documentation == "Keys that wait for a worker."


def test_the_programs_own_metrics_are_served_too() -> None:
    own = prometheus_client.Counter("flyball_test_own_things", "Things of the test.")
    own.inc()
    try:
        assert "flyball_test_own_things_total 1.0" in exposition(Registry()).decode()
    finally:
        prometheus_client.REGISTRY.unregister(own)


def test_sources_are_asked_when_numbers_are_read() -> None:
    numbers = Registry()
    depth = [1]
    numbers.add_source(lambda: numbers.gauge("workqueue_depth", depth[0]))
    assert numbers.value("workqueue_depth") == 1
    depth[0] = 7
    assert numbers.value("workqueue_depth") == 7
    assert numbers.value("nothing") == 0


def test_threads_lose_nothing() -> None:
    numbers = Registry()

    def count() -> None:
        for _ in range(5_000):
            numbers.counter("things_total", kind="a")
            numbers.histogram("seconds", 0.1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert (numbers.value("things_total", kind="a"), numbers.value("seconds")) == (20_000, 20_000)


class Answer:
    status = 201


async def test_requests_are_counted_by_their_answers() -> None:
    numbers = Registry()
    counter = RequestCounter(numbers, "example:6443")

    async def answers(_: HttpRequest) -> HttpResponse:
        return Answer()  # type: ignore[return-value]

    async def fails(_: HttpRequest) -> HttpResponse:
        raise ConnectError("no")

    await counter(HttpRequest("POST", "/x"), answers)
    with pytest.raises(ConnectError):
        await counter(HttpRequest("GET", "/x"), fails)
    assert numbers.value("rest_client_requests_total", code="201", method="POST", host="example:6443") == 1
    assert numbers.value("rest_client_requests_total", code="<error>", method="GET", host="example:6443") == 1


@pytest.mark.parametrize("module", ["prometheus_client", "aiohttp.web", "yaml"])
def test_what_only_some_processes_need_is_imported_by_those(module: str) -> None:
    """Nothing is served, and in a pod there is no kubeconfig."""
    code = f"import sys, flyball.manager, flyball.client.http_transport; print({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
