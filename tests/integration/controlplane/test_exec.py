"""Commands in containers, over both transports: what is typed, what is written, how they end, and who is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from tests.support.testkubelet import Kubelet, start_pod
from yarl import URL

from flyball import sync
from flyball.client import Client
from flyball.client.refusals import RefusedRequest
from flyball.client.tls import Tls
from flyball.controlplane.apiserver.http import HttpDoor
from flyball.controlplane.apiserver.kubelets import KubeletRefusal, Run, Streams
from flyball.controlplane.bootstrap import ADMIN
from flyball.errors import ApiError, BadRequest, CommandFailed, ConnectionLost, Forbidden, InternalError, NotFound
from flyball.testing import Cluster, eventually


async def start(cluster: Cluster, kubelet: Kubelet, name: str = "web") -> None:
    await start_pod(cluster.embedded.server, cluster.client, kubelet, name)


# Awaited


@pytest.mark.capability("C8")
async def test_a_command_to_its_end(client: Client, kubelet: Kubelet) -> None:
    done = await client.exec("web", ["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (done.exit_code, done.stdout, done.stderr) == (3, b"out\n", b"err\n")
    assert done.text == "out\n"
    assert kubelet.runs == [Run("main", ("sh", "-c", "echo out; echo err >&2; exit 3"))]
    assert kubelet.ended == kubelet.runs


async def test_words_reach_the_command_as_they_are(client: Client, kubelet: Kubelet) -> None:
    words = ["printf", "%s|", "two words", "", "a&b=c", "$HOME; `x`", "ä\n", "--", "+%2B"]
    assert (await client.exec("web", words)).text == "two words||a&b=c|$HOME; `x`|ä\n|--|+%2B|"


async def test_input_and_its_end(client: Client, kubelet: Kubelet) -> None:
    data = bytes(range(256)) * 8192
    done = await client.exec("web", ["cat"], stdin=data)
    assert (done.exit_code, len(done.stdout), done.stdout == data) == (0, len(data), True)
    assert (await client.exec("web", ["cat"], stdin="text ä")).text == "text ä"
    assert (await client.exec("web", ["cat"], stdin=b"")).text == ""


async def test_input_that_nobody_reads_holds_nothing_up(client: Client, kubelet: Kubelet) -> None:
    done = await client.exec("web", ["sh", "-c", "exec <&-; echo done"], stdin=b"x" * (4 << 20))
    assert done.text == "done\n"


async def test_output_of_both_kinds_at_once(client: Client, kubelet: Kubelet) -> None:
    script = "for i in 1 2 3 4; do head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2; done"
    done = await client.exec("web", ["sh", "-c", script])
    assert (len(done.stdout), len(done.stderr)) == (4_000_000, 4_000_000)


async def test_failure_is_an_error_where_success_was_asked_for(client: Client, kubelet: Kubelet) -> None:
    with pytest.raises(CommandFailed, match=r"^exec in Pod default/web: ls /nowhere: exit code 2: ls: .*/nowhere") as f:
        await client.exec("web", ["ls", "/nowhere"], check=True)
    assert (f.value.exit_code, f.value.stdout) == (2, b"")
    assert (await client.exec("web", ["true"], check=True)).exit_code == 0


async def test_one_of_several_containers(client: Client, cluster: Cluster) -> None:
    kubelet = Kubelet()
    await start_pod(cluster.embedded.server, cluster.client, kubelet, "two", "a", "b")
    with pytest.raises(BadRequest, match=r"a container name must be specified for pod two, choose one of: \[a b\]"):
        await client.exec("two", ["true"])
    with pytest.raises(BadRequest, match="container z is not valid for pod two"):
        await client.exec("two", ["true"], container="z")
    await client.exec("two", ["true"], container="b")
    assert [run.container for run in kubelet.runs] == ["b"]


async def test_many_at_once(client: Client, kubelet: Kubelet) -> None:
    done = await asyncio.gather(*(client.exec("web", ["echo", str(number)]) for number in range(20)))
    assert [one.text for one in done] == [f"{number}\n" for number in range(20)]


# Entered


async def test_a_talk(client: Client, kubelet: Kubelet) -> None:
    async with client.exec("web", ["cat"], stdin=True) as cat:
        await cat.write("one\n")
        assert await cat.stdout.read() == b"one\n"
        await cat.write(b"two\n")
        assert await cat.stdout.read() == b"two\n"
        await cat.finish()
        assert await cat.wait() == 0
        assert await cat.stdout.read() == b""
        assert await cat.wait() == 0


async def test_a_terminal(client: Client, kubelet: Kubelet) -> None:
    async with client.exec("web", ["sh"], stdin=True, tty=True) as shell:
        await shell.resize(123, 45)
        await shell.write("until [ \"$(stty size)\" = '45 123' ]; do :; done; tty >/dev/null && echo si''ze is right\n")
        await seen(shell.stdout, b"size is right")
        await shell.resize(80, 25)
        await shell.write("until [ \"$(stty size)\" = '25 80' ]; do :; done; echo si''ze is new; exit 4\n")
        await seen(shell.stdout, b"size is new")
        assert await shell.wait() == 4
        assert await shell.stderr.read_all() == b""
    assert kubelet.runs == [Run("main", ("sh",), stdin=True, stderr=False, tty=True)]


async def seen(output: Any, text: bytes) -> None:
    shown = b""
    async with asyncio.timeout(30):
        while text not in shown:
            part = await output.read()
            assert part, f"it ended after {shown!r}"
            shown += part


async def test_who_leaves_early_ends_the_command(client: Client, kubelet: Kubelet) -> None:
    async with client.exec("web", ["sh", "-c", "echo ready; exec sleep 1000"]) as sleeper:
        assert await sleeper.stdout.read() == b"ready\n"
        assert kubelet.ended == []
    await eventually(lambda: kubelet.ended == kubelet.runs)


async def test_who_is_cancelled_ends_the_command(client: Client, kubelet: Kubelet) -> None:
    async def run() -> None:
        await client.exec("web", ["sleep", "1000"])

    running = asyncio.create_task(run())
    await eventually(lambda: len(kubelet.runs) == 1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await eventually(lambda: kubelet.ended == kubelet.runs)


async def test_it_ends_with_the_server(client: Client, cluster: Cluster, kubelet: Kubelet) -> None:
    async with client.exec("web", ["sh", "-c", "echo ready; exec sleep 1000"]) as sleeper:
        assert await sleeper.stdout.read() == b"ready\n"
        await cluster.embedded.stop()
        assert await sleeper.stdout.read() == b""
        with pytest.raises(ConnectionLost, match="the connection ended before the process did"):
            await sleeper.wait()
        with pytest.raises(ConnectionLost):
            await sleeper.write(b"x" * (8 << 20))
    assert kubelet.ended == kubelet.runs


async def test_a_slow_reader_makes_the_command_wait(cluster: Cluster, client: Client) -> None:
    written = 0

    class Endless(Kubelet):
        async def exec(self, pod: Any, run: Run, streams: Streams) -> int:
            nonlocal written
            while True:
                await streams.write(b"x" * 65536)
                written += 65536

    await start(cluster, Endless())
    async with client.exec("web", ["yes"]) as yes:
        await yes.stdout.read()
        before = -1
        while written != before:  # until it has come to rest, however large the buffers between are
            before = written
            for _ in range(200):
                await asyncio.sleep(0)
        assert written < 64 << 20
        more = written + (1 << 20)
        while more > 0:
            more -= len(await yes.stdout.read())


class Flood(Kubelet):
    """Begins to write when it is told to, and does not end for long."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = asyncio.Event()
        self.ready = asyncio.Event()
        self.written = 0

    async def exec(self, pod: Any, run: Run, streams: Streams) -> int:
        self.runs.append(run)
        try:
            self.ready.set()
            await self.go_on.wait()
            while self.written < FLOOD:
                await streams.write(b"x" * 1000)
                self.written += 1000
            return 0
        finally:
            self.ended.append(run)


