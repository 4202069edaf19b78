"""Checks, and the server that probes ask."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import aiohttp
import pytest

from flyball.errors import ConfigError
from flyball.manager.health import Checks
from flyball.manager.metrics import Registry
from flyball.manager.options import Options
from flyball.manager.ports import PortTaken
from flyball.manager.probes import Server
from flyball.manager.serving import HEALTH_PORT, Serving

pytestmark = pytest.mark.capability("C52")


@pytest.fixture(name="http")
async def _http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def get(http: aiohttp.ClientSession, url: str) -> tuple[int, str]:
    async with http.get(url) as answer:
        return answer.status, await answer.text()


async def waits() -> str | None:
    return "waits for its turn"


async def test_probes_are_answered_by_name(http: aiohttp.ClientSession) -> None:
    checks = Checks()
    checks.add("caches", lambda: None)
    checks.add("lease", waits)
    server = Server(host="127.0.0.1", port=0)
    server.serve_checks("/readyz", checks)
    await server.start()
    try:
        url = f"{server.url}/readyz"
        assert await get(http, url) == (
            500,
            "[+]ping ok\n[+]caches ok\n[-]lease failed: waits for its turn\nreadyz check failed\n",
        )
        assert await get(http, f"{url}?exclude=lease") == (200, "ok")
        assert await get(http, f"{url}/caches") == (200, "ok")
        assert (await get(http, f"{url}/lease"))[0] == 500
        assert await get(http, f"{url}/none") == (404, "there is no check named none\n")
        verbose = await get(http, f"{url}?verbose&exclude=lease")
        assert verbose == (200, "[+]ping ok\n[+]caches ok\nreadyz check passed\n")
    finally:
        await server.stop()
    assert server.url is None


async def test_a_check_that_breaks_is_a_failure_and_not_the_end() -> None:
    checks = Checks()

    def breaks() -> str | None:
        raise KeyError("x")

    checks.add("odd", breaks)
    assert await checks.ask(only="odd") == {"odd": "KeyError: 'x'"}


def test_a_name_is_used_once() -> None:
    checks = Checks()
    with pytest.raises(ValueError, match="a check named 'ping' already"):
        checks.add("ping", lambda: None)


async def test_a_taken_port_names_itself() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = Server(host="127.0.0.1", port=taken.getsockname()[1])
        with pytest.raises(PortTaken, match=r"listen on 127\.0\.0\.1:\d+: .*; choose another port, or 0"):
            await server.start()


def serving(**options: int) -> Serving:
    return Serving(Options(**options), Checks(), Checks(), Registry())  # type: ignore[arg-type]


async def test_the_usual_port_is_given_up_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    try:
        taken = socket.create_server(("127.0.0.1", HEALTH_PORT))
    except OSError:
        taken = None  # somebody else has it, which is as good
    parts = serving(metrics_port=-1)
    await parts.start()
    await parts.stop()
    if taken is not None:
        taken.close()
    assert parts.health_url is None
    assert f"health checks are not served: listen on 127.0.0.1:{HEALTH_PORT}" in caplog.text


async def test_one_port_can_serve_both(http: aiohttp.ClientSession) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    parts = serving(health_port=port, metrics_port=port)
    await parts.start()
    try:
        assert parts.metrics_url == parts.health_url
        assert (await get(http, f"{parts.metrics_url}/metrics"))[0] == 200
        assert await get(http, f"{parts.health_url}/livez") == (200, "ok")
    finally:
        await parts.stop()


async def test_numbers_need_their_library_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    quiet = serving(health_port=-1)
    await quiet.start()
    assert quiet.metrics_url is None
    with pytest.raises(ConfigError, match=r"install flyball\[metrics\]"):
        await serving(health_port=-1, metrics_port=0).start()


def test_in_a_pod_everybody_may_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Options().host_for_health == Options().host_for_metrics == "127.0.0.1"
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr("flyball.manager.options.in_pod", lambda: True)
    assert Options().host_for_health == "0.0.0.0"
    assert Options(metrics_host="127.0.0.1").host_for_metrics == "127.0.0.1"
