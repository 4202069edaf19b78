"""The recorded cases, played again: the recording is true, complete and repeatable."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
from tools.differential import golden, report
from tools.differential.cases import Case, CaseError, load
from tools.differential.play import play_all
from tools.differential.stories import REST_SECONDS, play_stories
from tools.differential.target import Target
from tools.differential.worlds import real_world

CASES = load()
_TRIES = 4
FAMILIES = sorted({case.family for case in CASES})
OF_REQUESTS = sorted({case.family for case in CASES if not case.is_story})
OF_STORIES = sorted({case.family for case in CASES if case.is_story})
LEAST = {
    "errors": 60,
    "life": 50,
    "defaults": 60,
    "patches": 80,
    "apply": 60,
    "schemas": 60,
    "rules": 100,
    "tables": 20,
    "lists": 15,
    "watches": 15,
    "deletes": 20,
    "subresources": 15,
    "discovery": 20,
    "controllers-deployments": 50,
}


def test_there_are_enough_cases_of_each_kind() -> None:
    counts = Counter(case.family for case in CASES)
    assert {family: counts[family] for family in LEAST if counts[family] < LEAST[family]} == {}


def test_there_are_enough_stories() -> None:
    assert sum(case.is_story for case in CASES) >= 80


@pytest.mark.parametrize("family", FAMILIES)
def test_every_case_was_recorded_and_nothing_else(family: str) -> None:
    assert list(golden.read(family)) == [case.name for case in CASES if case.family == family]


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_accidental_was_recorded(family: str) -> None:
    text = (golden.FOLDER / f"{family}.json").read_text()
    for accident in ("flyball-cluster-", "/root", "NOTHING MORE", "example.com.example.com"):
        assert accident not in text


def test_every_exception_has_a_reason_and_a_case() -> None:
    states = report.read_states()
    for pattern, written in states["cases"].items():
        assert written["state"] in report.TITLES, pattern
        assert written["reason"], pattern
        assert any(report.matches(pattern, case) for case in CASES), f"no case is called {pattern}"


def test_the_page_is_up_to_date() -> None:
    assert report.PAGE.read_text() == report.render(), "run `make generate`"


@pytest.mark.real
@pytest.mark.parametrize("family", OF_STORIES)
def test_a_real_controller_manager_tells_the_same_story(family: str, real_controllers: Target) -> None:
    """What it tells differently was too slow: it is asked again, with longer rests, and must come out equal."""
    cases = [case for case in CASES if case.family == family]
    lines: dict[str, list[str]] = {}
    for attempt in range(_TRIES):
        again = [dataclasses.replace(case, family=f"{family}-again-{attempt}") for case in cases]  # other namespaces
        played = play_stories(again, lambda: real_world(real_controllers), rest=REST_SECONDS * (attempt + 1))
        lines = differing(cases, played)
        cases = [case for case in cases if case.id in lines]
        if not cases:
            break
    assert lines == {}


@pytest.mark.real
@pytest.mark.parametrize("family", OF_REQUESTS)
def test_a_real_server_answers_as_recorded(family: str, real_target: Target) -> None:
    """A real server says some things in random order: what differs is asked again, and must come out equal."""
    cases = [case for case in CASES if case.family == family]
    lines: dict[str, list[str]] = {}
    for _ in range(_TRIES):
        lines = differing(cases, play_all(cases, real_target))
        cases = [case for case in cases if case.id in lines]
        if not cases:
            break
    assert lines == {}


def differing(cases: list[Case], answers: list[golden.Answers | CaseError]) -> dict[str, list[str]]:
    """What is not as recorded, by case."""
    found: dict[str, list[str]] = {}
    for case, played in zip(cases, answers, strict=True):
        unplayed = isinstance(played, CaseError)
        told = [str(played)] if unplayed else golden.differences(golden.read(case.family)[case.name], played)
        if told:
            found[case.id] = told
    return found
