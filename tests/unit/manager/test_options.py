"""Options from flags, environment, code and pyproject.toml."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from flyball.errors import ConfigError
from flyball.manager.flags import read_flags
from flyball.manager.options import Options, project_options, resolve

pytestmark = pytest.mark.capability("C57")

VALUES = {
    "namespaces": ("a,b", ("a", "b")),
    "leader_election": ("on", "on"),
    "log_level": ("debug", "debug"),
    "log_format": ("json", "json"),
    "uvloop": ("off", "off"),
    "health_port": ("0", 0),
    "metrics_port": ("-1", -1),
}


def given(name: str, kind: str) -> tuple[str, object]:
    if name in VALUES:
        return VALUES[name]
    return ("7", 7.0) if "float" in kind else ("words", "words")


@pytest.mark.parametrize("option", fields(Options), ids=lambda one: one.name)
def test_each_option_can_be_given_in_each_way(option, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    name = option.name
    text, value = given(name, str(option.type))
    assert getattr(resolve({name: text}, environ={}, folder=tmp_path), name) == value
    assert getattr(resolve(environ={f"FLYBALL_{name.upper()}": text}, folder=tmp_path), name) == value
    assert getattr(resolve(arguments={name: value}, environ={}, folder=tmp_path), name) == value
    (tmp_path / "pyproject.toml").write_text(f"[tool.flyball]\n{name.replace('_', '-')} = {text!r}\n")
    assert getattr(resolve(environ={}, folder=tmp_path), name) == value
    flags = read_flags([f"--{name.replace('_', '-')}={text}"], "operator.py", None)
    assert isinstance(flags, dict)
    assert getattr(resolve(flags, environ={}, folder=tmp_path / ".."), name) == value


def test_who_stands_nearer_wins(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.flyball]\ngrace = 1\nqps = 1\nmax-block = 1\nretry_period = "500ms"\n'
    )
    inner = tmp_path / "src"
    inner.mkdir()
    found = resolve(
        {"grace": "4"},
        {"grace": 2, "qps": 2, "max_block": 2},
        environ={"FLYBALL_GRACE": "3", "FLYBALL_QPS": "3"},
        folder=inner,
    )
    assert (found.grace, found.qps, found.max_block, found.retry_period) == (4, 3, 2, 0.5)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"flags": {"grace": "soon"}}, "flag: option grace: 'soon' cannot be read as a number"),
        (
            {"environ": {"FLYBALL_HEALTH_PORT": "http"}},
            "environment: option health_port: 'http' cannot be read as a whole",
        ),
        ({"arguments": {"colour": 1}}, "argument: there is no option 'colour'; there are context,"),
        ({"flags": {"log_level": "loud"}}, "option log_level: 'loud' is not one of debug, info,"),
        ({"arguments": {"grace": -1}}, "option grace: -1 is negative; give seconds"),
    ],
)
def test_what_cannot_be_meant_is_refused(layer: dict, message: str, tmp_path: Path) -> None:  # type: ignore[type-arg]
    with pytest.raises(ConfigError, match=message):
        resolve(**{"environ": {}, **layer}, folder=tmp_path)


def test_a_key_that_nobody_knows_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.flyball]\ngrce = 1\ndomain = "example.org"\n[tool.flyball.fsm]\nx = 1\n'
    )
    assert resolve(environ={}, folder=tmp_path) == Options()
    assert [record.message for record in caplog.records] == [
        "pyproject.toml: [tool.flyball] has 'grce', which is no option; it has no effect"
    ]


def test_a_broken_project_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.flyball\n")
    with pytest.raises(ConfigError, match=r"read .*pyproject\.toml: .*; correct the file"):
        project_options(tmp_path)


def test_help_and_mistakes_have_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert read_flags(["--help"], "operator.py", "Words.") == 0
    assert "--leader-election [auto|on|off]" in capsys.readouterr().out
    assert read_flags(["--colour"], "operator.py", None) == 2
    assert capsys.readouterr().err.startswith("operator.py: No such option")
