"""What the generator is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Options"]


@dataclass(frozen=True, slots=True)
class Options:
    """One call of the generator; paths may be relative to `here`."""

    input: Path
    output: Path = Path()
    package: str = "statemachine"
    tests: Path | None = None
    with_tests: bool = True
    diagram: str | None = None
    strict: bool = False
    prune: bool = False
    renames: tuple[str, ...] = ()
    """`guard:Old=New` or `Old=New`."""
    propose_renames: bool = True
    """Whether a likely rename stops the run with a proposal."""
    operator: bool = False
    group: str = ""
    api_version: str = ""
    api_kind: str = ""
    resource: str = ""
    """`module:Class`; by default `<module>.api:<Kind>`."""
    module: str | None = None
    """Of a new project (`init`): the name of its application; makes the project's files too."""
    here: Path = field(default_factory=Path.cwd)
