"""What `make demo` shows is what happens."""

from __future__ import annotations

import pytest

from flyball import demo


def test_the_demo_ends_by_itself_and_shows_the_cluster_at_work(capsys: pytest.CaptureFixture[str]) -> None:
    demo.main()
    shown = capsys.readouterr().out
    assert "name: lamps.demo.flyball.dev" in shown
    assert "MODIFIED  hall-lamp: brightness 60, shining True" in shown
    assert "hall-lamp      hall      60           True" in shown
    assert "spec.brightness in body should be less than or equal to 100" in shown
