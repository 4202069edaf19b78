"""The servers of a process: one for probes, one for numbers, or both on one port."""

from __future__ import annotations

import importlib.util
import logging
from typing import TYPE_CHECKING

from flyball.errors import ConfigError
from flyball.manager.health import Checks
from flyball.manager.metrics import CONTENT_TYPE, Registry, exposition
from flyball.manager.options import Options
from flyball.manager.ports import PortTaken

if TYPE_CHECKING:
    from flyball.manager.probes import Server

__all__ = ["Serving"]

log = logging.getLogger(__name__)

HEALTH_PORT = 8081
METRICS_PORT = 8080


class Serving:
    """Starts what the options ask for.

    A port that somebody asked for must be free; the usual one is given up with a warning when it is taken. Numbers need
    `flyball[metrics]`: who asks for them without it is told, nobody else.
    """

    def __init__(self, options: Options, alive: Checks, ready: Checks, metrics: Registry) -> None:
        """Nothing listens yet."""
        self._options = options
        self._checks = (alive, ready)
        self._metrics = metrics
        self._servers: list[Server] = []
        self.health_url: str | None = None
        """Where probes are answered; None when nowhere."""
        self.metrics_url: str | None = None
        """Where `/metrics` is; None when nowhere."""

    async def start(self) -> None:
        """Listen."""
        options = self._options
        numbers = self._serves_numbers()
        both = numbers and bool(options.health_port) and options.health_port == options.metrics_port
        if options.health_port != -1:
            server = _server(options.host_for_health, options.health_port, HEALTH_PORT)
            alive, ready = self._checks
            for path, checks in (("/healthz", alive), ("/livez", alive), ("/readyz", ready)):
                server.serve_checks(path, checks)
            if both:
                self._serve_numbers(server)
            self.health_url = await self._start(server, asked=options.health_port is not None, what="health checks")
        if both:
            self.metrics_url = self.health_url
        elif numbers:
            server = _server(options.host_for_metrics, options.metrics_port, METRICS_PORT)
            self._serve_numbers(server)
            self.metrics_url = await self._start(server, asked=options.metrics_port is not None, what="metrics")

    async def stop(self) -> None:
        """Stop listening."""
        for server in self._servers:
            await server.stop()
        self._servers.clear()
        self.health_url = self.metrics_url = None

    def _serve_numbers(self, server: Server) -> None:
        server.serve_text("/metrics", lambda: exposition(self._metrics), content_type=CONTENT_TYPE)

    def _serves_numbers(self) -> bool:
        port = self._options.metrics_port
        if port == -1:
            return False
        if importlib.util.find_spec("prometheus_client") is not None:
            return True
        if port is not None:
            raise ConfigError(f"metrics on port {port}: prometheus-client is missing; install flyball[metrics]")
        return False

    async def _start(self, server: Server, *, asked: bool, what: str) -> str | None:
        try:
            await server.start()
        except PortTaken as error:
            if asked:
                raise
            log.warning("%s are not served: %s", what, error)
            return None
        self._servers.append(server)
        log.info("%s are served at %s", what, server.url)
        return server.url


def _server(host: str, asked: int | None, usual: int) -> Server:
    from flyball.manager.probes import Server

    return Server(host=host, port=usual if asked is None else asked)
