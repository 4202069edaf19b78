"""`flyball fsm lint`: text, JSON and SARIF, strictness, exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from flyball.cli.fsm_lint import command
from flyball.cli.main import main

WARNED = "title T\n[*] --> A\n\tA --> [*]: IsX\n"
BROKEN = "title T\n[*] --> A\nA --> B: two words\n"


@pytest.fixture
def warned(tmp_path: Path) -> str:
    file = tmp_path / "warned.puml"
    file.write_text(WARNED)
    return str(file)


@pytest.fixture
def broken(tmp_path: Path) -> str:
    file = tmp_path / "broken.puml"
    file.write_text(BROKEN)
    return str(file)


def test_text_shows_place_source_and_remedy(warned: str) -> None:
    result = CliRunner().invoke(command, [warned])
    assert result.exit_code == 0
    assert result.stdout == (
        f"{warned}:3:2: W-not-exhaustive: A has no default transition: when no guard is true the run is stuck\n"
        "    \tA --> [*]: IsX\n"
        "    \t^\n"
        "    -> add `A --> X` without a guard, or declare `state A <<poll>>` to wait there\n"
    )
    assert result.stderr == f"{warned}: 1 warning\n"


def test_errors_exit_1(warned: str, broken: str) -> None:
    run = CliRunner()
    assert run.invoke(command, [broken]).exit_code == 1
    assert run.invoke(command, [warned, broken]).exit_code == 1
    assert run.invoke(command, [warned]).exit_code == 0
    assert run.invoke(command, [warned, "--strict"]).exit_code == 1


def test_nothing_to_report(tmp_path: Path) -> None:
    file = tmp_path / "fine.puml"
    file.write_text("title T\n[*] --> A\nA --> [*]\n")
    result = CliRunner().invoke(command, [str(file), "--strict"])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", f"{file}: nothing to report\n")
    assert json.loads(CliRunner().invoke(command, [str(file), "--format", "json"]).stdout) == []


def test_json(warned: str, broken: str) -> None:
    result = CliRunner().invoke(command, [warned, broken, "--format", "json"])
    found = json.loads(result.stdout)
    assert [(one["code"], one["severity"], one["line"], one["column"], one["subject"]) for one in found] == [
        ("W-not-exhaustive", "warning", 3, 2, "A"),
        ("E-syntax", "error", 3, 10, "3"),
    ]
    assert found[1]["source"] == "A --> B: two words"
    assert found[1]["file"] == broken
    assert set(found[0]) == {"code", "severity", "message", "file", "line", "column", "source", "subject", "remedy"}


def test_sarif(warned: str, broken: str) -> None:
    result = CliRunner().invoke(command, [warned, broken, "--format", "sarif"])
    log = json.loads(result.stdout)
    assert log["version"] == "2.1.0"
    run = log["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == ["E-syntax", "W-not-exhaustive"]
    places = [one["locations"][0]["physicalLocation"] for one in run["results"]]
    assert [(one["level"], rules[one["ruleIndex"]]) for one in run["results"]] == [
        ("warning", "W-not-exhaustive"),
        ("error", "E-syntax"),
    ]
    assert places[1]["artifactLocation"] == {"uri": broken}
    assert (places[1]["region"]["startLine"], places[1]["region"]["startColumn"]) == (3, 10)


def test_quiet_leaves_out_notes(tmp_path: Path) -> None:
    file = tmp_path / "a.puml"
    file.write_text("title T\n[*] --> A\nA: Load\nA --> [*]: IsError\nA --> [*]\n")
    run = CliRunner()
    assert "I-action" in run.invoke(command, [str(file)]).stdout
    assert run.invoke(command, [str(file), "-q"]).output == ""


@pytest.mark.parametrize(("args", "code"), [([], 2), (["--format", "xml", "x"], 2), (["/nowhere.puml"], 1)])
def test_wrong_usage_and_failure(args: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["fsm", "lint", *args])
    assert stop.value.code == code
    assert "Traceback" not in capsys.readouterr().err


def test_a_file_that_is_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.puml"
    file.write_bytes(b"title \xff\xfe")
    with pytest.raises(SystemExit) as stop:
        main(["fsm", "lint", str(file)])
    assert stop.value.code == 1
    assert capsys.readouterr().err == f"flyball: {file}: not a text in UTF-8 (byte 6): save it in that encoding\n"
