"""kubectl looks into Pods that are processes of this machine: the whole way, from what is typed to the process."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from flyball.testing import Cluster
from flyball.testing.binaries import BinariesMissing, find_binaries

SERVER = """
import http.server, os, sys
class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"hello from {os.environ['HOSTNAME']}".encode())
    def log_message(self, *words): pass
server = http.server.ThreadingHTTPServer((os.environ["POD_IP"], 0), Hello)
print(server.server_port, flush=True)
print("ready", file=sys.stderr, flush=True)
server.serve_forever()
"""


class Kubectl:
    def __init__(self, program: Path, cluster: Cluster, cache: Path) -> None:
        self.command = [str(program), f"--kubeconfig={cluster.kubeconfig}", f"--cache-dir={cache}"]

    def run(self, *words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([*self.command, *words], input=stdin, capture_output=True, timeout=120, check=False)

    def __call__(self, *words: str, stdin: bytes | None = None) -> str:
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout!r}{done.stderr!r}"
        return done.stdout.decode()

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self.command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def runs(self, name: str, *command: str, image: str = "busybox", **more: object) -> None:
        """Make a Pod whose container runs a command; wait until it does."""
        env = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
        container = {"name": "main", "image": image, "command": list(command), "env": env, **more}
        spec = {"terminationGracePeriodSeconds": 1, "containers": [container]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        self("create", "-f", "-", stdin=json.dumps(pod).encode())
        self("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")


@pytest.fixture
def kubectl(tmp_path: Path) -> Generator[Kubectl]:
    try:
        program = find_binaries().path("kubectl")
    except BinariesMissing as missing:
        pytest.skip(str(missing))
    with Cluster(workloads=True, pods="process") as cluster:
        yield Kubectl(program, cluster, tmp_path)


@pytest.mark.capability("C8")
def test_logs(kubectl: Kubectl) -> None:
    kubectl.runs(
        "web", "sh", "-c", "echo one; echo two >&2; while ! [ -e /tmp/$HOSTNAME-on ]; do sleep 0.05; done; echo 3"
    )
    following = kubectl.start("logs", "-f", "web")
    assert following.stdout is not None
    assert {following.stdout.readline(), following.stdout.readline()} == {b"one\n", b"two\n"}
    assert sorted(kubectl("logs", "web").splitlines()) == ["one", "two"]
    assert kubectl("logs", "web", "--tail=0") == ""
    assert kubectl("logs", "web", "--since=1h", "--timestamps").count("Z ") == 2
    following.kill()
    following.communicate()


def test_logs_of_the_run_before_and_of_a_job(kubectl: Kubectl) -> None:
    kubectl("create", "job", "work", "--image=busybox", "--", "echo", "done")
    kubectl("wait", "--for=condition=complete", "job/work", "--timeout=60s")
    assert kubectl("logs", "job/work") == "done\n"
    assert kubectl("logs", "-l", "job-name=work") == "done\n"
    kubectl("run", "again", "--image=busybox", "--", "sh", "-c", "echo run; sleep 0.2; exit 3")
    path = "jsonpath={.status.containerStatuses[0].restartCount}=1"
    kubectl("wait", f"--for={path}", "pod/again", "--timeout=60s")
    assert kubectl("logs", "-p", "again") == "run\n"


def test_exec(kubectl: Kubectl) -> None:
    kubectl.runs("web", "sleep", "1000")
    done = kubectl.run("exec", "web", "--", "sh", "-c", "echo $HOSTNAME; echo err >&2; exit 3")
    assert (done.returncode, done.stdout) == (3, b"web\n")
    assert done.stderr == b"err\ncommand terminated with exit code 3\n"
    data = bytes(range(256)) * 4096
    assert kubectl.run("exec", "-i", "web", "--", "cat", stdin=data).stdout == data
    assert b"no-such-program" in kubectl.run("exec", "web", "--", "no-such-program").stderr


def test_files_there_and_back(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl.runs("web", "sleep", "1000")
    (tmp_path / "here").write_bytes(bytes(range(256)) * 5000)
    kubectl("cp", str(tmp_path / "here"), "web:copied")
    assert kubectl("exec", "web", "--", "wc", "-c", "copied").split() == ["1280000", "copied"]
    kubectl("cp", "web:copied", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == bytes(range(256)) * 5000


def test_attach(kubectl: Kubectl) -> None:
    script = "while read line; do echo got $line; done; exit 5"
    kubectl.runs("web", "sh", "-c", script, stdin=True, stdinOnce=True)
    done = kubectl.run("attach", "-i", "web", stdin=b"one\ntwo\n")
    assert done.stdout == b"got one\ngot two\n"
    assert done.returncode == 5


def test_port_forward(kubectl: Kubectl) -> None:
    kubectl.runs("web", "python", "-c", SERVER, image="python")
    following = kubectl.start("logs", "-f", "web")
    assert following.stdout is not None
    lines = {following.stdout.readline().strip(), following.stdout.readline().strip()} - {b"ready"}
    following.kill()
    following.communicate()
    forwarding = kubectl.start("port-forward", "web", f":{int(lines.pop())}")
    assert forwarding.stdout is not None
    local = int(forwarding.stdout.readline().decode().split(" -> ")[0].rpartition(":")[2])
    for _ in range(3):
        connection = http.client.HTTPConnection("127.0.0.1", local, timeout=30)
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"hello from web"
        connection.close()
    forwarding.kill()
    forwarding.communicate()
