"""Credentials: what is sent now, and what is newer after a refusal."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from flyball.client.cluster_config import ClusterConfig, ExecConfig, Impersonation
from flyball.client.credentials import Identity, credentials_of
from flyball.client.exec_plugin import ExecCredential
from flyball.clock import ManualClock
from flyball.errors import CredentialError


def config(**values: object) -> ClusterConfig:
    return ClusterConfig(server="https://h", **values)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def test_nobody_in_particular() -> None:
    found = credentials_of(config(), ManualClock())

    assert await found.current() == Identity()
    assert await found.renew(Identity()) is None


async def test_what_is_written_down_stays() -> None:
    found = credentials_of(config(token="abc"), ManualClock())
    identity = await found.current()

    assert identity.headers == (("Authorization", "Bearer abc"),)
    assert await found.renew(identity) is None
    assert await found.current() is identity
    assert "abc" not in repr(identity)


async def test_a_token_goes_before_a_plugin() -> None:
    found = credentials_of(config(token="abc", exec_plugin=ExecConfig("no-such-program")), ManualClock())

    assert (await found.current()).headers == (("Authorization", "Bearer abc"),)


async def test_impersonation_goes_with_every_kind(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("abc")
    who = Impersonation("jane")

    for values in ({}, {"token": "x"}, {"token_file": tmp_path / "t"}, {"username": "u", "password": "p"}):
        identity = await credentials_of(config(impersonate=who, **values), ManualClock()).current()
        assert identity.headers[-1] == ("Impersonate-User", "jane")


@pytest.mark.capability("C12")
async def test_a_token_file_is_looked_at_once_a_second(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    clock = ManualClock()
    found = credentials_of(config(token_file=file, token="given"), clock)
    first = await found.current()

    file.write_text("second")
    assert await found.current() is first
    clock.jump(1)
    second = await found.current()
    assert second.headers == (("Authorization", "Bearer second"),)
    assert await found.renew(second) is None
    assert await found.renew(first) is second, "somebody else has looked already"


async def test_a_token_file_that_vanishes_for_a_while(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    clock = ManualClock()
    found = credentials_of(config(token_file=file), clock)
    first = await found.current()

    file.unlink()
    for _ in range(3):
        clock.jump(1)
        assert await found.current() is first

    assert caplog.messages == [f"token file {file}: no such file; keeping what was read before"]
    file.write_text("two")
    clock.jump(1)
    assert (await found.current()).headers == (("Authorization", "Bearer two"),)


async def test_without_its_file_the_token_given_is_used(tmp_path: Path) -> None:
    found = credentials_of(config(token_file=tmp_path / "none", token="given"), ManualClock())

    assert (await found.current()).headers == (("Authorization", "Bearer given"),)


@pytest.mark.parametrize(
    ("content", "said"),
    [("", "the token is empty"), (" \n", "the token is empty"), ("a\nb", "characters no token has"), ("ä", "no token")],
)
async def test_a_token_file_that_holds_no_token(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "token"
    file.write_text(content)

    with pytest.raises(CredentialError, match=f"token file {file}: .*{said}"):
        await credentials_of(config(token_file=file), ManualClock()).current()


async def test_a_token_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(CredentialError, match="the configuration: the token has blanks"):
        credentials_of(config(token="a b"), ManualClock())


class Plugin:
    """Stands in for the program; notes how often it ran."""

    def __init__(self, *answers: ExecCredential) -> None:
        self.answers = answers
        self.runs = 0

    async def __call__(self, _: ExecConfig, __: ClusterConfig) -> ExecCredential:
        await asyncio.sleep(0)
        self.runs += 1
        return self.answers[min(self.runs, len(self.answers)) - 1]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def test_a_plugin_is_asked_once_until_its_credential_expires(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = Plugin(
        ExecCredential("one", expires=clock.now() + timedelta(minutes=5)),
        ExecCredential("two", b"pem", clock.now() + timedelta(minutes=10)),
    )
    monkeypatch.setattr("flyball.client.credentials.run_plugin", plugin)
    found = credentials_of(config(exec_plugin=ExecConfig("p")), clock)

    identities = await asyncio.gather(*(found.current() for _ in range(20)))
    assert plugin.runs == 1
    assert all(identity is identities[0] for identity in identities)
    clock.jump(299)
    assert await found.current() is identities[0]
    clock.jump(1)
    assert await found.current() == Identity((("Authorization", "Bearer two"),), b"pem")
    assert plugin.runs == 2


async def test_a_refused_credential_is_renewed_once_for_all(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = Plugin(ExecCredential("one"), ExecCredential("two"))
    monkeypatch.setattr("flyball.client.credentials.run_plugin", plugin)
    found = credentials_of(config(exec_plugin=ExecConfig("p")), clock)
    first = await found.current()
    clock.jump(10_000)
    assert await found.current() is first, "without expiry it lasts until the server refuses it"

    renewed = await asyncio.gather(*(found.renew(first) for _ in range(10)))

    assert plugin.runs == 2
    assert {identity.headers for identity in renewed if identity} == {(("Authorization", "Bearer two"),)}
    second = await found.current()
    assert await found.renew(second) is None, "the plugin has nothing newer"
