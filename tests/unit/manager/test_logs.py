"""How records look."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator

import pytest

from flyball.controller.logs import enter_pass, leave_pass
from flyball.manager.logs import JsonFormatter, KeyValueFormatter, setup

pytestmark = pytest.mark.capability("C61")


def record(message: str, *args: object, failure: bool = False, **extra: object) -> logging.LogRecord:
    error = None
    if failure:
        try:
            raise KeyError("x")
        except KeyError:
            error = sys.exc_info()
    made = logging.getLogger("a.b").makeRecord("a.b", logging.INFO, "f", 1, message, args, error, extra=extra)
    made.created = 0.5
    return made


def test_a_line_for_people() -> None:
    line = KeyValueFormatter().format(record("made %s", "it", colour="dark red", size=3, empty="", quote='"'))
    assert line == '1970-01-01T00:00:00.500Z INFO    a.b: made it colour="dark red" size=3 empty="" quote="\\""'


def test_a_message_of_many_lines_stays_one_record() -> None:
    assert KeyValueFormatter().format(record("a\n1970 INFO forged")).count("\n") == 0


def test_a_line_for_machines() -> None:
    line = json.loads(JsonFormatter().format(record("made", colour="red", time="mine", odd={1}, failure=True)))
    assert line.pop("error").endswith("KeyError: 'x'")
    assert line == {
        "time": "1970-01-01T00:00:00.500Z",
        "level": "info",
        "logger": "a.b",
        "message": "made",
        "colour": "red",
        "field_time": "mine",
        "odd": "{1}",
    }


@pytest.mark.parametrize("formatter", [KeyValueFormatter(), JsonFormatter()])
def test_a_record_of_anybody_says_which_pass_wrote_it(formatter: logging.Formatter) -> None:
    token = enter_pass({"controller": "shell", "name": "demo"})
    try:
        inside = formatter.format(record("hello"))
    finally:
        leave_pass(token)
    assert "shell" in inside
    assert "demo" in inside
    assert "shell" not in formatter.format(record("hello"))
    assert "shell" in formatter.format(record("hello", flyball={"controller": "shell"}))


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Iterator[logging.Logger]:
    bare = logging.RootLogger(logging.WARNING)
    real = logging.getLogger
    monkeypatch.setattr(logging, "getLogger", lambda name=None: real(name) if name else bare)
    levels = {name: real(name).level for name in ("flyball", "aiohttp")}
    yield bare
    for name, level in levels.items():
        real(name).setLevel(level)


def test_without_a_terminal_records_are_json(root: logging.Logger) -> None:
    root.handlers.clear()  # those of pytest
    setup("debug", "auto")
    assert [type(one.formatter) for one in root.handlers] == [JsonFormatter]
    assert root.level == logging.INFO
    assert logging.getLogger("flyball").level == logging.DEBUG


def test_handlers_of_the_program_are_left_alone(root: logging.Logger) -> None:
    own = logging.NullHandler()
    root.handlers[:] = [own]
    setup("info", "text")
    assert root.handlers == [own]


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no log level 'loud'"):
        setup("loud")
