"""Where the programs of a real control plane lie.

The order: `$KUBEBUILDER_ASSETS` (a folder, as for Go's envtest), else the cache folder that `make real-control-plane`
fills: `$FLYBALL_CACHE`, or `flyball` in `$XDG_CACHE_HOME` or `~/.cache`, and in it `control-plane/v1.36.4`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from flyball.errors import FlyballError

__all__ = [
    "ETCD_VERSION",
    "KUBERNETES_VERSION",
    "PROGRAMS",
    "Binaries",
    "BinariesMissing",
    "cache_folder",
    "find_binaries",
]

KUBERNETES_VERSION = "v1.36.4"
ETCD_VERSION = "v3.6.8"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")

_REMEDY = "run `make real-control-plane` (needs Go 1.26 or newer) or set KUBEBUILDER_ASSETS"


class BinariesMissing(FlyballError):
    """The programs of a real control plane are not on this machine."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with the programs of one control plane. etcd and kube-apiserver are there; the others may be missing."""

    folder: Path

    def path(self, program: str) -> Path:
        """The path of a program; BinariesMissing names what is missing and where it was looked for."""
        path = self.folder / program
        if not _runnable(path):
            raise BinariesMissing(f"{program} is not in {self.folder}: {_REMEDY}")
        return path

    def has(self, program: str) -> bool:
        """Whether a program is there."""
        return _runnable(self.folder / program)


def cache_folder() -> Path:
    """Where `make real-control-plane` puts its programs: one folder per version."""
    given = os.environ.get("FLYBALL_CACHE")
    if given:
        root = Path(given)
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "flyball"
    return root / "control-plane" / KUBERNETES_VERSION


def find_binaries() -> Binaries:
    """The control plane to use; BinariesMissing says in one line where it was looked for and what to do."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    folder = Path(assets) if assets else cache_folder()
    missing = [program for program in ("etcd", "kube-apiserver") if not _runnable(folder / program)]
    if missing:
        source = "KUBEBUILDER_ASSETS" if assets else "the cache folder"
        raise BinariesMissing(f"no real control plane: {' and '.join(missing)} not in {folder} ({source}): {_REMEDY}")
    return Binaries(folder)


def _runnable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
