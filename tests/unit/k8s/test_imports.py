"""Modules of built-in kinds are loaded when they are named, and not before."""

from __future__ import annotations

import subprocess
import sys

import pytest

META = {"flyball.k8s.meta", "flyball.k8s.meta.v1"}


def modules_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


@pytest.mark.parametrize("code", ["import flyball", "import flyball.api", "import flyball.k8s"])
def test_the_way_in_loads_no_kinds(code: str) -> None:
    loaded = modules_after(code)
    assert not {name for name in loaded if name.startswith("flyball.k8s.")}


def test_a_group_loads_only_what_it_needs() -> None:
    loaded = {name for name in modules_after("import flyball.k8s.coordination.v1") if name.startswith("flyball.k8s.")}
    assert loaded - META == {"flyball.k8s.coordination", "flyball.k8s.coordination.v1"}


def test_looking_up_a_kind_loads_its_module_only() -> None:
    loaded = modules_after("from flyball.k8s import find, kinds; list(kinds()); find('v1', 'Pod')")
    modules = {name for name in loaded if name.startswith("flyball.k8s.") and name.count(".") == 3}
    assert modules == {"flyball.k8s.core.v1", "flyball.k8s.meta.v1"}
