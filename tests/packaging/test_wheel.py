"""The wheel has all it needs: installed without extras in an empty environment, on each Python that is here.

`make test` tries the Python that runs it; FLYBALL_ALL_PYTHONS=1 (as in `.ci/run`) tries every supported one on PATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
CHECK = """
import flyball, flyball.client, flyball.api
from flyball.k8s.apps.v1 import Deployment
from flyball.k8s.core.v1 import Pod
assert Deployment.resource_type.path("shop", "web") == "/apis/apps/v1/namespaces/shop/deployments/web"
import importlib.util
assert importlib.util.find_spec("cryptography") is None, "an extra was installed"
print("fine")
"""


def python(version: str) -> str | None:
    """An interpreter of that version that runs; None where there is none."""
    if version == RUNNING:
        return sys.executable
    on_path = [found] if (found := shutil.which(f"python{version}")) else []
    of_pyenv = sorted(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
    return next((each for each in [*on_path, *of_pyenv] if runs(each)), None)


def runs(interpreter: str) -> bool:
    """Whether it starts; a shim of pyenv may be there and not run."""
    return subprocess.run([interpreter, "-c", ""], capture_output=True, check=False).returncode == 0


def uv() -> str:
    """uv from the PATH, or the one of the running environment."""
    found = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip("uv is not here, and an empty environment needs it")
    return found


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints; its words when it fails."""
    kept = {
        name: os.environ[name] for name in os.environ if not name.startswith(("PYTHON", "VIRTUAL_ENV", "UV_PROJECT"))
    }
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=kept, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the tree as it is."""
    folder = tmp_path_factory.mktemp("wheel")
    run(uv(), "build", "--wheel", "--quiet", "--out-dir", folder, ROOT, cwd=folder)
    return next(folder.glob("*.whl"))


def test_the_wheel_has_models_and_schemas_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "flyball/py.typed" in names
    assert "flyball/k8s/apps/v1.py" in names
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"flyball"}


@pytest.mark.parametrize("version", VERSIONS)
def test_installed_without_extras_it_works(version: str, wheel: Path, tmp_path: Path) -> None:
    if version != RUNNING and not os.environ.get("FLYBALL_ALL_PYTHONS"):
        pytest.skip("only with FLYBALL_ALL_PYTHONS=1")
    interpreter = python(version)
    if interpreter is None:
        pytest.skip(f"no Python {version} on this machine")
    environment = tmp_path / "environment"
    run(uv(), "venv", "--quiet", "--python", interpreter, environment, cwd=tmp_path)
    run(uv(), "pip", "install", "--quiet", "--python", environment / "bin/python", wheel, cwd=tmp_path)
    assert run(environment / "bin/python", "-I", "-c", CHECK, cwd=tmp_path) == "fine\n"
    shutil.copy(ROOT / "examples/my_own_shell_api.py", tmp_path)
    printed = run(environment / "bin/flyball", "crd", "my_own_shell_api:MyOwnShell", cwd=tmp_path)
    assert "kind: CustomResourceDefinition" in printed
    assert "name: myownshells.my-first-operator.jgato.io" in printed
