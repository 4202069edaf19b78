"""The rules of the containers of a Pod."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from flyball.api.fielderrors import FieldError
from flyball.api.quantity import Quantity
from flyball.controlplane.apiserver.rules.common import (
    Errors,
    Object,
    at_least,
    config_key,
    items,
    label_name,
    name_reference,
    one_of,
    port_name,
    port_number,
    port_or_name,
    quantities,
)

__all__ = ["containers", "resources"]

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PULL: Final = ("Always", "IfNotPresent", "Never")
_ENV_NAME: Final = re.compile(r"[ -<>-~]+")
_ENV_WORDS: Final = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOKS: Final = ("exec", "httpGet", "tcpSocket", "sleep")
_OVERCOMMITTED: Final = ("cpu", "memory", "ephemeral-storage")


def containers(spec: Mapping[str, Any], path: str, volumes: frozenset[str]) -> Errors:
    """Judge the containers of a Pod: those that run, those before them, those to look inside."""
    names: set[str] = set()
    main = items(spec, "containers")
    if not main:
        yield FieldError.required(f"{path}.containers")
    for place, one in enumerate(main):
        yield from _container(one, f"{path}.containers[{place}]", volumes, names)
        yield from _running(one, f"{path}.containers[{place}]")
    for place, one in enumerate(items(spec, "initContainers")):
        where = f"{path}.initContainers[{place}]"
        yield from _container(one, where, volumes, names)
        if one.get("restartPolicy") == "Always":
            yield from _running(one, where)
        else:
            yield from _starting(one, where)
    for place, one in enumerate(items(spec, "ephemeralContainers")):
        yield from _container(one, f"{path}.ephemeralContainers[{place}]", volumes, names)


def _container(one: Object, path: str, volumes: frozenset[str], names: set[str]) -> Errors:
    name = one.get("name") or ""
    yield from label_name(name, f"{path}.name")
    if name and name in names:
        yield FieldError.duplicate(f"{path}.name", name)
    names.add(name)
    image = one.get("image") or ""
    if not image:
        yield FieldError.required(f"{path}.image")
    elif image != image.strip():
        yield FieldError.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    yield from _ports(items(one, "ports"), f"{path}.ports")
    yield from _environment(items(one, "env"), f"{path}.env")
    yield from _environment_from(items(one, "envFrom"), f"{path}.envFrom")
    yield from _mounts(items(one, "volumeMounts"), f"{path}.volumeMounts", volumes)
    yield from one_of(one.get("imagePullPolicy"), f"{path}.imagePullPolicy", _PULL)
    yield from resources(one.get("resources") or {}, f"{path}.resources")
    yield from one_of(
        one.get("terminationMessagePolicy"),
        f"{path}.terminationMessagePolicy",
        ("FallbackToLogsOnError", "File"),
        required=False,
    )


def _running(one: Object, path: str) -> Errors:
    for name, hook in (one.get("lifecycle") or {}).items():
        if name in ("postStart", "preStop") and hook is not None:
            yield from _handler(hook, f"{path}.lifecycle.{name}", _HOOKS)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = one.get(name)
        if probe is not None:
            yield from _probe(probe, f"{path}.{name}", once=name != "readinessProbe")


def _starting(one: Object, path: str) -> Errors:
    for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
        if one.get(name) is not None:
            told = "may not be set for init containers without restartPolicy=Always"
            yield FieldError.forbidden(f"{path}.{name}", told)


def _ports(ports: list[Object], path: str) -> Errors:
    names: set[str] = set()
    for place, port in enumerate(ports):
        where, name = f"{path}[{place}]", port.get("name")
        if name:
            refused = list(port_name(name, f"{where}.name"))
            yield from refused
            if not refused and name in names:
                yield FieldError.duplicate(f"{where}.name", name)
            names.add(name)
        if not port.get("containerPort"):
            yield FieldError.required(f"{where}.containerPort")
        else:
            yield from port_number(port["containerPort"], f"{where}.containerPort")
        if port.get("hostPort"):
            yield from port_number(port["hostPort"], f"{where}.hostPort")
        yield from one_of(port.get("protocol"), f"{where}.protocol", _PROTOCOLS)


def _environment(env: list[Object], path: str) -> Errors:
    for place, one in enumerate(env):
        where, name = f"{path}[{place}]", one.get("name") or ""
        if not name:
            yield FieldError.required(f"{where}.name")
        elif not _ENV_NAME.fullmatch(name):
            yield FieldError.invalid(f"{where}.name", name, _ENV_WORDS)
        source = one.get("valueFrom")
        if source is not None:
            yield from _env_source(source, one, f"{where}.valueFrom")


def _env_source(source: Object, one: Object, path: str) -> Errors:
    given = [name for name, value in source.items() if value is not None]
    if not given:
        told = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef`, or `fileKeyRef`"
        yield FieldError.invalid(path, "", told)
    if len(given) > 1:
        yield FieldError.invalid(path, "", "may not have more than one field specified at a time")
    if given and one.get("value"):
        yield FieldError.invalid(path, "", "may not be specified when `value` is not empty")
    for name in ("configMapKeyRef", "secretKeyRef"):
        reference = source.get(name)
        if reference is not None:
            yield from name_reference(reference.get("name"), f"{path}.{name}.name")
            if not reference.get("key"):
                yield FieldError.required(f"{path}.{name}.key")
            else:
                yield from config_key(reference["key"], f"{path}.{name}.key")
    field = source.get("fieldRef")
    if field is not None and not field.get("fieldPath"):
        yield FieldError.required(f"{path}.fieldRef.fieldPath")


def _environment_from(sources: list[Object], path: str) -> Errors:
    for place, one in enumerate(sources):
        where = f"{path}[{place}]"
        given = [name for name in ("configMapRef", "secretRef") if one.get(name) is not None]
        if not given:
            yield FieldError.invalid(where, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield FieldError.invalid(where, "", "may not have more than one field specified at a time")
        for name in given:
            yield from name_reference(one[name].get("name"), f"{where}.{name}.name")


def _mounts(mounts: list[Object], path: str, volumes: frozenset[str]) -> Errors:
    taken: set[str] = set()
    for place, mount in enumerate(mounts):
        where, name, target = f"{path}[{place}]", mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield FieldError.required(f"{where}.name")
        if name not in volumes:
            yield FieldError.not_found(f"{where}.name", name)
        if not target:
            yield FieldError.required(f"{where}.mountPath")
        elif target in taken:
            yield FieldError.invalid(f"{where}.mountPath", target, "must be unique")
        taken.add(target)
        if ".." in str(mount.get("subPath") or "").split("/"):
            yield FieldError.invalid(f"{where}.subPath", mount["subPath"], "must not contain '..'")
        elif str(mount.get("subPath") or "").startswith("/"):
            yield FieldError.invalid(f"{where}.subPath", mount["subPath"], "must be a relative path")


def _handler(handler: Object, path: str, known: tuple[str, ...]) -> Errors:
    given = [name for name in known if handler.get(name) is not None]
    for name in given[1:]:
        yield FieldError.forbidden(f"{path}.{name}", "may not specify more than 1 handler type")
    for name in given[:1]:
        action, where = handler[name], f"{path}.{name}"
        if name == "exec" and not action.get("command"):
            yield FieldError.required(f"{where}.command")
        if name == "httpGet":
            if not action.get("path"):
                yield FieldError.required(f"{where}.path")
            yield from port_or_name(action.get("port"), f"{where}.port")
            yield from one_of(action.get("scheme"), f"{where}.scheme", ("HTTP", "HTTPS"))
        if name == "tcpSocket":
            yield from port_or_name(action.get("port"), f"{where}.port")
        if name == "grpc":
            yield from port_number(action.get("port", 0), f"{where}.port")
    if not given:
        yield FieldError.required(path, "must specify a handler type")


def _probe(probe: Object, path: str, *, once: bool) -> Errors:
    yield from _handler(probe, path, _HANDLERS)
    for name in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        yield from at_least(probe.get(name), f"{path}.{name}")
    if once and probe.get("successThreshold") not in (None, 1):
        yield FieldError.invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def resources(wanted: Object, path: str) -> Errors:
    """Judge what is asked for against its limits."""
    limits: Mapping[str, Any] = wanted.get("limits") or {}
    requests: Mapping[str, Any] = wanted.get("requests") or {}
    yield from quantities(limits, f"{path}.limits")
    yield from quantities(requests, f"{path}.requests")
    for name, amount in sorted(requests.items()):
        limit = limits.get(name)
        if limit is None:
            if name.startswith("hugepages-") or ("/" in name and not name.startswith("kubernetes.io/")):
                told = "Limit must be set for non overcommitable resources"
                yield FieldError.required(f"{path}.limits", told)
            continue
        if name in _OVERCOMMITTED and Quantity(str(amount)).value > Quantity(str(limit)).value:
            told = f"must be less than or equal to {name} limit of {limit}"
            yield FieldError.invalid(f"{path}.requests", str(amount), told)
        elif name not in _OVERCOMMITTED and Quantity(str(amount)).value != Quantity(str(limit)).value:
            yield FieldError.invalid(f"{path}.requests", str(amount), f"must be equal to {name} limit of {limit}")
