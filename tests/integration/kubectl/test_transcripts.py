"""kubectl prints the same against the embedded API server as against a real one, and exits alike."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest
from tools.kubectl.play import FOLDER, Script, embedded, load, path_kubectl, play, version_of

from flyball.testing.binaries import BinariesMissing, find_binaries

SCRIPTS = load()


def kubectl_of(label: str) -> Path:
    """The kubectl that a transcript was recorded with; skips where there is none."""
    if label == "path":
        found = path_kubectl()
        if found is None:
            pytest.skip("there is no kubectl on the PATH")
        return found
    try:
        return find_binaries().path("kubectl")
    except BinariesMissing as missing:
        pytest.skip(str(missing))


def recorded(label: str, script: Script, kubectl: Path) -> str:
    """What a real server made this kubectl print; skips when it is another kubectl."""
    head, _, transcript = (FOLDER / "golden" / label / f"{script.name}.txt").read_text().partition("\n\n")
    if f"with kubectl {version_of(kubectl)};" not in head:
        pytest.skip(f"{kubectl} is not the kubectl that was recorded: {head}")
    return transcript


@pytest.mark.parametrize("label", ["1.36.4", "path"])
@pytest.mark.parametrize("script", SCRIPTS, ids=[script.name for script in SCRIPTS])
def test_kubectl_prints_what_it_prints_against_a_real_server(script: Script, label: str, tmp_path: Path) -> None:
    kubectl = kubectl_of(label)
    expected = recorded(label, script, kubectl)
    with embedded(script) as cluster:
        transcript = play(script, kubectl, cluster.kubeconfig, tmp_path)
    assert list(difflib.unified_diff(expected.splitlines(), transcript.splitlines(), "real", "embedded", n=3)) == []
