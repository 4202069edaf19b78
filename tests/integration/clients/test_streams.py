"""The Python clients of other people run commands, read logs and forward ports on the embedded API server."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

import pytest
from tests.integration.clients.environment import clients_python
from tests.integration.clients.playing import SCRIPTS, play_program
from tests.support.testkubelet import Kubelet, start_pod

from flyball.testing import Cluster


@contextmanager
def echo() -> Generator[int]:
    """A server that gives back what it gets; yields its port."""

    def talk(connection: socket.socket) -> None:
        with connection, suppress(ConnectionError):
            while data := connection.recv(65536):
                connection.sendall(data)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=accept)
        accepting.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    accepting.join()


@pytest.mark.capability("C8")
def test_streams_of_other_clients() -> None:
    python = clients_python()
    kubelet = Kubelet()
    with Cluster() as cluster, echo() as port:
        cluster.run(start_pod(cluster.embedded.server, cluster.client, kubelet, "web"))

        async def write() -> None:
            kubelet.journal("web").write("one", "two")

        cluster.run(write())
        command = ["env", "POD=web", f"PORT={port}", str(python), os.fspath(SCRIPTS / "streams.py")]
        play_program(command, "streams", cluster.kubeconfig)
        assert [request for request in cluster.requests if request.status >= 500] == []
        assert kubelet.ended == kubelet.runs