FLOOD = 100_000_000


async def test_output_without_end_is_stopped_when_the_connection_breaks(cluster: Cluster) -> None:
    flood = Flood()
    await start(cluster, flood)
    door = URL(cluster.url)
    reader, writer = await asyncio.open_connection(
        door.host, door.port, ssl=Tls(cluster.config, cluster.clock).context(None)
    )
    head = ["GET /api/v1/namespaces/default/pods/web/exec?command=yes&stdout=1 HTTP/1.1", "Host: localhost"]
    head += [f"{name}: {value}" for name, value in V5.items()]
    writer.write("\r\n".join((*head, "", "")).encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
    await flood.ready.wait()
    writer.transport.abort()
    flood.go_on.set()  # it writes before the event loop tells the server that the client has gone
    await eventually(lambda: flood.ended == flood.runs)
    assert flood.written < FLOOD


async def test_who_goes_while_the_server_stops_cuts_no_end_short(cluster: Cluster) -> None:
    began, ending, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    swept: list[str] = []

    class Tidy(Kubelet):
        async def exec(self, pod: Any, run: Run, streams: Streams) -> int:
            try:
                began.set()
                await asyncio.Event().wait()
            finally:
                ending.set()
                await go_on.wait()
                swept.append("all")
            return 0

    await start(cluster, Tidy())
    async with Client(cluster.config, retry=None) as client:
        process = await client.exec("web", ["sleep", "1000"]).__aenter__()
        await began.wait()
        leaving = asyncio.create_task(process.close())
        await ending.wait()
        stopping = asyncio.create_task(cluster.embedded.stop())
        await leaving
        go_on.set()
        await stopping
    assert swept == ["all"]


async def test_a_slow_command_makes_the_writer_wait(cluster: Cluster, client: Client) -> None:
    go_on = asyncio.Event()

    class Slow(Kubelet):
        async def exec(self, pod: Any, run: Run, streams: Streams) -> int:
            await go_on.wait()
            size = 0
            while data := await streams.read():
                size += len(data)
            await streams.write(str(size).encode())
            return 0

    await start(cluster, Slow())
    async with client.exec("web", ["wc"], stdin=True) as count:
        writing = asyncio.create_task(count.write(b"x" * (64 << 20)))
        for _ in range(500):
            await asyncio.sleep(0)
        assert not writing.done()
        go_on.set()
        await writing
        await count.finish()
        assert await count.stdout.read_all() == str(64 << 20).encode()


async def test_attach(client: Client, kubelet: Kubelet) -> None:
    kubelet.main["main"] = ["sh", "-c", "while read line; do echo got $line; done; exit 5"]
    async with client.attach("web", stdin=True) as process:
        await process.write("one\n")
        assert await process.stdout.read() == b"got one\n"
        await process.finish()
        assert await process.wait() == 5
    done = await client.attach("web", stdin=b"two\nthree\n")
    assert (done.exit_code, done.text) == (5, "got two\ngot three\n")
    assert kubelet.runs[0] == Run("main", stdin=True)


# Without an event loop


def test_the_synchronous_front() -> None:
    kubelet = Kubelet()
    with Cluster() as cluster:
        cluster.run(start(cluster, kubelet))
        for client in (cluster.sync, sync.Client(cluster.config)):
            with client:
                done = client.exec("web", ["sh", "-c", "echo out; exit 3"])
                assert (done.exit_code, done.text) == (3, "out\n")
                assert client.exec("web", ["cat"], stdin="typed").text == "typed"
                with pytest.raises(CommandFailed):
                    client.exec("web", ["false"], check=True)
                process = client.open_exec("web", ["cat"], stdin=True)
                with pytest.raises(RefusedRequest, match="the process runs only within `with`"):
                    process.write("too early")
                with process:
                    process.write("one\n")
                    assert process.stdout.read() == b"one\n"
                    process.write("two\n")
                    process.finish()
                    assert b"".join(process.stdout) == b"two\n"
                    assert process.stderr.read_all() == b""
                    assert process.wait() == 0
                with client.attach("web", stdin=b"attached") as joined:
                    assert joined.stdout.read_all() == b"attached"


# Refused


async def test_what_the_client_refuses_itself(client: Client, cluster: Cluster, kubelet: Kubelet) -> None:
    with pytest.raises(RefusedRequest, match="the command is one text: there is no shell between"):
        await client.exec("web", "ls -l")
    with pytest.raises(RefusedRequest, match="there is no command"):
        await client.exec("web", [])
    with pytest.raises(RefusedRequest, match="nobody could type while this is awaited"):
        await client.exec("web", ["cat"], stdin=True)
    with pytest.raises(RefusedRequest, match="a dry-run client runs nothing"):
        await Client(transport=cluster.transport, dry_run=True).exec("web", ["true"])
    assert kubelet.runs == []


async def test_what_the_server_refuses(client: Client, cluster: Cluster, kubelet: Kubelet) -> None:
    with pytest.raises(NotFound, match='exec in Pod default/nobody: true: pods "nobody" not found'):
        await client.exec("nobody", ["true"])
    with pytest.raises(NotFound, match=r"^attach to Pod default/nobody: "):
        await client.attach("nobody")
    await start_pod(cluster.embedded.server, cluster.client, None, "dead", node="dead")
    with pytest.raises(ApiError, match='no kubelet answers for node "dead"'):
        await client.exec("dead", ["true"])
    cluster.faults.status(403, subresource="exec", first=1)
    with pytest.raises(Forbidden):
        await client.exec("web", ["true"])
    assert kubelet.runs == []


async def test_what_the_kubelet_refuses(client: Client, kubelet: Kubelet) -> None:
    with pytest.raises(ApiError, match="executable file not found"):
        await client.exec("web", ["no-such-program"])
    kubelet.refusal = KubeletRefusal('container not found ("main")', 404, "NotFound")
    with pytest.raises(NotFound, match="container not found"):
        await client.exec("web", ["true"])
    async with client.exec("web", ["true"]) as process:
        with pytest.raises(NotFound, match="container not found"):
            await process.wait()


async def test_a_kubelet_that_fails(client: Client, cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Kubelet):
        async def exec(self, pod: Any, run: Run, streams: Streams) -> int:
            raise RuntimeError("the kubelet is broken")

    await start(cluster, Failing())
    with pytest.raises(InternalError, match="an error in the kubelet; the log of the server says where"):
        await client.exec("web", ["true"])
    assert "the kubelet is broken" in caplog.text


async def test_faults(client: Client, cluster: Cluster, kubelet: Kubelet) -> None:
    cluster.faults.cut_before_commit(subresource="exec", first=1)
    with pytest.raises(ConnectionLost):
        await client.exec("web", ["true"])
    cluster.faults.clear()
    assert kubelet.runs == []
    cluster.faults.truncate(5, subresource="exec", first=1)
    with pytest.raises(ConnectionLost):
        await client.exec("web", ["echo", "a long line"])
    await eventually(lambda: len(kubelet.ended) == 1)
    cluster.faults.clear()
    assert (await client.exec("web", ["echo", "all is well"])).text == "all is well\n"
    asked = [one for one in cluster.requests if one.subresource == "exec"]
    assert [(one.verb, one.resource, one.status, one.fault) for one in asked] == [
        ("get", "pods", 0, "cut before commit"),
        ("get", "pods", 101, "truncate"),
        ("get", "pods", 101, ""),
    ]


async def test_a_command_is_never_run_twice(cluster: Cluster, kubelet: Kubelet) -> None:
    async with Client(cluster.config) as client:  # which repeats what can do no harm
        cluster.faults.cut_after_commit(subresource="exec")
        with pytest.raises(ConnectionLost):
            await client.exec("web", ["true"])
    assert len([one for one in cluster.requests if one.subresource == "exec"]) == 1


# The protocol, byte by byte


@pytest.fixture
async def url(cluster: Cluster) -> AsyncIterator[str]:
    door = HttpDoor(cluster.embedded.server, user=ADMIN)
    await door.open()
    yield f"{door.url}/api/v1/namespaces/default/pods/web"
    await door.close()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def messages(socket: aiohttp.ClientWebSocketResponse) -> list[bytes]:
    return [message.data async for message in socket]


SUCCESS = {"metadata": {}, "status": "Success"}


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
async def test_messages_of_the_server(
    url: str, session: aiohttp.ClientSession, kubelet: Kubelet, protocol: str
) -> None:
    query = "?command=sh&command=-c&command=echo+out;echo+err>%262;exit+7&stdout=1&stderr=1"
    async with session.ws_connect(f"{url}/exec{query}", protocols=[protocol]) as socket:
        assert socket.protocol == protocol
        first, *others, last = await messages(socket)
        assert socket.close_code == 1000
    assert first == b"\x01"
    assert sorted(others) == [b"\x01out\n", b"\x02err\n"]
    assert last[0] == 3
    assert json.loads(last[1:]) == {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": "command terminated with non-zero exit code: command terminated with exit code 7",
        "details": {"causes": [{"reason": "ExitCode", "message": "7"}]},
    }


async def test_messages_of_the_client(url: str, session: aiohttp.ClientSession, kubelet: Kubelet) -> None:
    async with session.ws_connect(
        f"{url}/exec?command=cat&stdin=1&stderr=1", protocols=["v5.channel.k8s.io"]
    ) as socket:
        await socket.send_bytes(b"")
        await socket.send_bytes(b"\x09unknown channel")
        await socket.send_bytes(b"\x04{not a size")
        await socket.send_bytes(b'\x04{"Width":99999999,"Height":-1}')
        await socket.send_str("\x00text is taken for what is typed\n")
        await socket.send_bytes(b"\xff\x00")
        await socket.send_bytes(b"\x00after the end")
        first, last = await messages(socket)
    assert first == b"\x02"  # there is no stdout
    assert json.loads(last[1:]) == SUCCESS


async def test_the_first_protocol_that_both_know(url: str, session: aiohttp.ClientSession, kubelet: Kubelet) -> None:
    offered = ["v9.channel.k8s.io", "v4.channel.k8s.io", "v5.channel.k8s.io"]
    async with session.ws_connect(f"{url}/exec?command=true&stdout=1", protocols=offered) as socket:
        assert socket.protocol == "v4.channel.k8s.io"


UPGRADE = {
    "Connection": "keep-alive, Upgrade",
    "Upgrade": "WebSocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}
V5 = {**UPGRADE, "Sec-WebSocket-Protocol": "v5.channel.k8s.io"}
REFUSED: list[tuple[str, str, dict[str, str], int, str]] = [
    ("GET", "exec?command=true&stdout=1", {}, 400, "Upgrade request required"),
    ("GET", "exec?command=true&stdout=1", {"Upgrade": "websocket"}, 400, "Upgrade request required"),
    ("GET", "exec?command=true&stdout=1", UPGRADE, 400, "none was offered; this server speaks v5.channel.k8s.io"),
    (
        "GET",
        "exec?command=true&stdout=1",
        {**UPGRADE, "Sec-WebSocket-Protocol": "v1.channel.k8s.io, x"},
        400,
        "v1.channel.k8s.io, x was offered",
    ),
    (
        "GET",
        "exec?command=true",
        {**UPGRADE, "Sec-WebSocket-Protocol": "v5.channel.k8s.io"},
        400,
        "at least 1 of stdin",
    ),
    (
        "POST",
        "exec?command=true&stdout=1",
        {**UPGRADE, "Sec-WebSocket-Protocol": "v5.channel.k8s.io"},
        405,
        "a websocket is asked for by GET",
    ),
    ("GET", "exec?stdout=1", {**UPGRADE, "Sec-WebSocket-Protocol": "v5.channel.k8s.io"}, 400, "at least one command"),
]


@pytest.mark.parametrize(("method", "path", "headers", "code", "told"), REFUSED)
async def test_requests_that_become_no_websocket(
    url: str,
    session: aiohttp.ClientSession,
    kubelet: Kubelet,
    method: str,
    path: str,
    headers: dict[str, str],
    code: int,
    told: str,
) -> None:
    async with session.request(method, f"{url}/{path}", headers=headers) as answer:
        assert answer.status == code
        assert told in (await answer.json())["message"]
    assert kubelet.runs == []


async def test_a_socket_that_says_goodbye_ends_the_command(
    url: str, session: aiohttp.ClientSession, kubelet: Kubelet
) -> None:
    path = f"{url}/exec?command=sleep&command=1000&stdout=1"
    async with session.ws_connect(path, protocols=["v4.channel.k8s.io"]) as socket:
        assert await socket.receive_bytes() == b"\x01"
        await eventually(lambda: len(kubelet.runs) == 1)
    await eventually(lambda: kubelet.ended == kubelet.runs)
