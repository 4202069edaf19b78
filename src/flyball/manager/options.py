"""What can be said about a process from outside: by flag, by environment, in `pyproject.toml`.

`Options` is the one list. Each field is a flag (`--health-port`), a variable (`FLYBALL_HEALTH_PORT`), a key of
`[tool.flyball]` (`health-port`, or `health_port`) and an argument of `run(...)` and `Manager(...)`. Who stands nearer
to the running process wins:

    flags > environment > arguments in code > pyproject.toml > defaults
"""

from __future__ import annotations

import dataclasses
import logging
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from flyball.client.config import in_pod
from flyball.errors import ConfigError
from flyball.manager.logs import LogFormat

__all__ = ["LEVELS", "Options", "Switch", "project_options", "resolve"]

Switch: TypeAlias = Literal["auto", "on", "off"]

log = logging.getLogger(__name__)

PREFIX: Final = "FLYBALL_"
OTHERS: Final = {"domain"}
"""Keys of `[tool.flyball]` that other verbs read."""
LEVELS: Final = ("debug", "info", "warning", "error", "critical")


def _about(words: str, *, choices: Sequence[str] = (), unit: str = "") -> dict[str, Any]:
    return {"help": words, "choices": tuple(choices), "unit": unit}


@dataclass(frozen=True, kw_only=True)
class Options:
    """Everything that can be said about a manager's process, with the defaults."""

    kubeconfig: str | None = field(default=None, metadata=_about("Kubeconfig file; default: as kubectl finds it."))
    context: str | None = field(default=None, metadata=_about("Context of the kubeconfig; default: the current one."))
    namespaces: tuple[str, ...] = field(
        default=(), metadata=_about("Namespaces to watch, separated by commas; default: all.")
    )
    leader_election: Switch = field(
        default="auto",
        metadata=_about("Elect a leader among replicas; auto: in a pod only.", choices=("auto", "on", "off")),
    )
    leader_election_name: str | None = field(
        default=None, metadata=_about("Name of the Lease; default: made of the first controller's name.")
    )
    leader_election_namespace: str | None = field(
        default=None, metadata=_about("Namespace of the Lease; default: that of the pod.")
    )
    leader_election_identity: str | None = field(
        default=None, metadata=_about("Who this replica is; default: host name and a random part.")
    )
    lease_duration: float = field(
        default=15.0, metadata=_about("After how long others take over a lease that was not renewed.", unit="s")
    )
    renew_deadline: float = field(
        default=10.0, metadata=_about("How long a leader tries to renew before it stops.", unit="s")
    )
    retry_period: float = field(default=2.0, metadata=_about("Time between two tries.", unit="s"))
    health_host: str | None = field(
        default=None, metadata=_about("Where probes are answered; default: loopback, in a pod everywhere.")
    )
    health_port: int | None = field(
        default=None, metadata=_about("Port for probes; 0: a free one, -1: none. Default: 8081, if it is free.")
    )
    metrics_host: str | None = field(
        default=None, metadata=_about("Where numbers are served; default: loopback, in a pod everywhere.")
    )
    metrics_port: int | None = field(
        default=None, metadata=_about("Port for /metrics; 0: a free one, -1: none. Default: 8080, if it is free.")
    )
    grace: float = field(
        default=30.0, metadata=_about("How long passes under way may go on after a stop was asked for.", unit="s")
    )
    qps: float | None = field(
        default=None, metadata=_about("The most requests a second to the API server; default: no limit.")
    )
    log_level: str = field(default="info", metadata=_about("The least important records to write.", choices=LEVELS))
    log_format: LogFormat = field(
        default="auto",
        metadata=_about(
            "How records are written; auto: text on a terminal, else JSON.", choices=("auto", "text", "json")
        ),
    )
    max_block: float = field(
        default=0.5, metadata=_about("Report who blocks the event loop for longer; 0: nobody.", unit="s")
    )
    memory_growth: float = field(
        default=2.0, metadata=_about("Report when the process holds so many times what it once held; 0: never.")
    )
    uvloop: Switch = field(
        default="auto", metadata=_about("Use uvloop; auto: when it is installed.", choices=("auto", "on", "off"))
    )

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        for one in fields(self):
            choices: tuple[str, ...] = one.metadata["choices"]
            value = getattr(self, one.name)
            if choices and value not in choices:
                raise ConfigError(f"option {one.name}: {value!r} is not one of {', '.join(choices)}")
            if one.metadata["unit"] == "s" and value < 0:
                raise ConfigError(f"option {one.name}: {value:g} is negative; give seconds")

    @property
    def host_for_health(self) -> str:
        """Where the server for probes listens."""
        return self.health_host or _usual_host()

    @property
    def host_for_metrics(self) -> str:
        """Where the server for numbers listens."""
        return self.metrics_host or _usual_host()


