"""How names of a diagram become names of Python."""

from __future__ import annotations

import pytest

from flyball.fsm.generate.machine_module import member_name
from flyball.fsm.generate.names import clashes, class_name, default_name, free_name, snake_case


@pytest.mark.parametrize(
    ("name", "snake"),
    [
        ("SwitchIn", "switch_in"),
        ("IsHTTPError", "is_http_error"),
        ("isReady", "is_ready"),
        ("is_ready", "is_ready"),
        ("V2Check", "v2_check"),
        ("LoadJSON", "load_json"),
        ("ABTest", "ab_test"),
        ("X", "x"),
        ("ÄndernÜber", "ändern_über"),
        ("_Hidden", "hidden"),
        ("__", "_"),
        ("_1", "_1"),
    ],
)
def test_snake_form(name: str, snake: str) -> None:
    assert snake_case(name) == snake
    assert snake.isidentifier()


def test_names_that_mean_something_get_an_underscore() -> None:
    assert default_name("action", "Import") == "import_"
    assert default_name("action", "Print") == "print_"
    assert default_name("action", "Action") == "action_"
    assert default_name("guard", "Action") == "action"
    assert class_name("State") == "State_"
    assert class_name("Order") == "Order"
    assert member_name("name") == "name_"
    assert member_name("_x") == "S_x"


def test_clashes_and_free_names() -> None:
    assert clashes(["IsHTTPOk", "IsHttpOk", "Other"]) == [("IsHTTPOk", "IsHttpOk", "is_http_ok")]
    assert free_name("load", {"load", "load_2"}) == "load_3"
    assert free_name("print_", {"print_"}) == "print_2"
