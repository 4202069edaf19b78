"""Random edits of files and diagrams lose no user text; the long run is `python -m tests.fuzz.fsm_regenerate`."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fuzz import fsm_regenerate


@pytest.mark.capability("S2")
@pytest.mark.parametrize("start", [0, 1_000_000])
def test_made_up_edits_lose_no_user_text(start: int) -> None:
    fsm_regenerate.run(250, seed=start, whole=50)


@pytest.mark.capability("S2")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.randoms(use_true_random=False))
def test_any_edits_lose_no_user_text(rng: random.Random) -> None:
    fsm_regenerate.case(rng)
