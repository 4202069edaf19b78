"""Fresh folders for the generator, and the tools that judge what it writes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[3]


def flyball(folder: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run `flyball fsm ...` in a folder."""
    return run(folder, str(BIN / "flyball"), "fsm", *arguments, code=code)


def run(folder: Path, *command: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder with no settings but its own."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    environment = {**kept, "PATH": f"{BIN}{os.pathsep}{kept.get('PATH', '')}", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    if code is not None:
        assert done.returncode == code, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Contents and times of all files but caches."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"} & set(path.parts)
    }


def judge(folder: Path, *, tests: int) -> None:
    """Everything that a project expects of its code: imports, strict types twice, lint, format, tests."""
    parts = [name for name in ("src", "tests", "statemachine") if (folder / name).is_dir()]
    run(folder, "ruff", "check", "--isolated", *parts)
    for length in ("88", "120"):
        run(folder, "ruff", "format", "--isolated", "--check", "--line-length", length, *parts)
    run(folder, sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, *_with_path(folder, parts))
    settings = folder / "pyrightconfig.json"
    settings.write_text(
        f'{{"typeCheckingMode": "strict", "include": {_json(parts)}, "extraPaths": ["src"], '
        f'"venvPath": "{BIN.parent.parent}", "venv": "{BIN.parent.name}"}}'
    )
    run(folder, "pyright", "--pythonpath", sys.executable)
    settings.unlink()
    done = run(
        folder, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers", *_tests(parts)
    )
    assert passed(done.stdout) >= tests, done.stdout


def passed(output: str) -> int:
    """How many tests passed; none failed, or pytest would have said so with its exit code."""
    found = re.search(r"(\d+) passed", output)
    return int(found[1]) if found else 0


def _with_path(folder: Path, parts: Sequence[str]) -> list[str]:
    return [str(folder / part) for part in parts]


def _tests(parts: Sequence[str]) -> list[str]:
    return ["tests"] if "tests" in parts else []


def _json(parts: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{part}"' for part in parts) + "]"
