"""kubectl looks into Pods of a test kubelet: logs, commands, files, ports. What a person types, end to end over TLS."""

from __future__ import annotations

import fcntl
import http.client
import http.server
import json
import os
import pty
import select
import socket
import struct
import subprocess
import termios
import threading
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.testkubelet import Kubelet, Line, start_pod

from flyball.testing import Cluster, eventually
from flyball.testing.binaries import BinariesMissing, find_binaries

_NAMED = {"batch.kubernetes.io/job-name": "work"}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "work"},
    "spec": {
        "manualSelector": True,
        "selector": {"matchLabels": _NAMED},
        "template": {
            "metadata": {"labels": _NAMED},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]},
        },
    },
}


class Kubectl:
    """kubectl, and the cluster that it talks to."""

    def __init__(self, program: Path, cluster: Cluster, cache: Path) -> None:
        self.cluster = cluster
        self.kubelet = Kubelet()
        self.command = [str(program), f"--kubeconfig={cluster.kubeconfig}", f"--cache-dir={cache}"]

    def run(self, *words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([*self.command, *words], input=stdin, capture_output=True, timeout=60, check=False)

    def __call__(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout!r}{done.stderr!r}"
        return done.stdout.decode()

    def refused(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 1, f"{' '.join(words)}: {done.returncode} {done.stdout!r}{done.stderr!r}"
        return done.stderr.decode().strip()

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self.command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def pod(self, name: str, *containers: str, **more: Any) -> None:
        cluster = self.cluster
        self.within(start_pod(cluster.embedded.server, cluster.client, self.kubelet, name, *containers, **more))

    def within(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something where the cluster runs."""
        self.cluster.run(work)

    def eventually(self, probe: Callable[[], bool]) -> None:
        async def wait() -> None:
            await eventually(probe)

        self.within(wait())

    def write(self, pod: str, *lines: Line | str, container: str = "main", previous: bool = False) -> None:
        async def write() -> None:
            self.kubelet.journal(pod, container, previous=previous).write(*lines)

        self.within(write())

    def end(self, pod: str, container: str = "main") -> None:
        async def end() -> None:
            self.kubelet.journal(pod, container).end()

        self.within(end())


class Terminal:
    """kubectl in a terminal, with somebody before it."""

    def __init__(self, kubectl: Kubectl, columns: int, rows: int, *words: str) -> None:
        self._ours, theirs = pty.openpty()
        self.resize(columns, rows)
        self.shown = b""
        self._process = subprocess.Popen(
            [*kubectl.command, *words], stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=_lead
        )
        os.close(theirs)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def sees(self, text: str) -> None:
        while text.encode() not in self.shown:
            ready, _, _ = select.select([self._ours], [], [], 30)
            assert ready, f"{text!r} is not shown: {self.shown!r}"
            self.shown += os.read(self._ours, 4096)

    def wait(self) -> int:
        while True:
            try:
                if not os.read(self._ours, 4096):
                    break
            except OSError:  # nobody is at the other side any more
                break
        return self._process.wait(30)


def _lead() -> None:
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture
def kubectl(tmp_path: Path) -> Generator[Kubectl]:
    try:
        program = find_binaries().path("kubectl")
    except BinariesMissing as missing:
        pytest.skip(str(missing))
    with Cluster() as cluster:
        yield Kubectl(program, cluster, tmp_path)


# Logs


def test_logs(kubectl: Kubectl) -> None:
    kubectl.pod("web")
    now = datetime.now(UTC)
    kubectl.write("web", Line("yesterday", at=now - timedelta(days=1)), Line("now", at=now), "and after")
    assert kubectl("logs", "web") == "yesterday\nnow\nand after\n"
    assert kubectl("logs", "web", "--tail=1") == "and after\n"
    assert kubectl("logs", "web", "--since=1h") == "now\nand after\n"
    assert kubectl("logs", "web", f"--since-time={now - timedelta(seconds=1):%Y-%m-%dT%H:%M:%SZ}").startswith("now\n")
    assert kubectl("logs", "web", "--limit-bytes=3") == "yes"
    first = kubectl("logs", "web", "--timestamps").split(" ")[0]
    assert datetime.fromisoformat(first) == now - timedelta(days=1)


def test_followed_logs(kubectl: Kubectl) -> None:
    kubectl.pod("web")
    kubectl.write("web", "one")
    following = kubectl.start("logs", "-f", "web")
    assert following.stdout is not None
    assert following.stdout.readline() == b"one\n"
    kubectl.write("web", "two")
    assert following.stdout.readline() == b"two\n"
    kubectl.write("web", "three")
    kubectl.end("web")
    assert following.communicate(timeout=30) == (b"three\n", b"")
    assert following.returncode == 0


def test_kubectl_that_is_killed_lets_the_kubelet_go(kubectl: Kubectl) -> None:
    kubectl.pod("web")
    kubectl.write("web", "one")
    with kubectl.start("logs", "-f", "web") as following:
        assert following.stdout is not None
        assert following.stdout.readline() == b"one\n"
        assert kubectl.kubelet.readers == 1
        following.kill()
    kubectl.eventually(lambda: kubectl.kubelet.readers == 0)


def test_logs_of_the_run_before(kubectl: Kubectl) -> None:
    kubectl.pod("web", last={"terminated": {"exitCode": 1}})
    kubectl.pod("fresh")
    kubectl.write("web", "last words", previous=True)
    assert kubectl("logs", "-p", "web") == "last words\n"
    told = 'Error from server (BadRequest): previous terminated container "main" in pod "fresh" not found'
    assert kubectl.refused("logs", "-p", "fresh") == told


def test_logs_of_one_of_several_containers(kubectl: Kubectl) -> None:
    kubectl.pod("two", "a", "b")
    kubectl.write("two", "from a", container="a")
    kubectl.write("two", "from b", container="b")
    assert kubectl("logs", "two", "-c", "b") == "from b\n"
    both = kubectl("logs", "two", "--all-containers", "--prefix").splitlines()
    assert sorted(both) == ["[pod/two/a] from a", "[pod/two/b] from b"]
    done = kubectl.run("logs", "two")
    assert (done.stdout, done.stderr) == (b"from a\n", b'Defaulted container "a" out of: a, b\n')
    told = "error: container z is not valid for pod two out of: a, b"
    assert kubectl.refused("logs", "two", "-c", "z") == told


def test_logs_of_a_selection_and_of_a_job(kubectl: Kubectl) -> None:
    kubectl.pod("one", labels={"app": "shop", **_NAMED})
    kubectl.pod("two", labels={"app": "shop"})
    kubectl.write("one", "first")
    kubectl.write("two", "second")
    assert sorted(kubectl("logs", "-l", "app=shop").splitlines()) == ["first", "second"]
    following = kubectl.start("logs", "-f", "-l", "app=shop", "--prefix")
    kubectl.end("one")
    kubectl.end("two")
    out, _ = following.communicate(timeout=30)
    assert sorted(out.decode().splitlines()) == ["[pod/one/main] first", "[pod/two/main] second"]
    done = kubectl.run("create", "-f", "-", stdin=json.dumps(JOB).encode())
    assert done.returncode == 0, done.stderr
    assert kubectl("logs", "job/work") == "first\n"


def test_logs_of_what_does_not_run(kubectl: Kubectl) -> None:
    kubectl.pod("pulling", state={"waiting": {"reason": "ImagePullBackOff"}})
    kubectl.pod("starting", state={"waiting": {"reason": "ContainerCreating"}})
    told = 'Error from server (BadRequest): container "main" in pod "%s" is waiting to start: %s'
    assert kubectl.refused("logs", "pulling") == told % ("pulling", "trying and failing to pull image")
    assert kubectl.refused("logs", "starting") == told % ("starting", "ContainerCreating")
    assert kubectl.refused("logs", "nobody").endswith('pods "nobody" not found in namespace "default"')
    kubectl("run", "unbound", "--image=busybox")
    assert kubectl("logs", "unbound") == ""


# Exec, attach, cp


def test_exec(kubectl: Kubectl) -> None:
    kubectl.pod("web")
    done = kubectl.run("exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout) == (3, b"out\n")
    assert done.stderr == b"err\ncommand terminated with exit code 3\n"
    assert kubectl("exec", "web", "--", "printf", "%s|", "two words", "", "$x") == "two words||$x|"
    killed = kubectl.run("exec", "web", "--", "sh", "-c", "kill -9 $$")
    assert (killed.returncode, killed.stderr) == (137, b"command terminated with exit code 137\n")


def test_exec_reads_what_is_piped(kubectl: Kubectl) -> None:
    kubectl.pod("web")
    data = bytes(range(256)) * 4096
    assert kubectl.run("exec", "-i", "web", "--", "cat", stdin=data).stdout == data
    assert kubectl.run("exec", "-i", "web", "--", "head", "-c", "3", stdin=data).stdout == data[:3]


def test_exec_in_one_of_several_containers(kubectl: Kubectl) -> None:
    kubectl.pod("two", "a", "b")
    done = kubectl.run("exec", "two", "--", "true")
    assert (done.returncode, done.stderr) == (0, b'Defaulted container "a" out of: a, b\n')
    kubectl("exec", "two", "-c", "b", "--", "true")
    assert [run.container for run in kubectl.kubelet.runs] == ["a", "b"]


def test_exec_where_it_cannot_be(kubectl: Kubectl) -> None:
    kubectl.pod("web")
    assert "executable file not found" in kubectl.refused("exec", "web", "--", "no-such-program")
    assert 'pods "nobody" not found' in kubectl.refused("exec", "nobody", "--", "true")
    kubectl("run", "unbound", "--image=busybox")
    assert "pod unbound does not have a host assigned" in kubectl.refused("exec", "unbound", "--", "true")


def test_kubectl_that_is_killed_ends_its_command(kubectl: Kubectl) -> None:
    kubectl.pod("web")
    with kubectl.start("exec", "web", "--", "sh", "-c", "echo ready; exec sleep 1000") as sleeper:
        assert sleeper.stdout is not None
        assert sleeper.stdout.readline() == b"ready\n"
        assert kubectl.kubelet.ended == []
        sleeper.kill()
    kubectl.eventually(lambda: len(kubectl.kubelet.ended) == 1)


def test_a_shell_in_a_terminal(kubectl: Kubectl) -> None:
    kubectl.pod("web")
    with Terminal(kubectl, 100, 30, "exec", "-it", "web", "--", "env", "PS1=say> ", "sh") as terminal:
        terminal.sees("say> ")
        terminal.type("until [ \"$(stty size)\" = '30 100' ]; do :; done; echo si''ze is right\n")
        terminal.sees("size is right\r\nsay> ")
        terminal.resize(90, 20)
        terminal.type("until [ \"$(stty size)\" = '20 90' ]; do :; done; echo si''ze is new\n")
        terminal.sees("size is new\r\nsay> ")
        terminal.type("sh -c 'echo be\"\"gin; exec cat'\n")
        terminal.sees("begin\r\n")
        terminal.type("hello\n")
        terminal.sees("hello\r\nhello\r\n")  # from the terminal, and from cat
        terminal.type("\x03")
        terminal.sees("^C\r\nsay> ")
        terminal.type("exit 7\n")
        assert terminal.wait() == 7


def test_attach(kubectl: Kubectl) -> None:
    kubectl.pod("web")
    kubectl.kubelet.main["main"] = ["sh", "-c", "while read line; do echo got $line; done; exit 5"]
    done = kubectl.run("attach", "-i", "web", stdin=b"one\ntwo\n")
    assert (done.returncode, done.stdout) == (5, b"got one\ngot two\n")
    kubectl.kubelet.main["main"] = ["echo", "only this"]
    assert kubectl("attach", "web") == "only this\n"


def test_files_there_and_back(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl.pod("web")
    here, there, back = tmp_path / "here", tmp_path / "there", tmp_path / "back"
    (here / "below").mkdir(parents=True)
    (here / "below" / "file").write_bytes(bytes(range(256)) * 5000)
    kubectl("cp", str(here), f"web:{there}")
    assert (there / "below" / "file").read_bytes() == bytes(range(256)) * 5000
    kubectl("cp", f"web:{there}/below/file", str(back))
    assert back.read_bytes() == bytes(range(256)) * 5000


# Port-forward


class Forwarding:
    """kubectl port-forward at work."""

    def __init__(self, kubectl: Kubectl, *words: str) -> None:
        self.process = kubectl.start("port-forward", *words)

    def __enter__(self) -> Forwarding:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def port(self) -> int:
        """The local port of the next line that tells of one."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline().decode():
            if line.startswith("Forwarding from 127.0.0.1:"):
                return int(line.split(" -> ")[0].rpartition(":")[2])
        raise AssertionError(f"kubectl ended: {self.process.communicate()!r}")


def page(port: int) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/")
    body = connection.getresponse().read()
    connection.close()
    return body


@pytest.fixture
def web_server() -> Generator[int]:
    """A web server whose page is large; yields its port."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(PAGE)))
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


PAGE = bytes(range(256)) * 4096


def test_port_forward(kubectl: Kubectl, web_server: int) -> None:
    kubectl.pod("web", labels={"app": "web"})
    service = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": web_server}]}
    made = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": service}
    assert kubectl.run("create", "-f", "-", stdin=json.dumps(made).encode()).returncode == 0
    for words in (["pod/web", f":{web_server}"], ["service/web", ":80"]):
        with Forwarding(kubectl, *words) as forwarding:
            port = forwarding.port()
            with ThreadPoolExecutor(8) as pool:
                assert set(pool.map(page, [port] * 16)) == {PAGE}
            kubectl.eventually(lambda: not kubectl.kubelet.connections)


def test_port_forward_to_a_port_on_which_nobody_listens(kubectl: Kubectl) -> None:
    kubectl.pod("web")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        unused = taken.getsockname()[1]
    with Forwarding(kubectl, "web", f":{unused}") as forwarding:
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            page(forwarding.port())
        _, told = forwarding.process.communicate(timeout=30)
    assert forwarding.process.returncode == 1
    assert f"failed to connect to localhost:{unused} inside the pod".encode() in told
    assert told.endswith(b"error: lost connection to pod\n")


def test_port_forward_ends_with_the_server(kubectl: Kubectl, web_server: int) -> None:
    kubectl.pod("web")
    with Forwarding(kubectl, "web", f":{web_server}") as forwarding:
        assert page(forwarding.port()) == PAGE
        kubectl.within(kubectl.cluster.embedded.stop())
        forwarding.process.communicate(timeout=30)
        assert forwarding.process.returncode == 1
