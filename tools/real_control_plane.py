"""Build the programs of a real control plane from the Go module registry, once, into the cache folder.

    tools/real_control_plane.py [--if-possible] [--minutes N]

What is there already is kept; each program appears under its name only when it is complete. With `KUBEBUILDER_ASSETS`
set nothing is built. Exit codes: 0 all programs are there; 1 a build failed; 3 it cannot be done here (no Go, or not in
the given time), said in one line. `--if-possible` answers 3 for a failed build too.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from flyball.testing.binaries import ETCD_VERSION, KUBERNETES_VERSION, PROGRAMS, cache_folder

MODULE = Path(__file__).parent / "realcontrolplane"
GO_NEEDED = (1, 26)
DONE, FAILED, IMPOSSIBLE = 0, 1, 3

PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    **{name: f"k8s.io/kubernetes/cmd/{name}" for name in PROGRAMS if name != "etcd"},
}
VERSION_FLAGS = {
    "k8s.io/component-base/version.gitVersion": KUBERNETES_VERSION,
    "k8s.io/component-base/version.gitMajor": KUBERNETES_VERSION.removeprefix("v").split(".")[0],
    "k8s.io/component-base/version.gitMinor": KUBERNETES_VERSION.split(".")[1],
    "k8s.io/client-go/pkg/version.gitVersion": KUBERNETES_VERSION,
}


class Impossible(Exception):
    """The programs cannot be built on this machine, or not in the time given."""


def main(arguments: list[str] | None = None) -> int:
    """Make the programs be there; the exit code is explained above."""
    parser = argparse.ArgumentParser(description="Build a real control plane into the cache folder.")
    parser.add_argument(
        "--if-possible", action="store_true", help="a failed build counts as not possible (exit code 3)"
    )
    parser.add_argument("--minutes", type=float, default=None, help="give up building after so many minutes")
    options = parser.parse_args(arguments)
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        return _check_assets(Path(assets))
    try:
        _build_missing(cache_folder(), None if options.minutes is None else time.monotonic() + options.minutes * 60)
    except Impossible as reason:
        print(f"real control plane: left out: {reason}", file=sys.stderr)
        return IMPOSSIBLE
    except subprocess.CalledProcessError as error:
        print(f"real control plane: `{' '.join(map(str, error.cmd))}` failed", file=sys.stderr)
        return IMPOSSIBLE if options.if_possible else FAILED
    return DONE


def _check_assets(folder: Path) -> int:
    missing = [program for program in PROGRAMS if not (folder / program).is_file()]
    if missing:
        print(f"real control plane: KUBEBUILDER_ASSETS={folder} lacks {', '.join(missing)}", file=sys.stderr)
        return IMPOSSIBLE
    print(f"real control plane: {folder} (KUBEBUILDER_ASSETS)")
    return DONE


def _build_missing(folder: Path, deadline: float | None) -> None:
    if not _missing(folder):
        print(f"real control plane: {folder}")
        return
    go = _go()
    folder.mkdir(parents=True, exist_ok=True)
    with _only_one(folder):
        for program in _missing(folder):
            _build(go, program, folder, deadline)
    print(f"real control plane: {folder}")


def _missing(folder: Path) -> list[str]:
    return [program for program in PROGRAMS if not (folder / program).is_file()]


def _go() -> str:
    go = shutil.which("go")
    needed = ".".join(map(str, GO_NEEDED))
    remedy = f"install Go {needed} or newer, or set KUBEBUILDER_ASSETS"
    if go is None:
        raise Impossible(f"there is no Go on this machine: {remedy}")
    answer = subprocess.run([go, "env", "GOVERSION"], cwd=MODULE, capture_output=True, text=True, check=False)
    found = re.match(r"go(\d+)\.(\d+)", answer.stdout)
    if found is None or (int(found[1]), int(found[2])) < GO_NEEDED:
        raise Impossible(
            f"Go {needed} is needed, here is {answer.stdout.strip() or 'a Go that does not run'}: {remedy}"
        )
    return go


@contextmanager
def _only_one(folder: Path) -> Generator[None]:
    """Two runs of this tool build once: the second waits for the first and finds its programs."""
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(go: str, program: str, folder: Path, deadline: float | None) -> None:
    version = ETCD_VERSION if program == "etcd" else KUBERNETES_VERSION
    print(f"real control plane: building {program} {version} ...", flush=True)
    flags = " ".join(["-s -w", *(f"-X {name}={value}" for name, value in VERSION_FLAGS.items())])
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -trimpath", "GOWORK": "off"}
    left = None if deadline is None else deadline - time.monotonic()
    with tempfile.TemporaryDirectory(prefix=".build-", dir=folder) as scratch:
        made = Path(scratch) / program
        command = [go, "build", "-o", str(made), "-ldflags", flags, PACKAGES[program]]
        try:
            subprocess.run(command, cwd=MODULE, env=environment, timeout=left, check=True)
        except subprocess.TimeoutExpired:
            raise Impossible(f"{program} was not built in the time given; the next run goes on from here") from None
        made.replace(folder / program)


if __name__ == "__main__":
    sys.exit(main())
