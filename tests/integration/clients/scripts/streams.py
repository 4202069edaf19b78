# pyright: basic, reportMissingImports=false
"""Commands and ports, as clients of other people ask for them. $POD and $PORT name what is there already."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import kr8s
import kubernetes
import kubernetes_asyncio
import lightkube
from _cases import case, run
from kubernetes.stream import portforward, stream
from kubernetes_asyncio.stream import WsApiClient

POD, PORT = os.environ["POD"], int(os.environ["PORT"])
SCRIPT = ["sh", "-c", "echo out; echo err >&2; exit 3"]
WANTED: dict[str, Any] = {"stderr": True, "stdout": True, "tty": False}


@case
def official_exec(_: Any, __: str) -> None:
    api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config())
    ask = api.connect_get_namespaced_pod_exec
    whole = stream(ask, POD, "default", command=["echo", "all of it"], stdin=False, **WANTED)
    assert whole == "all of it\n", whole
    talk = stream(ask, POD, "default", command=SCRIPT, stdin=False, _preload_content=False, **WANTED)
    talk.run_forever(timeout=20)
    assert (talk.read_stdout(), talk.read_stderr(), talk.returncode) == ("out\n", "err\n", 3)
    talk.close()


@case
def official_exec_with_input(_: Any, __: str) -> None:
    api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config())
    command = ["sh", "-c", "read first; echo got $first; read second; echo got $second; read end"]
    ask = api.connect_get_namespaced_pod_exec
    talk = stream(ask, POD, "default", command=command, stdin=True, _preload_content=False, **WANTED)
    talk.write_stdin("one\n")
    assert (first := talk.readline_stdout(timeout=20)) == "got one", first
    talk.write_stdin("two\n")
    assert (second := talk.readline_stdout(timeout=20)) == "got two", second
    talk.write_stdin("end\n")
    talk.run_forever(timeout=20)
    assert talk.returncode == 0, talk.returncode
    talk.close()


@case
def official_exec_of_nothing(_: Any, __: str) -> None:
    told = ""
    api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config())
    try:
        stream(api.connect_get_namespaced_pod_exec, "nobody", "default", command=["true"], stdin=False, **WANTED)
    except kubernetes.client.ApiException as error:
        told = str(error)
    assert "404" in told, told


@case
def official_port_forward(_: Any, __: str) -> None:
    api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config())
    forward = portforward(api.connect_get_namespaced_pod_portforward, POD, "default", ports=str(PORT))
    socket = forward.socket(PORT)
    socket.setblocking(True)
    socket.sendall(b"hello")
    assert socket.recv(5) == b"hello"
    socket.close()
    assert forward.error(PORT) is None, forward.error(PORT)


@case
def official_logs(_: Any, __: str) -> None:
    api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config())
    assert api.read_namespaced_pod_log(POD, "default") == "one\ntwo\n"
    assert api.read_namespaced_pod_log(POD, "default", tail_lines=1) == "two\n"


@case
async def asyncio_exec(_: Any, __: str) -> None:
    await kubernetes_asyncio.config.load_kube_config()
    async with WsApiClient() as client:
        ask = kubernetes_asyncio.client.CoreV1Api(client).connect_get_namespaced_pod_exec
        assert await ask(POD, "default", command=["echo", "all of it"], stdin=False, **WANTED) == "all of it\n"
        talk = await ask(POD, "default", command=SCRIPT, stdin=False, _preload_content=False, **WANTED)
        async with talk as socket:
            messages = [message.data async for message in socket]
        assert client.parse_error_data(messages[-1][1:].decode()) == 3


@case
def lightkube_exec(_: Any, __: str) -> None:
    done = lightkube.Client().exec(POD, namespace="default", command=SCRIPT, stdout=True, stderr=True)
    assert (done.stdout, done.stderr, done.exit_code) == ("out\n", "err\n", 3), done
    fed = lightkube.Client().exec(POD, namespace="default", command=["cat"], stdin="typed", stdout=True)
    assert fed.stdout == "typed", fed


@case
async def kr8s_exec(_: Any, __: str) -> None:
    pod = await kr8s.asyncio.objects.Pod.get(POD, namespace="default")
    done = await pod.exec(SCRIPT, check=False)
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 3), done


@case
async def kr8s_port_forward(_: Any, __: str) -> None:
    pod = await kr8s.asyncio.objects.Pod.get(POD, namespace="default")
    async with pod.portforward(PORT, local_port="auto") as local:
        reader, writer = await asyncio.open_connection("127.0.0.1", local)
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        writer.close()


run(None)
