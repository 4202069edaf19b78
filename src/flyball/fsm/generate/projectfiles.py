"""The files of a new project: pyproject.toml and the program that runs the machine."""

from __future__ import annotations

__all__ = ["main_module", "pyproject"]

_PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "{{ distribution }}"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["flyball"]

[project.scripts]
{{ distribution }} = "{{ module }}.__main__:main"

[dependency-groups]
dev = ["flyball[dev]", "mypy", "pyright", "pytest", "ruff"]

[tool.hatch.build.targets.wheel]
packages = ["src/{{ module }}"]

[tool.mypy]
strict = true
mypy_path = "src"

[tool.pyright]
include = ["src", "tests"]
extraPaths = ["src"]
typeCheckingMode = "strict"

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["src"]
markers = [
    "covers_action(name): the action that a test covers",
    "covers_guard(name): the guard that a test covers",
    "integration: runs against a cluster",
]

[tool.ruff]
src = ["src"]
"""

_APPLICATION = """\
\"\"\"Runs the machine once: `python -m {{ module }}`. Written once, yours from then on.\"\"\"

from __future__ import annotations

import asyncio
import logging
import sys

from {{ module }}.{{ package }} import Machine


def main() -> int:
    \"\"\"Run the machine; 0 when it ended without an error, else 1.\"\"\"
    logging.basicConfig(level=logging.INFO)
    outcome = asyncio.run(Machine().settle())
    if outcome.error is not None:
        print(f"{{ module }}: {outcome.error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
"""

_OPERATOR = """\
\"\"\"Runs the operator: `python -m {{ module }}`. Written once, yours from then on.\"\"\"

from __future__ import annotations

from flyball import run
from flyball.fsm.operator import fsm_controller

from {{ api_module }} import {{ api_name }}
from {{ module }}.{{ package }} import Machine


def main() -> None:
    \"\"\"Reconcile every {{ api_name }} with a machine of its own, until stopped.\"\"\"
    run(fsm_controller(Machine, {{ api_name }}))


if __name__ == "__main__":
    main()
"""


def _render(template: str, **values: str) -> str:
    from jinja2 import Environment, StrictUndefined  # of the extra `dev`: an update of a package does without

    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701
    return environment.from_string(template).render(values)


def pyproject(module: str) -> str:
    """pyproject.toml of a project with one application."""
    return _render(_PYPROJECT, module=module, distribution=module.replace("_", "-"))


def main_module(module: str, package: str, *, api_module: str = "", api_name: str = "") -> str:
    """`__main__.py`: run the machine once or, with a resource class, the operator."""
    text = _OPERATOR if api_name else _APPLICATION
    return _render(text, module=module, package=package, api_module=api_module, api_name=api_name)
