"""How long the shells stay open."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from flyball.k8s.core.v1 import ConfigMap

from myownshell.api import GROUP, MyOwnShell

RENEW = f"{GROUP}/renew"
RENEWED_AT = f"{GROUP}/renewed-at"


@dataclass(frozen=True)
class Lifetime:
    """When it ends, whether it is over, and what the notebook must say about it."""

    notes: dict[str, str]
    renewed: bool
    """The wish to renew is not in the notebook yet."""
    end: datetime | None
    over: bool


def lifetime_of(shell: MyOwnShell, notebook: ConfigMap | None, now: datetime) -> Lifetime:
    """It begins at the creation, and anew when the annotation `renew` says something else than the notebook."""
    noted = notebook.metadata.annotations if notebook is not None else {}
    notes = {name: noted[name] for name in (RENEW, RENEWED_AT) if name in noted}
    wish = shell.metadata.annotations.get(RENEW)
    renewed = wish is not None and wish != notes.get(RENEW)
    if renewed:
        notes = {RENEW: str(wish), RENEWED_AT: now.isoformat(timespec="seconds")}
    if shell.spec.lifetime_seconds is None:
        return Lifetime(notes, renewed, None, False)
    made, renewed_at = shell.metadata.creation_timestamp, time_of(notes.get(RENEWED_AT))
    beginning = max(one for one in (made, renewed_at) if one is not None)
    end = beginning + timedelta(seconds=shell.spec.lifetime_seconds)
    return Lifetime(notes, renewed, end, now >= end)


def time_of(text: str | None) -> datetime | None:
    """What somebody may have edited: no time is as good as none."""
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
