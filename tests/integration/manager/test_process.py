"""Whole processes: `python operator.py` and `flyball run`, what signals do to them, and what they say."""

from __future__ import annotations

import json
import re
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.processes import Program

from flyball.api import ObjectMeta, crd_of
from flyball.k8s.apps.v1 import Deployment
from flyball.k8s.coordination.v1 import Lease
from flyball.k8s.core.v1 import ConfigMap
from flyball.testing import Cluster, eventually

ROOT = Path(__file__).parents[3]
SHELL = ROOT / "examples" / "my_own_shell.py"

HEAD = """
import asyncio, os, time
from flyball import Context, ObjectMeta, controller, run
from flyball.k8s.core.v1 import ConfigMap

"""
HANGS = (
    HEAD
    + """
@controller(ConfigMap)
async def reconcile(config: ConfigMap, ctx: Context) -> None:
    if config.metadata.name == "slow":
        print("in the pass", flush=True)
        await asyncio.sleep(3600)

if __name__ == "__main__":
    run(reconcile)
"""
)
WRITES = (
    HEAD
    + """
@controller(ConfigMap)
async def reconcile(config: ConfigMap, ctx: Context) -> None:
    if config.metadata.name == "tick":
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name="tock"), data={"n": str(time.monotonic())}))
        ctx.requeue(after=0.05)

if __name__ == "__main__":
    run(reconcile, leader_election=True, lease_duration=1.5, renew_deadline=1.0, retry_period=0.2)
"""
)
BLOCKS = (
    HEAD
    + """
def cruncher() -> None:
    time.sleep(1.2)

@controller(ConfigMap)
async def reconcile(config: ConfigMap, ctx: Context) -> None:
    if config.metadata.name == "slow":
        cruncher()

if __name__ == "__main__":
    run(reconcile)
"""
)
FLYBALL = ["-c", "from flyball.cli import main; main()"]
QUIET = ["--health-port=-1", "--metrics-port=-1", "--log-format=text"]

Start = Callable[..., Program]


@pytest.fixture
def start(cluster_server: Cluster, tmp_path: Path, request: pytest.FixtureRequest) -> Start:
    """Start a program as a user of the cluster."""

    def started(*args: str, user: str = "operator", code: str = "", **env: str) -> Program:
        if code:
            file = tmp_path / "operator_code.py"
            file.write_text(code)
            args = (str(file), *args)
        kubeconfig = cluster_server.kubeconfig_for(user, ["system:masters"])
        program = Program(args, tmp_path, {"KUBECONFIG": str(kubeconfig), **env})
        request.addfinalizer(lambda: program.__exit__(None, None, None))
        return program

    return started


