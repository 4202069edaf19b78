"""Machines from diagrams: a PlantUML state diagram becomes a typed machine that runs, is drawn and is tested.

::

    diagram, findings = compile_file("traffic-light.puml")

Reading order:

* `model`: what a diagram means; the immutable table that everything else works on;
* `parse`: text to model, with a finding for every line that cannot be understood;
* `check`: judges a model: reachability, dead ends, defaults, unhandled errors;
* `compile`: both in one call; `document`: the model as plain data, and findings as text, JSON and SARIF;
* `implemented`: the diagram beside the functions of its package;
* `draw`: the model as SVG, Mermaid, DOT, PlantUML and in a terminal; the canonical form of a diagram's text;
* `run`: the engine; `operator`: a machine as the body of an operator;
* `generate`: a package of code from a diagram, and its update when the diagram has changed.

Importing this package imports none of them, so that a machine that runs does not pay for the parser.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flyball.fsm.compile import compile_file, compile_text
    from flyball.fsm.model import Diagram, Finding
    from flyball.fsm.operator import fsm_controller
    from flyball.fsm.parse import DiagramError, load, parse_text

__all__ = ["Diagram", "DiagramError", "Finding", "compile_file", "compile_text", "fsm_controller", "load", "parse_text"]

_HOMES = {
    "Diagram": "flyball.fsm.model",
    "DiagramError": "flyball.fsm.parse",
    "Finding": "flyball.fsm.model",
    "compile_file": "flyball.fsm.compile",
    "compile_text": "flyball.fsm.compile",
    "fsm_controller": "flyball.fsm.operator",
    "load": "flyball.fsm.parse",
    "parse_text": "flyball.fsm.parse",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)
