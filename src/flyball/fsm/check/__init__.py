"""Judges a model: what the text says is clear, but is it a machine that works?

`check` reports levels that never begin or never end, states that cannot be reached or left, defaults and guards in
the wrong order, cycles, and errors that nothing reacts to.
"""

from flyball.fsm.check.judge import check

__all__ = ["check"]
