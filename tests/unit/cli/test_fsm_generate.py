"""The flags, messages and exit codes of `flyball fsm generate`, `init` and `rename`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from flyball.cli.fsm_generate import command as generate_command
from flyball.cli.fsm_init import command as init_command
from flyball.cli.fsm_rename import command as rename_command
from flyball.errors import FlyballError

DIAGRAM = """title Order
[*] --> Loading
Loading: do / Load
Loading --> [*]: IsError
Loading --> Saving: IsReady
Loading --> [*]
Saving: do / Save(now)
Saving --> [*]: IsError
Saving --> [*]
"""
COMMANDS = {"generate": generate_command, "init": init_command, "rename": rename_command}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with a diagram is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "order.puml").write_text(DIAGRAM)
    return tmp_path


def call(verb: str, *arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(COMMANDS[verb], ["-i", "order.puml", *arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def refused(verb: str, *arguments: str) -> str:
    result = CliRunner().invoke(COMMANDS[verb], ["-i", "order.puml", *arguments])
    assert isinstance(result.exception, FlyballError), result.output
    return str(result.exception)


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def implement(file: Path, function: str) -> None:
    """Fill in one function."""
    head, found, tail = file.read_text().partition(f"def {function}(")
    assert found
    body = tail.replace("    # TODO: implement\n", "    assert m\n", 1)
    file.write_text(head + found + body)


def test_one_line_for_each_file_that_is_written_and_none_the_second_time(folder: Path) -> None:
    lines = call("generate", "-o", "src/shop").stdout.splitlines()
    assert "create src/shop/statemachine/actions.py" in lines
    assert len(lines) == len(everything(folder)) - 1
    assert call("generate", "-o", "src/shop").output == ""


def test_quiet(folder: Path) -> None:
    assert call("generate", "-q").output == ""
    assert (folder / "statemachine" / "actions.py").is_file()


def test_check_exits_with_3_and_writes_nothing(folder: Path) -> None:
    before = everything(folder)
    result = call("generate", "--check", code=3)
    assert "would create statemachine/actions.py" in result.stdout
    assert everything(folder) == before
    call("generate")
    assert call("generate", "--check").output == ""


def test_dry_run_lists_files_and_diff_shows_the_change(folder: Path) -> None:
    call("generate")
    (folder / "order.puml").write_text(DIAGRAM.replace("Save(now)", "Store(now)"))
    before = everything(folder)
    lines = call("generate", "--dry-run").stdout.splitlines()
    assert "would update statemachine/actions.py (+Store, -Save)" in lines
    diff = call("generate", "--diff").stdout
    assert "--- a/statemachine/actions.py\n+++ b/statemachine/actions.py\n" in diff
    assert '+@action("Store")' in diff
    assert '-@action("Save")' in diff
    assert everything(folder) == before


def test_errors_of_the_diagram_stop_everything(folder: Path) -> None:
    (folder / "order.puml").write_text("title Order\n[*] --> A\nA => B\n")
    before = everything(folder)
    result = call("generate", code=1)
    assert "order.puml:3:" in result.stderr
    assert result.stderr.endswith("flyball: nothing is written\n")
    assert everything(folder) == before


def test_strict_counts_warnings(folder: Path) -> None:
    (folder / "order.puml").write_text(DIAGRAM.replace("Loading --> [*]\n", ""))
    call("generate", "--strict", code=1)
    assert "W-not-exhaustive" in call("generate").stderr


def test_a_user_file_that_cannot_be_parsed_stops_everything(folder: Path) -> None:
    call("generate")
    (folder / "statemachine" / "guards.py").write_text("def (\n")
    (folder / "order.puml").write_text(DIAGRAM.replace("Save(now)", "Store(now)"))
    before = everything(folder)
    result = call("generate", code=1)
    assert "statemachine/guards.py:1:5: E-user-file: not valid Python" in result.stderr
    assert everything(folder) == before


def test_json_and_sarif(folder: Path) -> None:
    (folder / "order.puml").write_text(DIAGRAM.replace("Saving --> [*]: IsError\n", ""))
    document = json.loads(call("generate", "--format", "json").stdout)
    assert document["ok"] is True
    assert [one["code"] for one in document["findings"]] == ["W-unhandled-error"]
    assert {"path": "statemachine/actions.py", "change": "new", "role": "merged"} in document["files"]
    sarif = json.loads(call("generate", "--format", "sarif", "--check").stdout)
    assert sarif["runs"][0]["results"][0]["ruleId"] == "W-unhandled-error"


def test_orphans_are_kept_reported_and_pruned(folder: Path) -> None:
    call("generate")
    actions = folder / "statemachine" / "actions.py"
    implement(actions, "save")
    (folder / "order.puml").write_text(DIAGRAM.replace("Saving: do / Save(now)\n", ""))
    kept = actions.read_bytes()

    result = call("generate")
    assert "W-orphan: action Save (save) is no longer in the diagram; it is kept" in result.stderr
    assert actions.read_bytes() == kept

    result = call("generate", "--prune")
    assert '-@action("Save")' in result.stdout
    assert "save" not in actions.read_text()


def test_cases_of_tests_are_not_pruned(folder: Path) -> None:
    call("generate")
    tests = folder / "tests" / "statemachine" / "test_actions.py"
    tests.write_text(tests.read_text().replace('[["now"]]', '[["now"], ["later"]]'))
    before = tests.read_bytes()
    (folder / "order.puml").write_text(DIAGRAM.replace("Saving: do / Save(now)\n", ""))
    call("generate", "--prune")
    assert tests.read_bytes() == before


def test_the_first_guard_of_a_machine_gets_the_imports_of_a_new_file(folder: Path) -> None:
    (folder / "order.puml").write_text("title Order\n[*] --> A\nA --> [*]\n")
    call("generate")
    (folder / "order.puml").write_text(DIAGRAM)
    call("generate")
    grown = everything(folder)
    call("generate", "-p", "fresh", "--tests", "fresh")
    for name in ("actions.py", "guards.py"):
        assert grown[f"statemachine/{name}"] == (folder / "fresh" / name).read_bytes()


def test_a_likely_rename_is_proposed_and_no_stub_is_added(folder: Path) -> None:
    call("generate")
    guards = folder / "statemachine" / "guards.py"
    implement(guards, "is_ready")
    (folder / "order.puml").write_text(DIAGRAM.replace("IsReady", "IsPaid"))
    before = everything(folder)

    result = call("generate", code=1)
    assert "E-rename" in result.stderr
    assert "--rename guard:IsReady=IsPaid" in result.stderr
    assert everything(folder) == before

    call("generate", "--rename", "guard:IsReady=IsPaid")
    text = guards.read_text()
    assert '@guard("IsPaid")\ndef is_paid(m: Machine' in text
    assert "IsReady" not in text
    tests = (folder / "tests" / "statemachine" / "test_guards.py").read_text()
    assert '@covers_guard("IsPaid")' in tests
    assert "def test_is_paid(" in tests
    assert call("generate", "--check").output == ""


def test_what_looks_like_a_rename_can_be_a_new_name(folder: Path) -> None:
    call("generate")
    guards = folder / "statemachine" / "guards.py"
    implement(guards, "is_ready")
    (folder / "order.puml").write_text(DIAGRAM.replace("IsReady", "IsPaid"))
    call("generate", "--no-rename")
    text = guards.read_text()
    assert "def is_ready(" in text
    assert "def is_paid(" in text


def test_rename_changes_diagram_code_and_tests(folder: Path) -> None:
    call("generate")
    actions = folder / "statemachine" / "actions.py"
    implement(actions, "save")
    actions.write_text(actions.read_text() + "\n\nALIAS = save\n")
    tests = folder / "tests" / "statemachine" / "test_actions.py"
    tests.write_text(tests.read_text() + "\n\ndef test_more(machine):\n    actions.save(machine)\n")

    call("rename", "Save=Store")

    assert (folder / "order.puml").read_text() == DIAGRAM.replace("Save(", "Store(")
    assert "async def store(m: Machine" in actions.read_text()
    assert actions.read_text().endswith("ALIAS = store\n")
    assert "actions.store(machine)" in tests.read_text()
    assert 'run_action(machine, "Store", *params)' in tests.read_text()
    assert "actions.store" in (folder / "statemachine" / "zz_generated_statemachine.py").read_text()
    assert call("generate", "--check").output == ""


def test_a_rename_keeps_a_name_that_the_user_chose(folder: Path) -> None:
    call("generate")
    actions = folder / "statemachine" / "actions.py"
    actions.write_text(actions.read_text().replace("def save(", "def put_away("))
    call("rename", "action:Save=Store")
    assert '@action("Store")\nasync def put_away(' in actions.read_text()


@pytest.mark.parametrize(
    ("rename", "message"),
    [
        ("Save", "write Old=New"),
        ("state:Save=Store", "neither action nor guard"),
        ("Nope=Store", "neither an action nor a guard"),
        ("action:Save=Load", "the diagram uses both names"),
    ],
)
def test_renames_that_cannot_be(folder: Path, rename: str, message: str) -> None:
    call("generate")
    before = everything(folder)
    assert message in refused("rename", rename)
    assert everything(folder) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--operator",), "--operator needs --api-kind and --api-version"),
        (("--operator", "-k", "Simple-Job", "-v", "v1"), "cannot be the name of a class"),
        (("--format", "xml"), "xml"),
        (("--nope",), "nope"),
    ],
)
def test_wrong_usage_exits_with_2(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in call("generate", *arguments, code=2).stderr


def test_a_package_must_have_a_name_of_python() -> None:
    assert "it is no Python identifier" in refused("generate", "-p", "state-machine")
    assert "it is a word of Python" in refused("generate", "-p", "class")
    assert "cannot hold a package" in refused("generate", "-o", "src/my-app")


def test_tests_of_another_package_are_not_overwritten(folder: Path) -> None:
    call("generate", "-o", "src/one")
    before = everything(folder)
    assert "holds the tests of another package" in refused("generate", "-o", "src/two")
    assert everything(folder) == before
    call("generate", "-o", "src/two", "--tests", "tests/two")


def test_a_package_that_would_hide_the_actions_is_an_error(folder: Path) -> None:
    (folder / "statemachine" / "actions").mkdir(parents=True)
    (folder / "statemachine" / "actions" / "__init__.py").write_text("")
    assert "would be hidden by the package actions" in call("generate", code=1).stderr


def test_options_of_the_project_file_and_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pyproject.toml").write_text(
        '[tool.flyball.fsm]\ninput = "order.puml"\noutput = "src/shop"\npackage = "a"\n'
    )
    (folder / "deep").mkdir()
    monkeypatch.chdir(folder / "deep")
    result = CliRunner().invoke(generate_command, [])
    assert result.exit_code == 0, (result.output, result.exception)
    assert (folder / "src" / "shop" / "a" / "actions.py").is_file()

    monkeypatch.setenv("FLYBALL_FSM_PACKAGE", "b")
    assert CliRunner().invoke(generate_command, ["--no-tests"]).exit_code == 0
    assert (folder / "src" / "shop" / "b" / "actions.py").is_file()
    assert CliRunner().invoke(generate_command, ["--no-tests", "-p", "c"]).exit_code == 0
    assert (folder / "src" / "shop" / "c" / "actions.py").is_file()


def test_a_diagram_that_is_not_there(folder: Path) -> None:
    (folder / "order.puml").unlink()
    assert "cannot read order.puml: there is no such file" in refused("generate")


def test_no_tests(folder: Path) -> None:
    call("generate", "--no-tests")
    assert not (folder / "tests").exists()


def test_names_with_one_snake_form_are_an_error(folder: Path) -> None:
    (folder / "order.puml").write_text(DIAGRAM.replace("IsReady", "IsHTTPOk").replace("IsError", "IsHttpOk", 1))
    result = call("generate", code=1)
    assert "E-name-clash" in result.stderr
    assert "is_http_ok" in result.stderr


def test_a_new_title_changes_no_user_file(folder: Path) -> None:
    call("generate")
    before = everything(folder)
    (folder / "order.puml").write_text(DIAGRAM.replace("title Order", "title Purchase"))
    assert call("generate").stdout.splitlines() == ["update statemachine/zz_generated_statemachine.py"]
    after = everything(folder)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"statemachine/zz_generated_statemachine.py", "order.puml"}


def test_a_resource_class_is_written_once_and_then_the_user_s(folder: Path) -> None:
    operator = ("-o", "src/jobs", "--operator", "-k", "SimpleJob", "-v", "V1alpha1", "-g", "Jobs")
    call("generate", *operator)
    api = folder / "src" / "jobs" / "api.py"
    assert 'class SimpleJob(Resource, group="jobs.example.com", version="v1alpha1"):' in api.read_text()
    api.write_text("class SimpleJob: ...\n")
    call("generate", *operator)
    assert api.read_text() == "class SimpleJob: ...\n"


def test_a_resource_class_from_elsewhere(folder: Path) -> None:
    call("generate", "-o", "src/jobs", "-O", "-k", "Job", "-v", "v1", "--resource", "flyball.k8s.batch.v1:Job")
    text = (folder / "src" / "jobs" / "statemachine" / "extended_state.py").read_text()
    assert "from flyball.k8s.batch.v1 import Job\n" in text
    assert not (folder / "src" / "jobs" / "api.py").exists()


def test_the_domain_of_the_project_completes_the_group(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.flyball]\ndomain = "acme.org"\n')
    call("generate", "-o", "src/jobs", "-O", "-k", "Job", "-v", "v1", "-g", "batch")
    assert 'group="batch.acme.org"' in (folder / "src" / "jobs" / "api.py").read_text()


def test_init_refuses_a_project(folder: Path) -> None:
    call("init", "-m", "shop")
    before = everything(folder)
    assert "pyproject.toml" in refused("init", "-m", "shop")
    (folder / "pyproject.toml").unlink()
    assert "src/shop/__main__.py" in refused("init", "-m", "shop")
    assert {**everything(folder), "pyproject.toml": before["pyproject.toml"]} == before


def test_markdown_and_the_choice_of_a_diagram(folder: Path) -> None:
    other = DIAGRAM.replace("Order", "Other")
    (folder / "order.md").write_text(f"# Orders\n\n```plantuml\n{DIAGRAM}```\n\n```plantuml\n{other}```\n")
    result = CliRunner().invoke(generate_command, ["-i", "order.md", "--diagram", "Other"])
    assert result.exit_code == 0, result.output
    assert "class Other(" in (folder / "statemachine" / "zz_generated_statemachine.py").read_text()


def test_renames_in_markdown_touch_their_diagram_only(folder: Path) -> None:
    text = f"Save it.\r\n\r\n```plantuml\r\n{DIAGRAM}```\r\nSave it.\r\n"
    (folder / "order.md").write_bytes(text.encode())
    for verb, arguments in (("generate", []), ("rename", ["Save=Store"])):
        result = CliRunner().invoke(COMMANDS[verb], ["-i", "order.md", *arguments])
        assert result.exit_code == 0, (result.output, result.exception)
    assert (folder / "order.md").read_bytes() == text.replace("Save(now)", "Store(now)").encode()
