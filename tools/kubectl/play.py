"""Play a script with a kubectl against a server, and write down what was printed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from flyball.testing.cluster import Cluster

__all__ = ["FOLDER", "Script", "embedded", "load", "play", "version_of"]

FOLDER = Path(__file__).parents[2] / "tests" / "integration" / "kubectl"
SECONDS = 30.0

_MASKS = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+"), "TOKEN"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?Z| \+0000( UTC)?)?"), "TIME"),
    (re.compile(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d \+\d{4}"), "TIME"),
    (re.compile(r'(resourceVersion: |"resourceVersion": ?|resourceVersion=)"?\d+"?'), r"\1RV"),
    (re.compile(r"https?://(127\.0\.0\.1|localhost|\[::1\]):\d+"), "SERVER"),
    (re.compile(r"/tmp/[\w./-]*?(LIVE|MERGED)-\d+"), r"\1"),
    (re.compile(r"/tmp/kubectl-edit-\d+"), "EDITED"),
    (re.compile(r"^[WIE]\d{4} \S+ +\d+ (\w+\.go):\d+\]"), r"LOG \1"),
    (re.compile(r"\b10\.\d+\.\d+\.\d+\b"), "ADDRESS"),
    (re.compile(r"\b[a-z0-9-]*?-[bcdfghjklmnpqrstvwxz2456789]{5}\b(?= serviceaccount)"), "GENERATED"),
)
_WORKLOADS = (
    (re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{8,10}\b"), "-HASH"),
    (re.compile(r"\b(?<=pod-template-hash[=:])([bcdfghjklmnpqrstvwxz2456789]{8,10})\b"), "HASH"),
    (re.compile(r"(?<=-HASH)-[bcdfghjklmnpqrstvwxz2456789]{5}\b"), "-POD"),
    (re.compile(r"(?<=kube-api-access)-[bcdfghjklmnpqrstvwxz2456789]{5}\b"), "-TOKEN"),
)
"""What is generated for workloads: names of ReplicaSets and their Pods."""
_AGE = re.compile(r"(?<![\w.:/-])(\d+[smhdy]){1,2}(?![\w:/-])|<invalid>")
_FIELD = re.compile(r"^\s*[\w$-]+\t<|^(GROUP|KIND|VERSION|FIELD|FIELDS|ENUM|error|Error)\b")


@dataclass(frozen=True)
class Script:
    """Commands, and the files that they read."""

    name: str
    steps: list[dict[str, Any]]
    files: dict[str, str] = field(default_factory=dict[str, str])
    nodes: int = 0
    """How many simulated nodes play Pods, with controllers of workloads; none: only an API server answers."""

    @property
    def namespace(self) -> str:
        """A namespace of the script's own."""
        return f"k-{self.name}"


def load() -> list[Script]:
    """Read all scripts."""
    return [_read(path) for path in sorted((FOLDER / "scripts").glob("*.yaml"))]


def _read(path: Path) -> Script:
    source = yaml.safe_load(path.read_text())
    steps = [{"run": step} if isinstance(step, str) else step for step in source["steps"]]
    return Script(path.stem, steps, source.get("files", {}), source.get("nodes", 0))


def embedded(script: Script) -> Cluster:
    """The embedded cluster that a script is played against."""
    return Cluster(workloads=True, nodes=script.nodes) if script.nodes else Cluster(controllers=False)


def version_of(kubectl: Path) -> str:
    """What a kubectl says it is."""
    found = subprocess.run(
        [kubectl, "version", "--client"], capture_output=True, text=True, check=True, timeout=SECONDS
    )
    return found.stdout.split()[2]


def play(script: Script, kubectl: Path, kubeconfig: Path, folder: Path) -> str:
    """The transcript of a script; `folder` is empty and for the files of this run."""
    player = _Player(script, kubectl, kubeconfig, folder)
    return "".join(player.play())


