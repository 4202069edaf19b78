"""Times are written as Kubernetes writes them, wherever they are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from flyball.api import MicroTime, Model, ObjectMeta, encode
from flyball.api.times import time_text
from flyball.k8s.coordination.v1 import Lease, LeaseSpec

WHOLE = datetime(2026, 1, 2, 3, 4, 5, 0, UTC)
FINE = WHOLE.replace(microsecond=120)


class Deep(Model):
    at: datetime | None = None
    tick: MicroTime | None = None
    more: list[Deep] | None = None
    by_name: dict[str, MicroTime] | None = None
    days: list[datetime] | None = None


def test_whole_seconds_and_six_decimals() -> None:
    assert encode(ObjectMeta(creation_timestamp=FINE)) == b'{"creationTimestamp":"2026-01-02T03:04:05Z"}'
    lease = encode(Lease.new("a", spec=LeaseSpec(renew_time=WHOLE, acquire_time=FINE)))
    assert b'"renewTime":"2026-01-02T03:04:05.000000Z"' in lease
    assert b'"acquireTime":"2026-01-02T03:04:05.000120Z"' in lease


def test_everywhere_also_in_types_that_contain_themselves() -> None:
    deep = Deep(more=[Deep(at=WHOLE), Deep(more=[Deep(tick=WHOLE)])], by_name={"a": FINE, "b": WHOLE}, days=[FINE])
    assert encode(deep) == (
        b'{"more":[{"at":"2026-01-02T03:04:05Z"},{"more":[{"tick":"2026-01-02T03:04:05.000000Z"}]}],'
        b'"byName":{"a":"2026-01-02T03:04:05.000120Z","b":"2026-01-02T03:04:05.000000Z"},'
        b'"days":["2026-01-02T03:04:05Z"]}'
    )


def test_other_zones_are_turned_into_utc_and_no_zone_is_refused() -> None:
    there = WHOLE.astimezone(timezone(timedelta(hours=2)))
    assert encode(Deep(at=there)) == b'{"at":"2026-01-02T03:04:05Z"}'
    assert encode([Deep(at=there)]) == b'[{"at":"2026-01-02T03:04:05Z"}]'
    with pytest.raises(ValueError, match=r"has no time zone; write datetime.now\(UTC\)"):
        encode(Deep(at=WHOLE.replace(tzinfo=None)))


def test_texts() -> None:
    assert time_text(FINE) == "2026-01-02T03:04:05Z"
    assert time_text(FINE, micro=True) == "2026-01-02T03:04:05.000120Z"
