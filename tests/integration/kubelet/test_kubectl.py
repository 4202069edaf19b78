"""kubectl and Pods as processes: logs, commands in containers, their terminals and their ports."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
from typing import Any

import pytest
from tests.integration.kubelet.conftest import Kubectl

from flyball.api import to_dict
from flyball.controlplane.apiserver.kubelets import Connection, Kubelet, KubeletRefusal
from flyball.k8s.core.v1 import Pod
from flyball.testing import eventually

STEPS = "echo one; echo two >&2; echo three"
SLEEP = ("sleep", "1000")


def test_logs(kubectl: Kubectl) -> None:
    kubectl.pod("work", "sh", "-c", "echo one; echo two; echo three", phase="Succeeded", restartPolicy="Never")
    assert kubectl("logs", "work") == "one\ntwo\nthree\n"
    assert kubectl("logs", "work", "--tail=1") == "three\n"
    assert kubectl("logs", "work", "--tail=2", "-f") == "two\nthree\n"
    assert kubectl("logs", "work", "--limit-bytes=5") == "one\nt"
    assert kubectl("logs", "work", "--since=1h") == "one\ntwo\nthree\n"
    stamped = kubectl("logs", "work", "--timestamps").splitlines()
    assert [line.split(" ")[1] for line in stamped] == ["one", "two", "three"]
    assert all(line.split(" ")[0].endswith("Z") for line in stamped)


def test_logs_are_followed_to_the_end(kubectl: Kubectl) -> None:
    script = "echo begin; until test -e /tmp/go; do sleep 0.02; done; echo end"
    kubectl.pod("work", "sh", "-c", script, restartPolicy="Never")
    following = kubectl.start("logs", "-f", "work")
    assert following.stdout is not None
    assert following.stdout.readline() == "begin\n"
    kubectl("exec", "work", "--", "touch", "/tmp/go")
    assert following.communicate(timeout=60)[0] == "end\n"
    assert following.returncode == 0


def test_logs_of_the_run_before(kubectl: Kubectl) -> None:
    script = "test -e /tmp/x/seen && { echo second; sleep 1000; }; touch /tmp/x/seen; echo first; exit 1"
    mount = {"volumeMounts": [{"name": "x", "mountPath": "/tmp/x"}]}
    kubectl.pod("work", "sh", "-c", script, container=mount, volumes=[{"name": "x", "emptyDir": {}}])

    until(kubectl, "second\n", "logs", "work")
    assert kubectl("logs", "-p", "work") == "first\n"


def until(kubectl: Kubectl, told: str, *words: str) -> None:
    """Type something again and again until the answer is this."""

    async def wait() -> None:
        await eventually(lambda: kubectl.run(*words).stdout, lambda answer: answer == told, timeout=60)

    asyncio.run(wait())


def test_exec(kubectl: Kubectl) -> None:
    kubectl.pod("work", *SLEEP)
    assert kubectl("exec", "work", "--", "sh", "-c", "echo $HOSTNAME") == "work\n"
    assert kubectl("exec", "-i", "work", "--", "cat", stdin="typed\n") == "typed\n"
    failed = kubectl.run("exec", "work", "--", "sh", "-c", STEPS + "; exit 7")
    assert (failed.returncode, failed.stdout) == (7, "one\nthree\n")
    assert failed.stderr == "two\ncommand terminated with exit code 7\n"
    missing = kubectl.run("exec", "work", "--", "nosuch")
    assert missing.returncode != 0
    assert 'exec: "nosuch": executable file not found in $PATH' in missing.stderr
    assert kubectl("exec", "work", "--", "sh", "-c", "ps ax | grep -c '[s]leep 1000'") == "1\n"


def test_a_terminal(kubectl: Kubectl) -> None:
    kubectl.pod("work", *SLEEP)
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))

    def lead() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    with subprocess.Popen(
        [*kubectl.command, "exec", "-it", "work", "--", "sh"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        preexec_fn=lead,
    ) as shell:
        os.close(theirs)
        shown = b""

        def sees(text: bytes) -> None:
            nonlocal shown
            while text not in shown:
                ready, _, _ = select.select([ours], [], [], 60)
                assert ready, shown
                shown += os.read(ours, 4096)

        sees(b"# ")
        os.write(ours, b"test -t 0 && echo ter''minal; stty size; tty\n")
        sees(b"terminal\r\n33 99\r\n/dev/pts/")
        os.write(ours, b"sleep 1000\n")
        sees(b"sleep 1000\r\n")
        os.write(ours, b"\x03")
        os.write(ours, b"echo inter''rupted; exit 4\n")
        sees(b"interrupted\r\n")
        assert shell.wait(60) == 4
        os.close(ours)


def test_attach(kubectl: Kubectl) -> None:
    script = 'while read line; do echo "got $line"; done; echo bye'
    kubectl.pod("work", "sh", "-c", script, restartPolicy="Never", container={"stdin": True, "stdinOnce": True})
    assert kubectl("attach", "-i", "-q", "work", stdin="a\nb\n") == "got a\ngot b\nbye\n"
    assert kubectl("logs", "work") == "got a\ngot b\nbye\n"


def test_run_and_remove(kubectl: Kubectl) -> None:
    told = kubectl("run", "once", "--image=busybox", "--rm", "-i", "-q", "--restart=Never", "--", "echo", "hello")
    assert told.startswith("hello\n")


def test_a_port(kubectl: Kubectl) -> None:
    echo = (
        "import os, socket; s = socket.create_server((os.environ['IP'], 18090)); c, _ = s.accept(); c.send(c.recv(99))"
    )
    address = {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    kubectl.pod("work", "python", "-c", echo, image="python", restartPolicy="Never", container={"env": [address]})

    async def talk() -> list[bytes]:
        cluster = kubectl.cluster
        kubelet = cluster.embedded.server.kubelets.of("node-1")
        assert kubelet is not None
        pod = to_dict(await cluster.client.get(Pod, "work", namespace="default"))
        with pytest.raises(KubeletRefusal, match="18091: connect: connection refused"):
            await kubelet.connect(pod, 18091)
        connection = await eventually(lambda: reached(kubelet, pod), timeout=60)
        assert connection is not None
        await connection.write(b"hello")
        answers = [await connection.read(), await connection.read()]
        await connection.finish()
        await connection.close()
        return answers

    assert kubectl.cluster.run(talk()) == [b"hello", b""]


async def reached(kubelet: Kubelet, pod: Any) -> Connection | None:
    try:
        return await kubelet.connect(pod, 18090)
    except KubeletRefusal:
        return None
