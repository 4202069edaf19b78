"""Authors get help from their type checkers: right programs pass mypy and pyright in strict mode, wrong ones do not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("my_own_shell*.py"))

RIGHT = """
from my_own_shell_api import MyOwnShell, MyOwnShellSpec, shell_deployment

shell = MyOwnShell.new("demo", spec=MyOwnShellSpec(size=3))
size: int = shell.spec.size
ready: int = shell.status.ready
name: str = shell.metadata.name
replicas: int | None = shell_deployment(shell).spec.replicas
"""
WRONG = {
    "a field that the spec does not have": "MyOwnShellSpec(sise=3)",
    "a value of the wrong type": 'MyOwnShellSpec(size="three")',
    "reading a field that the status does not have": "MyOwnShell.new('demo').status.raedy",
    "writing a field that the status does not have": "MyOwnShell.new('demo').status.raedy = 3",
    "writing a value of the wrong type": "MyOwnShell.new('demo').status.ready = 'yes'",
    "a built-in kind's field": "shell_deployment(MyOwnShell.new('demo')).spec.replica",
}


def mypy(*files: Path) -> list[str]:
    """The errors that mypy finds in files."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-incremental",
        "--no-error-summary",
        "--hide-error-context",
    ]
    command += ["--config-file", "", "--output=json", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=files[0].parent, env=_environment())
    assert done.returncode in (0, 1), done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [f"{error['file']}:{error['line']}: {error['message']}" for error in found if error["severity"] == "error"]


def pyright(*files: Path) -> list[str]:
    """The errors that pyright finds in files; the test is skipped where pyright cannot run."""
    folder = files[0].parent
    settings = {
        "typeCheckingMode": "strict",
        "pythonVersion": f"{sys.version_info.major}.{sys.version_info.minor}",
        "extraPaths": [str(ROOT / "src")],
        "include": [str(file) for file in files],
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
    if done.returncode not in (0, 1):
        pytest.skip(f"pyright cannot run here: {(done.stderr or done.stdout).strip()[:200]}")
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [
        f"{Path(error['file']).name}:{error['range']['start']['line'] + 1}: {error['message']}"
        for error in found
        if error["severity"] == "error"
    ]


CHECKERS = pytest.mark.parametrize("checker", [mypy, pyright])


def _environment() -> dict[str, str]:
    import os

    return os.environ | {"MYPYPATH": str(ROOT / "src"), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}


def program(folder: Path, text: str) -> list[Path]:
    """The examples, and a program that uses them, in a folder of their own."""
    files: list[Path] = []
    for example in EXAMPLES:
        files.append(folder / example.name)
        files[-1].write_bytes(example.read_bytes())
    files.append(folder / "program.py")
    files[-1].write_text(text)
    return files


@CHECKERS
def test_the_examples_pass(checker: Callable[..., list[str]], tmp_path: Path) -> None:
    assert checker(*program(tmp_path, RIGHT)) == []


@pytest.mark.capability("N17")
@CHECKERS
def test_what_is_wrong_is_an_error(checker: Callable[..., list[str]], tmp_path: Path) -> None:
    head = "from my_own_shell_api import MyOwnShell, MyOwnShellSpec, shell_deployment\n"
    found = checker(*program(tmp_path, head + "\n".join(WRONG.values()) + "\n"))
    lines = {int(error.split(":")[1]) for error in found if error.startswith("program.py")}
    missed = [what for line, what in enumerate(WRONG, 2) if line not in lines]
    assert missed == []
