"""In which form an answer goes out: JSON or YAML; the object itself, a Table of it, or only its metadata."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from flyball.controlplane.apiserver.status import StatusError

__all__ = ["Form", "media_type", "negotiate"]

As = Literal["", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]

_ENCODINGS: Final = ("application/json", "application/yaml")
_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_KNOWN_AS: Final = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


@dataclass(frozen=True, slots=True)
class Form:
    """What the client asked for and the server can give."""

    encoding: str = "application/json"
    as_: As = ""
    version: str = ""
    stream: bool = False
    pretty: bool = False

    @property
    def content_type(self) -> str:
        """What the answer says of itself."""
        return self.encoding


def media_type(header: str) -> str:
    """Return a Content-Type without its parameters."""
    return header.partition(";")[0].strip().lower()


@lru_cache(maxsize=512)
def negotiate(accept: str, *, table: bool = True, metadata: bool = True, streams: bool = False) -> Form:
    """Choose the form of an answer from the Accept header. Raises NotAcceptable.

    `table` and `metadata` tell whether the resource has these forms, `streams` whether it can be watched.
    """
    for clause in _clauses(accept):
        form = _form(clause, table=table, metadata=metadata)
        if form is not None:
            return form
    wanted: tuple[str, ...] = (*_ENCODINGS, _PROTOBUF)
    if any(kind in _ENCODINGS for kind, _ in _clauses(accept)):  # the encoding would do, the form does not
        raise StatusError(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(wanted)}")
    if streams:
        wanted = (*wanted, "application/json;stream=watch", f"{_PROTOBUF};stream=watch")
    told = f"406: Not Acceptable\n\nAvailable representations: {', '.join(wanted)}"
    raise StatusError(406, "NotAcceptable", told, {})


def _clauses(accept: str) -> list[tuple[str, dict[str, str]]]:
    """Read the clauses of an Accept header, the most wanted first."""
    clauses: list[tuple[float, int, str, dict[str, str]]] = []
    for place, text in enumerate((accept or "*/*").split(",")):
        kind, *rest = (part.strip() for part in text.split(";"))
        parameters: dict[str, str] = {}
        for part in rest:
            name, _, value = part.partition("=")
            parameters[name.strip().lower()] = value.strip().strip('"')
        clauses.append((-_quality(parameters.pop("q", "1")), place, kind.lower(), parameters))
    return [(kind, parameters) for quality, _, kind, parameters in sorted(clauses, key=lambda one: one[:2]) if quality]


def _quality(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 1.0


def _form(clause: tuple[str, dict[str, str]], *, table: bool, metadata: bool) -> Form | None:
    kind, parameters = clause
    encoding = "application/json" if kind in ("*/*", "application/*", "") else kind
    if encoding not in _ENCODINGS:
        return None
    pretty = parameters.get("pretty") in ("1", "true")
    stream = parameters.get("stream") == "watch"
    as_ = parameters.get("as", "")
    if not as_:
        return Form(encoding, "", "", stream, pretty)
    version = parameters.get("v", "")
    if parameters.get("g") != "meta.k8s.io" or as_ not in _KNOWN_AS or version not in ("v1", "v1beta1"):
        return None
    if not (table if as_ == "Table" else metadata):
        return None
    return Form(encoding, as_, version, stream, pretty)  # type: ignore[arg-type]