class _Player:
    def __init__(self, script: Script, kubectl: Path, kubeconfig: Path, folder: Path) -> None:
        self._script = script
        self._kubectl = kubectl
        self._folder = folder
        for name, text in script.files.items():
            (folder / name).write_text(text)
        config = yaml.safe_load(kubeconfig.read_text())
        for context in config["contexts"]:
            context["context"]["namespace"] = script.namespace
        (folder / "kubeconfig").write_text(yaml.safe_dump(config))
        home = folder / "home"
        home.mkdir()
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "KUBECONFIG": str(folder / "kubeconfig"),
            "LANG": "C.UTF-8",
        }

    def play(self) -> Iterator[str]:
        self._run(["create", "namespace", self._script.namespace], None, {})
        for step in self._script.steps:
            if "watch" in step:
                yield self._watch(step)
            elif "kept" in step:
                (self._folder / step["kept"]).write_text(self._run(shlex.split(step["run"]), None, {}).stdout)
            else:
                yield self._one(step)
        self._run(["delete", "namespace", self._script.namespace, "--wait=false"], None, {})

    def _one(self, step: dict[str, Any]) -> str:
        done = self._run(shlex.split(step["run"]), step.get("stdin"), step.get("env", {}))
        until = re.compile(step.get("until", ""))
        for _ in range(step.get("again", 100 if "until" in step else 0)):
            if done.returncode == 0 and until.search(done.stdout):
                break
            time.sleep(0.2)  # a real server needs a while until a definition is served, or Pods are there
            done = self._run(shlex.split(step["run"]), step.get("stdin"), step.get("env", {}))
        if step.get("quiet") and done.returncode == 0:
            return f"$ kubectl {step['run']}\n\n"
        lines = [f"$ kubectl {step['run']}", *self._lines(done.stdout, step)]
        lines += [f"stderr: {line}" for line in self._lines(done.stderr, step)]
        lines += [f"exit: {done.returncode}"] if done.returncode else []
        return "\n".join(lines) + "\n\n"

    def _run(self, words: list[str], stdin: str | None, more: dict[str, str]) -> subprocess.CompletedProcess[str]:
        command = [str(self._kubectl), *words]
        environment = {**self._environment, **more}
        return subprocess.run(
            command,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            env=environment,
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )

    def _watch(self, step: dict[str, Any]) -> str:
        """A command that goes on: its lines while others run, until there are enough of them."""
        command = [str(self._kubectl), *shlex.split(step["watch"])]
        printed: list[str] = []
        with subprocess.Popen(
            command,
            env=self._environment,
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        ) as process:
            assert process.stdout is not None
            bell = threading.Timer(SECONDS, process.kill)
            bell.start()
            try:
                first = step.get("first", 1)
                printed += [process.stdout.readline() for _ in range(first)]
                time.sleep(step.get("settle", 0.5))  # the watch opens only after the list was printed
                for run in step["during"]:
                    self._run(shlex.split(run), None, {})
                printed += [process.stdout.readline() for _ in range(step["lines"] - first)]
            finally:
                bell.cancel()
                process.kill()
        return "\n".join([f"$ kubectl {step['watch']}", *self._lines("".join(printed), step)]) + "\n\n"

    def _lines(self, text: str, step: dict[str, Any]) -> list[str]:
        lines = [self._masked(line) for line in text.splitlines()]
        if step.get("fields"):
            lines = [line for line in lines if _FIELD.search(line)]
        if step.get("squeeze"):
            lines = [re.sub(r" {2,}", "  ", line) for line in lines]
        if step.get("sorted"):
            lines.sort()
        if self._script.nodes:
            lines = _with_events_sorted(lines)
        for pattern in step.get("without", ()):
            lines = [line for line in lines if not re.search(pattern, line)]
        return lines

    def _masked(self, line: str) -> str:
        line = line.rstrip().replace(str(self._folder), "FOLDER")
        for pattern, name in (*_MASKS, *(_WORKLOADS if self._script.nodes else ())):
            line = pattern.sub(name, line)
        masked = _AGE.sub("AGE", line)
        if masked != line or re.match(r"[A-Z][A-Z()/ -]+( {2,}|$)", line):
            masked = re.sub(r"(?<=\S) {2,}", "  ", masked)
        return masked


def _with_events_sorted(lines: list[str]) -> list[str]:
    """Events of the same second come in any order: sort them, and say nothing of how often each was said."""
    sorted_lines: list[str] = []
    start: int | None = None
    for line in lines:
        if start is not None and not line.startswith(" "):
            start = None
        if start is None:
            sorted_lines.append(line)
            start = len(sorted_lines) if line.startswith("Events:") else None
            continue
        line = re.sub(r"(?<=\S) {2,}", "  ", line.replace("---------", "---"))
        line = re.sub(r" \(x\d+ over AGE\)", "", line)
        if line in sorted_lines[start:]:
            continue
        sorted_lines.append(line)
        head = sum(one.startswith(("  Type ", "  ----")) for one in sorted_lines[start:])
        sorted_lines[start + head :] = sorted(sorted_lines[start + head :])
    return sorted_lines


def path_kubectl() -> Path | None:
    """The kubectl that a shell would run."""
    found = shutil.which("kubectl")
    return Path(found) if found else None
