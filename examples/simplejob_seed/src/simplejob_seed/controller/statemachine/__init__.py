"""A state machine: its class, states and data. Written once, yours from then on."""
# ruff: noqa

from .extended_state import Context as Context
from .extended_state import ExtendedState as ExtendedState
from .zz_generated_statemachine import *
