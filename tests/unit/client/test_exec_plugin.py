"""Exec plugins: what they are told, what they may answer, and what is said when they do not."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from flyball.client.cluster_config import ClusterConfig, ExecConfig
from flyball.client.exec_plugin import ExecCredential, exec_info, run_plugin
from flyball.errors import CredentialError
from flyball.testing.eventually import eventually

V1 = "client.authentication.k8s.io/v1"
CONFIG = ClusterConfig(server="https://h:6443", tls_server_name="name", ca_data=b"pem", proxy_url="http://p:1")


def program(path: Path, body: str) -> str:
    path.write_text(f"#!{sys.executable}\nimport json, os, sys\n{body}\n")
    path.chmod(0o755)
    return str(path)


def answering(path: Path, status: dict[str, Any] | None, version: str = V1, kind: str = "ExecCredential") -> str:
    answer = json.dumps({"apiVersion": version, "kind": kind, **({} if status is None else {"status": status})})
    return program(path, f"print({answer!r})")


async def test_a_token_with_its_expiry(tmp_path: Path) -> None:
    command = answering(tmp_path / "p", {"token": "abc", "expirationTimestamp": "2026-03-04T05:06:07Z"})

    found = await run_plugin(ExecConfig(command, interactive_mode="Never"), CONFIG)

    assert found == ExecCredential("abc", None, datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC))
    assert "abc" not in repr(found)


async def test_a_client_certificate(tmp_path: Path) -> None:
    command = answering(tmp_path / "p", {"clientCertificateData": "CERT", "clientKeyData": "KEY"})

    found = await run_plugin(ExecConfig(command, interactive_mode="Never"), CONFIG)

    assert found.certificate == b"CERT\nKEY\n"
    assert found.token is None


@pytest.mark.capability("S6")
@pytest.mark.parametrize("version", [V1, "client.authentication.k8s.io/v1beta1"])
async def test_what_the_program_gets(tmp_path: Path, version: str) -> None:
    seen = tmp_path / "seen"
    command = program(
        tmp_path / "p",
        f"""
json.dump({{"args": sys.argv[1:], "env": os.environ["A"], "home": os.environ.get("PATH"), "stdin": sys.stdin.read(),
            "info": json.loads(os.environ["KUBERNETES_EXEC_INFO"])}}, open({str(seen)!r}, "w"))
