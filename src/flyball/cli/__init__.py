"""The command line: one module per verb, each a few lines over the rooms of the package.

What it promises: `flyball --help` imports no verb (each is loaded when it is called); a failure is one line on
standard error and exit code 1, wrong usage is exit code 2, and a traceback is shown only with `--debug`.

A verb lives in `flyball/cli/<verb>.py` (`fsm generate` in `fsm_generate.py`) and is a click command named `command`.
"""

from __future__ import annotations

from flyball.cli.main import main

__all__ = ["main"]
