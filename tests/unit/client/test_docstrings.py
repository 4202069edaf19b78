from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from flyball.client import lines, selectors, server_warnings


@pytest.mark.parametrize("module", [lines, selectors, server_warnings], ids=lambda module: module.__name__)
def test_the_examples_are_true(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert (found.failed, found.attempted > 0) == (0, True)