print(json.dumps({{"apiVersion": {version!r}, "kind": "ExecCredential", "status": {{"token": "t"}}}}))
""",
    )
    args = ("--x", "a b", "$(touch evil)", "; touch evil")
    plugin = ExecConfig(command, args, (("A", "1"),), api_version=version, interactive_mode="IfAvailable")

    await run_plugin(plugin, CONFIG)

    got = json.loads(seen.read_text())
    assert got["args"] == list(args), "no shell looks at them"
    assert (got["env"], got["stdin"]) == ("1", "")
    assert got["home"], "our own environment is there too"
    assert got["info"] == {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}


def test_the_cluster_is_told_when_it_is_asked_for(tmp_path: Path) -> None:
    plugin = ExecConfig("p", provide_cluster_info=True, cluster_extension={"audience": "x"})

    info = json.loads(exec_info(plugin, CONFIG, interactive=True))

    assert info["spec"] == {
        "interactive": True,
        "cluster": {
            "server": "https://h:6443",
            "tls-server-name": "name",
            "certificate-authority-data": base64.b64encode(b"pem").decode(),
            "proxy-url": "http://p:1",
            "config": {"audience": "x"},
        },
    }
    (tmp_path / "ca").write_bytes(b"file")
    from_file = json.loads(
        exec_info(plugin, ClusterConfig(server="https://h", ca_file=tmp_path / "ca"), interactive=False)
    )
    assert base64.b64decode(from_file["spec"]["cluster"]["certificate-authority-data"]) == b"file"


async def refusal(plugin: ExecConfig) -> str:
    with pytest.raises(CredentialError) as caught:
        await run_plugin(plugin, CONFIG)
    line = str(caught.value)
    assert line.startswith(f"exec plugin {plugin.command}: ")
    assert "\n" not in line
    return line.removeprefix(f"exec plugin {plugin.command}: ")


async def test_not_installed_shows_the_hint() -> None:
    plugin = ExecConfig("no-such-program-anywhere", interactive_mode="Never", install_hint="get it\nfrom example.com")

    assert await refusal(plugin) == "no such program; install it and put it into PATH (get it from example.com)"


async def test_not_executable(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("x")

    assert "may not be executed" in await refusal(ExecConfig(str(tmp_path / "p"), interactive_mode="Never"))


async def test_not_a_program(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(b"\x7fELFnonsense")
    (tmp_path / "p").chmod(0o755)

    assert "it cannot be started: " in await refusal(ExecConfig(str(tmp_path / "p"), interactive_mode="Never"))


async def test_its_complaint_is_shown(tmp_path: Path) -> None:
    command = program(tmp_path / "p", "print('half a secret'); sys.exit('you must\\nlog in first')")

    line = await refusal(ExecConfig(command, interactive_mode="Never"))

    assert line == "exit code 1: you must log in first; run it by hand, or log in again"


async def test_it_must_answer_in_time(tmp_path: Path) -> None:
    command = program(tmp_path / "p", "import time; time.sleep(600)")

    line = await refusal(ExecConfig(command, interactive_mode="Never", timeout=0.2))

    assert line == "no answer within 0.2 s; run it by hand to see what it waits for"


async def test_a_program_that_nobody_waits_for_is_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    body = f"import time; open({str(pid)!r} + '.new', 'w').write(str(os.getpid()))\n"
    command = program(tmp_path / "p", body + f"os.rename({str(pid)!r} + '.new', {str(pid)!r}); time.sleep(600)")
    task = asyncio.create_task(run_plugin(ExecConfig(command, interactive_mode="Never"), CONFIG))
    await eventually(pid.exists)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await eventually(lambda: not is_running(int(pid.read_text())))


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


async def test_a_person_is_needed_but_there_is_none() -> None:
    line = await refusal(ExecConfig(sys.executable, interactive_mode="Always"))

    assert line.startswith("it must ask a person (interactiveMode Always), but there is no terminal")


async def test_a_person_may_be_asked_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = tmp_path / "seen"
    answer = json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "t"}})
    command = program(
        tmp_path / "p", f"open({str(seen)!r}, 'w').write(os.environ['KUBERNETES_EXEC_INFO']); print({answer!r})"
    )

    class Terminal:
        closed = False

        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    for mode, interactive in (("Always", True), ("IfAvailable", True), ("Never", False)):
        await run_plugin(ExecConfig(command, interactive_mode=mode), CONFIG)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        assert json.loads(seen.read_text())["spec"]["interactive"] is interactive


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (None, "its answer has no status"),
        ({}, "neither a token nor a certificate; log in again"),
        ({"token": 5}, "status.token is not text"),
        ({"clientKeyData": "x"}, "only one of client certificate and key"),
        ({"token": "t", "expirationTimestamp": "soon"}, "expirationTimestamp 'soon' is not an RFC 3339 time"),
        ({"token": "t", "expirationTimestamp": "2026-01-01T00:00:00"}, "is not an RFC 3339 time"),
    ],
)
async def test_answers_that_are_of_no_use(tmp_path: Path, status: dict[str, Any] | None, said: str) -> None:
    assert said in await refusal(ExecConfig(answering(tmp_path / "p", status), interactive_mode="Never"))


@pytest.mark.parametrize("output", ["", "very-secret", '{"kind":"Pod"}', "[1]", "null"])
async def test_output_that_is_no_credential_is_not_shown(tmp_path: Path, output: str) -> None:
    line = await refusal(ExecConfig(program(tmp_path / "p", f"print({output!r})"), interactive_mode="Never"))

    assert "its output is not" in line
    assert "secret" not in line


async def test_another_version_than_asked_for(tmp_path: Path) -> None:
    command = answering(tmp_path / "p", {"token": "t"}, "client.authentication.k8s.io/v1alpha1")

    line = await refusal(ExecConfig(command, interactive_mode="Never"))

    assert f"it answers in client.authentication.k8s.io/v1alpha1, asked for {V1}" in line
