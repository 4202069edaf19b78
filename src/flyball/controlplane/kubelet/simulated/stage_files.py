"""Stages in YAML, in the manner of kwok's.

    apiVersion: simulate.flyball.dev/v1
    kind: Stage
    metadata:
      name: crashes-in-the-end
    spec:
      selector:
        matchLabels: {app: flaky}
        matchExpressions:
        - {key: .status.phase, operator: In, values: [Running]}
      delay: {duration: 30s, jitter: 10s}
      weight: 1
      next:
        containers:
        - {name: main, state: terminated, exitCode: 137, reason: OOMKilled}
        log: the last words
        event: {type: Warning, reason: Crashed, message: 'it crashed'}

`next` has `containers` (without a name: all of them), `status` (a merge patch that comes on top; `$(now)`, `$(podIP)`,
`$(name)` and `$(namespace)` stand for what they say), `annotations`, `log`, `event` or `events`, and `delete: true`.
Times may also be written as kwok does it: `durationMilliseconds`, `jitterDurationMilliseconds`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml

from flyball.api import Duration
from flyball.controlplane.kubelet.simulated.stages import Act, Match, Stage
from flyball.controlplane.kubelet.simulated.state import SimulatedPod
from flyball.errors import ConfigError

__all__ = ["read_stages", "stages_of"]

API_VERSION = "simulate.flyball.dev/v1"


class _Part(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    pass


class _Expression(_Part, frozen=True):
    key: str
    operator: str
    values: list[str] = []


class _Selector(_Part, frozen=True):
    match_labels: dict[str, str] = {}
    match_annotations: dict[str, str] = {}
    match_expressions: list[_Expression] = []


class _Delay(_Part, frozen=True):
    duration: str | None = None
    jitter: str | None = None
    duration_milliseconds: int = 0
    jitter_duration_milliseconds: int = 0


class _Container(_Part, frozen=True):
    name: str = ""
    state: Literal["running", "waiting", "terminated"] | None = None
    ready: bool | None = None
    exit_code: Annotated[int, msgspec.Meta(ge=0, le=255)] = 0
    reason: str = ""
    message: str = ""


class _Event(_Part, frozen=True):
    reason: str
    message: str
    type: Literal["Normal", "Warning"] = "Normal"


class _Next(_Part, frozen=True):
    containers: list[_Container] = []
    status: dict[str, Any] = {}
    annotations: dict[str, str] = {}
    log: str = ""
    event: _Event | None = None
    events: list[_Event] = []
    delete: bool = False


class _Spec(_Part, frozen=True):
    next: _Next
    selector: _Selector = _Selector()
    delay: _Delay | str = _Delay()
    weight: int = 0


class _Metadata(msgspec.Struct, frozen=True):
    name: str


class _Document(_Part, frozen=True):
    api_version: str
    kind: str
    metadata: _Metadata
    spec: _Spec


def read_stages(place: Path) -> list[Stage]:
    """Read a file, or every YAML file of a folder, by name. Raises ConfigError."""
    if not place.exists():
        raise ConfigError(f"{place}: no such file or folder; name one with stages")
    files = [place] if place.is_file() else sorted(one for one in place.iterdir() if one.suffix in (".yaml", ".yml"))
    found: list[Stage] = []
    for file in files:
        try:
            found += stages_of(file.read_text(encoding="utf-8"))
        except ConfigError as error:
            raise ConfigError(f"{file}: {error}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: {error}") from None
    return found


def stages_of(text: str) -> list[Stage]:
    """Read the stages in a YAML text. Raises ConfigError."""
    try:
        documents = [one for one in yaml.safe_load_all(text) if one is not None]
    except yaml.YAMLError as error:
        raise ConfigError(f"this is no YAML: {' '.join(str(error).split())}") from None
    return [_stage(one) for one in documents]


def _stage(document: Any) -> Stage:
    named: Any = document.get("metadata") if isinstance(document, dict) else None
    name = named.get("name") if isinstance(named, dict) else None
    try:
        found = msgspec.convert(document, _Document)
    except msgspec.ValidationError as error:
        raise ConfigError(f"stage {name or '(without a name)'}: {error}") from None
    if (found.api_version, found.kind) != (API_VERSION, "Stage"):
        raise ConfigError(f"{found.kind} {found.metadata.name} of {found.api_version} is no Stage of {API_VERSION}")
    spec, selector = found.spec, found.spec.selector
    delay = spec.delay if isinstance(spec.delay, _Delay) else _Delay(duration=spec.delay)
    return Stage(
        found.metadata.name,
        _act(spec.next),
        selector.match_labels,
        selector.match_annotations,
        [Match(one.key, one.operator, one.values) for one in selector.match_expressions],
        _seconds(found.metadata.name, delay.duration, delay.duration_milliseconds),
        _seconds(found.metadata.name, delay.jitter, delay.jitter_duration_milliseconds),
        spec.weight,
    )


def _seconds(stage: str, text: str | None, milliseconds: int) -> float:
    try:
        return Duration(text).seconds if text else milliseconds / 1000
    except ValueError as error:
        raise ConfigError(f"stage {stage}: {error}") from None


def _act(next_: _Next) -> Act:
    def act(pod: SimulatedPod) -> None:
        pod.accept()
        for one in next_.containers:
            for name in [one.name] if one.name else [each.name for each in pod.containers]:
                _move(pod, name, one)
        named = {one.name for one in next_.containers if one.name}
        for each in pod.containers:
            if each.name in named or not named:
                pod.write(each.name, next_.log)
        pod.overrides |= _filled(next_.status, _values(pod))
        pod.annotations |= next_.annotations
        for event in (*next_.events, *([next_.event] if next_.event is not None else [])):
            pod.say(event.type, event.reason, event.message)
        if next_.delete:
            pod.let_go()

    return act


def _move(pod: SimulatedPod, name: str, wanted: _Container) -> None:
    try:
        pod.container(name)
    except KeyError:
        return  # a stage may be about Pods of several shapes
    match wanted.state:
        case "running":
            pod.start(name, ready=wanted.ready is not False)
        case "waiting":
            pod.wait(name, wanted.reason or "ContainerCreating", wanted.message)
        case "terminated":
            pod.end(name, wanted.exit_code, reason=wanted.reason, message=wanted.message)
        case None:
            if wanted.ready is not None:
                pod.set_ready(name, wanted.ready)


def _values(pod: SimulatedPod) -> dict[str, str]:
    return {
        "$(now)": pod.moment,
        "$(podIP)": str(pod.status.get("podIP") or ""),
        "$(name)": pod.name,
        "$(namespace)": pod.namespace,
    }


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    """The same value with names replaced by what they stand for, in every text."""
    if isinstance(value, str):
        for name, text in values.items():
            value = value.replace(name, text)
        return value
    if isinstance(value, Mapping):
        return {name: _filled(below, values) for name, below in value.items()}
    if isinstance(value, Sequence):
        return [_filled(below, values) for below in value]
    return value
