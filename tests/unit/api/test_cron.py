"""Cron schedules mean what they mean on a real cluster; the golden file was recorded with robfig/cron 3.0.1 for Go."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.api.cron import BadSchedule, Every, Fields, parse_schedule, time_zone

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "cron_golden.json").read_text())
DAY = timedelta(days=1)
NEW_YORK = "America/New_York"


def moments(text: str, zone: str, after: str, count: int) -> list[str]:
    schedule, moment, found = parse_schedule(text, time_zone(zone)), datetime.fromisoformat(after), list[str]()
    for _ in range(count):
        following = schedule.next(moment)
        if following is None:
            return [*found, ""]
        moment = following
        found.append(moment.strftime("%Y-%m-%dT%H:%M:%SZ"))
    return found


@pytest.mark.parametrize("zone", sorted({zone for _, zone, *_ in GOLDEN["moments"]}))
def test_moments_are_those_of_a_real_controller(zone: str) -> None:
    rows = [row for row in GOLDEN["moments"] if row[1] == zone]
    assert len(rows) > 100
    for text, _, after, *expected in rows:
        assert moments(text, zone, after, len(expected)) == expected, (text, after)


@pytest.mark.parametrize(("text", "words"), sorted(GOLDEN["bad"].items()))
def test_what_cannot_be_read_is_told_in_the_same_words(text: str, words: str) -> None:
    if words.startswith("panic"):
        words = "expected exactly 5 fields, found 0: []"
    if not words:
        parse_schedule(text)
        return
    with pytest.raises(BadSchedule) as caught:
        parse_schedule(text)
    assert str(caught.value) == words


def test_an_hour_that_comes_twice_has_two_moments_and_one_that_is_left_out_none() -> None:
    assert moments("30 1 * * *", NEW_YORK, "2026-11-01T00:00:00Z", 3) == [
        "2026-11-01T05:30:00Z",
        "2026-11-01T06:30:00Z",
        "2026-11-02T06:30:00Z",
    ]
    assert moments("30 2 * * *", NEW_YORK, "2026-03-07T12:00:00Z", 2) == [
        "2026-03-09T06:30:00Z",
        "2026-03-10T06:30:00Z",
    ]


def test_half_an_hour_that_is_set_back_loses_no_day() -> None:
    found = moments("0 0 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00Z", 3)
    assert found == ["2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z", "2026-04-06T13:30:00Z"]


def test_a_day_that_a_country_leaves_out_ends() -> None:
    assert moments("@weekly", "Pacific/Apia", "2011-12-29T09:00:00Z", 1) == ["2011-12-31T10:00:00Z"]


def test_a_zone_before_the_schedule_counts() -> None:
    assert parse_schedule("TZ=Europe/Berlin 0 9 * * *").next(datetime(2026, 7, 1, tzinfo=UTC)) == datetime(
        2026, 7, 1, 7, tzinfo=UTC
    )


def test_every_so_often_is_in_whole_seconds() -> None:
    assert parse_schedule("@every 1.9s") == Every(timedelta(seconds=1))
    assert parse_schedule("@every 10ms") == Every(timedelta(seconds=1))
    start = datetime(2026, 1, 1, 0, 0, 0, 999, tzinfo=UTC)
    assert parse_schedule("@every 1h").next(start) == datetime(2026, 1, 1, 1, tzinfo=UTC)


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    ends = st.tuples(number, number).map(lambda two: f"{min(two)}-{max(two)}")
    step = st.tuples(st.one_of(st.just("*"), ends, number.map(str)), st.integers(1, 40)).map(
        lambda two: f"{two[0]}/{two[1]}"
    )
    part = st.one_of(st.just("*"), number.map(str), ends, step)
    return st.lists(part, min_size=1, max_size=3).map(",".join)


schedules = st.tuples(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)).map(" ".join)
starts = st.datetimes(datetime(2024, 1, 1), datetime(2027, 12, 31)).map(lambda one: one.replace(tzinfo=UTC))


@given(schedules, starts, st.sampled_from(["UTC", NEW_YORK, "Asia/Kathmandu", "Australia/Lord_Howe"]))
def test_the_next_moment_is_the_first_minute_whose_wall_clock_fits(text: str, after: datetime, zone: str) -> None:
    schedule = parse_schedule(text, time_zone(zone))
    assert isinstance(schedule, Fields)

    def fits(moment: datetime) -> bool:
        wall = moment.astimezone(schedule.zone)
        number, name = wall.day in schedule.days, wall.isoweekday() % 7 in schedule.weekdays
        day = (number and name) if schedule.any_day else (number or name)
        return wall.minute in schedule.minutes and wall.hour in schedule.hours and wall.month in schedule.months and day

    found = schedule.next(after)
    minute, end = after.replace(second=0, microsecond=0) + timedelta(minutes=1), after + 2 * DAY
    first = None
    while minute < end and first is None:
        first = minute if fits(minute) else None
        minute += timedelta(minutes=1)
    if first is not None:
        assert found == first
    elif found is not None:
        assert found >= end.replace(second=0, microsecond=0)
        assert fits(found)


@given(st.text(alphabet="0123456789*/,-?@ abcdefghijklmnopqrstuvwxyz=TZ\t", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        schedule = parse_schedule(text)
    except BadSchedule:
        return
    start = datetime(2026, 1, 1, tzinfo=UTC)
    following = schedule.next(start)
    assert following is None or following > start
