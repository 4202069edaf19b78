"""The log of an application: JSON lines, and the variable that shows more."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
from tests.support.machines import Log, make

from flyball.fsm.run import FINAL, AppContext, app_logger, call, state, to


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    yield io.StringIO()
    logging.getLogger("flyball.fsm.FrontDoor").handlers.clear()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    return [{name: value for name, value in line.items() if name != "time"} for line in found]


def run(stream: io.StringIO) -> None:
    logger = app_logger("FrontDoor", stream)
    machine = make(state("A", do=[call("X")], transitions=[to(FINAL)]))
    machine(AppContext(logger), Log(fail={"X": ValueError("broken")})).settle_sync()


def test_errors_are_json_lines_with_their_fields(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FRONTDOOR_DEBUG", raising=False)
    run(stream)
    assert lines(stream) == [
        {"level": "ERROR", "msg": "action failed", "action": "X", "state": "A", "error": "broken"},
    ]
    assert "T" in json.loads(stream.getvalue())["time"]


def test_the_variable_shows_everything(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRONTDOOR_DEBUG", "1")
    run(stream)
    assert [line["msg"] for line in lines(stream)] == [
        "unguarded transition",
        "executing",
        "action failed",
        "unguarded transition",
    ]
    assert lines(stream)[0] == {"level": "DEBUG", "msg": "unguarded transition", "current": "[*]", "next": "A"}


def test_setting_up_twice_writes_once(stream: io.StringIO) -> None:
    app_logger("FrontDoor", stream)
    logger = app_logger("FrontDoor", stream)
    try:
        raise OSError("disk")
    except OSError:
        logger.exception("no %s", "way")
    (line,) = lines(stream)
    assert line["msg"] == "no way"
    assert "OSError: disk" in str(line["exception"])