def config_map(name: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"))


def install_shell(cluster: Cluster) -> type:
    import importlib.util

    spec = importlib.util.spec_from_file_location("my_own_shell", SHELL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    cluster.sync.request("POST", path, body=json.dumps(crd_of(module.MyOwnShell)).encode())
    return module.MyOwnShell  # type: ignore[no-any-return]


async def log_has(program: Program, text: str, seconds: float = 20.0) -> re.Match[str]:
    def found() -> re.Match[str] | None:
        assert program.process.poll() is None or re.search(text, program.log), program.log
        return re.search(text, program.log)

    match = await eventually(found, timeout=seconds)
    assert match is not None
    return match


@pytest.mark.capability("C56")
@pytest.mark.parametrize("how", ["python", "flyball run"])
async def test_the_first_program_runs_until_it_is_told_to_stop(cluster_server: Cluster, start: Start, how: str) -> None:
    shell = install_shell(cluster_server)
    command = [str(SHELL)] if how == "python" else [*FLYBALL, "run", str(SHELL)]
    program = start(*command, *QUIET, "--leader-election=on")
    cluster_server.sync.create(shell.new("demo", namespace="default"))  # type: ignore[attr-defined]
    deployment = await eventually(lambda: cluster_server.sync.get(Deployment, "demo"), timeout=20)
    assert deployment.spec.replicas == 1
    program.send(signal.SIGTERM)
    assert program.end() == 0
    assert cluster_server.sync.get(Lease, "myownshell-leader").spec.holder_identity == ""
    assert "stopped in order" in program.log


async def test_a_bare_name_runs_the_package_in_src(cluster_server: Cluster, start: Start, tmp_path: Path) -> None:
    package = tmp_path / "src" / "shells"
    (package / "tests").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "tests" / "__init__.py").write_text("raise SystemExit('not to be imported')")
    (package / "control.py").write_text(HANGS)
    (package / "conftest.py").write_text("raise SystemExit('not to be imported')")
    program = start(*FLYBALL, "run", "shells", *QUIET)
    cluster_server.sync.create(config_map("slow"))
    await log_has(program, "in the pass")


@pytest.mark.capability("C56")
async def test_a_pass_that_does_not_end_is_waited_for_and_no_longer(cluster_server: Cluster, start: Start) -> None:
    program = start(*QUIET, "--grace=0.3", code=HANGS)
    cluster_server.sync.create(config_map("slow"))
    await log_has(program, "in the pass")
    program.send(signal.SIGINT)
    assert program.end() == 0
    assert "passes over default/slow did not end within 0.3 s and are cancelled" in program.log


async def test_a_second_signal_ends_it_at_once(cluster_server: Cluster, start: Start) -> None:
    program = start(*QUIET, code=HANGS)
    cluster_server.sync.create(config_map("slow"))
    await log_has(program, "in the pass")
    program.send(signal.SIGTERM)
    await log_has(program, "SIGTERM: stopping; passes have 30 s to end")
    program.send(signal.SIGTERM)
    assert program.end(5) == 128 + signal.SIGTERM


@pytest.mark.capability("C51")
async def test_a_leader_that_was_stopped_sends_nothing_when_it_wakes(cluster_server: Cluster, start: Start) -> None:
    cluster_server.sync.create(config_map("tick"))
    first = start(*QUIET, user="first", code=WRITES)
    await eventually(lambda: cluster_server.requests.of("patch", user="first"), timeout=20)
    second = start(*QUIET, user="second", code=WRITES)
    await log_has(second, "is held by")
    first.send(signal.SIGSTOP)
    await eventually(lambda: cluster_server.requests.of("patch", user="second"), timeout=20)
    sent = len(cluster_server.requests.of(user="first"))
    first.send(signal.SIGCONT)
    assert first.end() == 1
    assert len(cluster_server.requests.of(user="first")) == sent
    assert re.search(r"lease default/configmap-leader: .*; this process ends, so that another one can lead", first.log)
    second.send(signal.SIGTERM)
    assert second.end() == 0


@pytest.mark.capability("C25")
@pytest.mark.capability("C52")
async def test_a_missing_permission_is_named_in_the_log_and_at_readyz(cluster_server: Cluster, start: Start) -> None:
    words = 'configmaps is forbidden: User "operator" cannot list resource "configmaps"'
    rule = cluster_server.faults.status(403, message=words, verb="list", resource="configmaps")
    program = start("--health-port=0", "--metrics-port=-1", code=HANGS, FLYBALL_LOG_FORMAT="text")
    named = 'missing: list configmaps in all namespaces; add @rbac("", "configmaps", "list", "watch")'
    await log_has(program, re.escape(named))
    url = (await log_has(program, r"health checks are served at (http://127\.0\.0\.1:\d+)"))[1]
    code, text = fetch(f"{url}/readyz")
    assert (code, named in text) == (500, True)
    assert fetch(f"{url}/healthz") == (200, "ok")
    rule.remove()
    await eventually(lambda: fetch(f"{url}/readyz"), lambda answer: answer == (200, "ok"), timeout=40)
    program.send(signal.SIGTERM)
    assert program.end() == 0
    assert program.log.count("missing: list configmaps") == 1


def fetch(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def test_who_blocks_the_event_loop_is_named(cluster_server: Cluster, start: Start) -> None:
    program = start("--health-port=-1", "--metrics-port=0", "--log-format=text", code=BLOCKS)
    cluster_server.sync.create(config_map("slow"))
    line = BLOCKS.splitlines().index("    time.sleep(1.2)") + 1
    await log_has(program, rf"blocked for more than 0\.5 s by \S+operator_code\.py:{line} in cruncher")
    await log_has(program, r"the event loop turns again after \d")
    url = (await log_has(program, r"metrics are served at (http://127\.0\.0\.1:\d+)"))[1]
    assert "flyball_loop_blocked_total 1.0" in fetch(f"{url}/metrics")[1]


async def test_a_port_that_was_asked_for_must_be_free(cluster_server: Cluster, start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        program = start(f"--health-port={port}", "--metrics-port=-1", code=HANGS)
        assert program.end() == 1
    assert f"listen on 127.0.0.1:{port}:" in program.log
    assert "Traceback" not in program.log


async def test_wrong_flags_are_wrong_usage(start: Start) -> None:
    assert start("--colour=red", code=HANGS).end() == 2
    program = start("--grace=soon", code=HANGS)
    assert program.end() == 1
    assert "flag: option grace: 'soon' cannot be read as a number" in program.log


async def test_records_of_a_pass_say_which_one(cluster_server: Cluster, start: Start) -> None:
    code = (
        HEAD
        + """
import logging

@controller(ConfigMap)
async def reconcile(config: ConfigMap, ctx: Context) -> None:
    if config.metadata.name == "slow":
        logging.getLogger("somebody").warning("hello", extra={"colour": "red"})

if __name__ == "__main__":
    run(reconcile)
"""
    )
    program = start("--health-port=-1", "--metrics-port=-1", code=code)
    cluster_server.sync.create(config_map("slow"))
    line = json.loads((await log_has(program, r"(?m)^\{.*hello.*$"))[0])
    assert line["message"] == "hello"
    assert line["colour"] == "red"
    assert (line["controller"], line["namespace"], line["name"]) == ("configmap", "default", "slow")
    assert line["reconcile_id"]
