"""The numbers that are served at /metrics."""

from __future__ import annotations

import pytest
from flyball.testing import eventually

from .playing import World

pytestmark = pytest.mark.capability("S4")


async def test_attempts_runs_durations_and_what_is_active(box: World) -> None:
    async with box.operator() as manager:
        value = manager.metrics.value
        await box.create(max_retries=2, retry_backoff_seconds=5)
        await box.begin(await box.job(1))
        await box.phase("Running")
        await eventually(lambda: value("simplejob_active") == 1)
        await box.later(7)
        await box.fail(await box.job(1))
        await box.phase("Retrying")
        await box.quiet()
        assert value("simplejob_active") == 0
        assert value("simplejob_attempts_total", result="failed") == 1
        assert value("simplejob_attempt_duration_seconds") == 1
        await box.later(5)
        await box.succeed(await box.job(2))
        await box.phase("Completed")
        await box.quiet()
        assert value("simplejob_attempts_total", result="failed") == 1
        assert value("simplejob_attempts_total", result="succeeded") == 1
        assert value("simplejob_runs_total", result="succeeded") == 1
        assert value("simplejob_attempt_duration_seconds") == 2

        before = [job.metadata.uid for job in await box.jobs()]
        await box.edit(command="false", retryBackoffSeconds=0)
        for number in (1, 2, 3):
            await box.fail(await box.job(number, but=before))
        await box.phase("Failed", attempts=3)
        await box.quiet()
        assert value("simplejob_attempts_total", result="failed") == 4
        assert value("simplejob_runs_total", result="failed") == 1
        assert value("simplejob_active") == 0

    async with box.operator() as manager:
        await box.touch()
        await box.quiet()
        assert manager.metrics.value("simplejob_runs_total", result="failed") == 0, "a restart is no end of a run"