def _usual_host() -> str:
    return "0.0.0.0" if in_pod() else "127.0.0.1"  # noqa: S104 - probes and Prometheus come from outside of the pod


def resolve(
    flags: Mapping[str, Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    folder: Path | None = None,
) -> Options:
    """The options of this process; `flags` and `arguments` hold only what was given."""
    found: dict[str, Any] = {}
    layers: list[tuple[str, Mapping[str, Any]]] = [
        ("pyproject.toml", project_options(folder or Path.cwd())),
        ("argument", arguments or {}),
        ("environment", _from_environment(environ)),
        ("flag", flags or {}),
    ]
    names = {one.name: one for one in fields(Options)}
    for source, layer in layers:
        for name, value in layer.items():
            if name not in names and source == "pyproject.toml":
                if name not in OTHERS:
                    log.warning("pyproject.toml: [tool.flyball] has %r, which is no option; it has no effect", name)
                continue
            if name not in names:
                raise ConfigError(f"{source}: there is no option {name!r}; there are {', '.join(sorted(names))}")
            found[name] = _read(names[name], value, source)
    return Options(**found)


def project_options(folder: Path) -> dict[str, Any]:
    """`[tool.flyball]` of the nearest pyproject.toml, upwards from `folder`; tables in it belong to other verbs."""
    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        if file.is_file():
            try:
                found = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get("flyball", {})
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise ConfigError(f"read {file}: {error}; correct the file") from None
            return {name.replace("-", "_"): value for name, value in found.items() if not isinstance(value, dict)}
    return {}


def _from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    given = {one.name: environ.get(PREFIX + one.name.upper()) for one in fields(Options)}
    return {name: value for name, value in given.items() if value is not None}


def _read(option: dataclasses.Field[Any], value: Any, source: str) -> Any:
    """The value in the option's type; what cannot be read is an error that names it."""
    kind = str(option.type)
    try:
        if value is None:
            return None
        if kind.startswith("tuple"):
            parts = value.split(",") if isinstance(value, str) else [part for one in value for part in one.split(",")]
            return tuple(part.strip() for part in parts if part.strip())
        if option.metadata["choices"] == ("auto", "on", "off") and str(value).lower() in _SWITCHES:
            return _SWITCHES[str(value).lower()]
        if kind.startswith("float"):
            return _number(value)
        if kind.startswith("int"):
            return int(value)
        return str(value)
    except (TypeError, ValueError, AttributeError):
        raise ConfigError(f"{source}: option {option.name}: {value!r} cannot be read as {_KINDS[kind[:3]]}") from None


def _number(value: Any) -> float:
    """A number, also with a unit of time: `15`, `"15s"`, `"2m"`."""
    if isinstance(value, str) and value[-1:].isalpha():
        from flyball.api import Duration

        return Duration(value).seconds
    return float(value)


_SWITCHES: Final = {"true": "on", "yes": "on", "1": "on", "false": "off", "no": "off", "0": "off"}
_KINDS: Final = {"tup": "a list of names", "flo": "a number", "int": "a whole number", "str": "text"}
