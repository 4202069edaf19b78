"""What differs from run to run, replaced by names that do not.

uid -> U1, U2, ... in order of appearance; the resourceVersion of an object -> R1, R2, ... in order of size; that of a
list or a bookmark -> `>=R2` (the newest object of the case that it must include); times near now -> T, with fractions
T.micro; generated name suffixes -> G1, ...; ages in table cells -> AGE; allocated node ports and service addresses ->
P1, IP1; descriptions of columns -> WORDS; tokens -> JWT; digests and hashes -> H; continue tokens -> what they
say; the case's namespace and API group -> $NS, $GROUP. Entries of managedFields are sorted without their time, or left
out where a family does not look at them; managers in conflict are sorted.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import json
import re
from collections.abc import Generator
from typing import Any

__all__ = ["mask"]

UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(?:Z|[+-]\d\d:\d\d)")
JWT = re.compile(r"eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+")
AGED = re.compile(r"^(\d+[smhdy])+$|(?<=\()(\d+[smhdy])+(?= ago\)$)")
ADDRESS = re.compile(r"\b10\.0\.0\.\d+\b")
SERVER = re.compile(r"\b(127\.0\.0\.1|10\.255\.255\.1):\d+")
ALWAYS = (
    (re.compile(r"X509SHA256=[0-9a-f]{64}"), "X509SHA256=H"),
    (re.compile(r"selfType\d+"), "selfType"),
    (SERVER, "SERVER:PORT"),
    (re.compile(r"(Too large resource version: \d+, current: )\d+"), r"\1N"),
    (re.compile(r"(too old resource version: \d+ )\(\d+\)"), r"\1(N)"),
)
REVISION_IN_TEXT = re.compile(r'(record \(|"resourceVersion\\*":\\*")(\d+)')
MANAGER = re.compile(r"\n(?=conflicts? with )")
GENERATED = re.compile(r'"generateName": "([^"]+)"')
SUFFIX = "[bcdfghjklmnpqrstvwxz2456789]{5}"
NEAR = datetime.timedelta(days=1)
PORT_KEYS = ("nodePort", "healthCheckNodePort")


def mask(
    records: list[dict[str, Any]],
    *,
    namespace: str,
    group: str,
    given: str,
    keep_managed_fields: bool,
    any_order: bool = False,
) -> list[dict[str, Any]]:
    """The records of one case with everything accidental replaced, without the quiet ones.

    `given` is the text of the case's requests: what stands there is not accidental. With `any_order` the causes of a
    refusal are sorted: a real server walks the properties of a schema in an order that changes from run to run.
    """
    bodies = [body for record in records for body in _bodies(record)]
    for body in bodies:
        _managed_fields(body, keep_managed_fields)
        _sort_causes(body, any_order)
    masker = _Masker(bodies, namespace, group, given)
    return [masker.replace(record) for record in records if not record.get("quiet")]


def _bodies(record: dict[str, Any]) -> list[Any]:
    return [event.get("object", event) for event in record["events"]] if "events" in record else [record.get("body")]


def _managed_fields(value: Any, keep: bool) -> None:
    for metadata in _all_metadata(value):
        entries = metadata.get("managedFields")
        if entries is None:
            continue
        if not keep:
            del metadata["managedFields"]
            continue
        entries.sort(
            key=lambda entry: [str(entry.get(k)) for k in ("operation", "manager", "apiVersion", "subresource")]
        )


def _sort_causes(body: Any, any_order: bool) -> None:
    """Managers in conflict come in any order always, other causes only where the family says so."""
    if not isinstance(body, dict) or body.get("kind") != "Status" or not (body.get("details") or {}).get("causes"):
        return
    causes, conflict = body["details"]["causes"], body["message"].startswith("Apply failed with ")
    if not any_order and not conflict:
        return
    causes.sort(key=lambda cause: [str(cause.get(key)) for key in ("field", "message")])
    if conflict:
        head, _, rest = body["message"].partition(": ")
        body["message"] = f"{head}: {chr(10).join(sorted(MANAGER.split(rest)))}"
        return
    head, bracket, rest = body["message"].partition(" is invalid: [")
    pieces = [f"{cause.get('field')}: {cause['message']}" for cause in causes]
    if bracket and len(rest) == len(", ".join(pieces)) + 1 and all(piece in rest for piece in pieces):
        body["message"] = f"{head}{bracket}{', '.join(pieces)}]"


def _all_metadata(value: Any) -> Generator[dict[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "metadata" and isinstance(inner, dict):
                yield inner
            yield from _all_metadata(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _all_metadata(inner)


def _objects(value: Any) -> Generator[dict[str, Any]]:
    """Everything with metadata that is an object, not a list or a table."""
    if isinstance(value, dict):
        metadata = value.get("metadata")
        if isinstance(metadata, dict) and not _is_collection(value) and "name" in metadata:
            yield value
        for inner in value.values():
            yield from _objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _objects(inner)


def _is_collection(value: dict[str, Any]) -> bool:
    return "items" in value or "rows" in value


class _Masker:
    def __init__(self, bodies: list[Any], namespace: str, group: str, given: str) -> None:
        self._given = given
        self._names: dict[str, dict[str, str]] = {}
        self._fixed = [(group, "$GROUP"), (namespace, "$NS")]
        bases = sorted({"kube-api-access-", *GENERATED.findall(given)}, key=len, reverse=True)
        self._generated = re.compile("|".join(f"({re.escape(base)}){SUFFIX}" for base in bases))
        self._now = datetime.datetime.now(datetime.UTC)
        versions: set[int] = set()
        for body in bodies:
            for found in _objects(body):
                self._learn(found["metadata"], versions)
        self._ranks = {number: f"R{rank}" for rank, number in enumerate(sorted(versions), 1)}
        for body in bodies:
            self._name_all(body)

    def _learn(self, metadata: dict[str, Any], versions: set[int]) -> None:
        version = str(metadata.get("resourceVersion", ""))
        if version.isdigit():
            versions.add(int(version))

    def _name(self, letter: str, value: str) -> str:
        names = self._names.setdefault(letter, {})
        return names.setdefault(value, f"{letter}{len(names) + 1}")

    def _name_all(self, value: Any) -> None:
        """Number uids and addresses in an order that does not depend on the order of keys."""
        if isinstance(value, dict):
            for key in sorted(value):
                self._text(key)
                self._name_all(value[key])
        elif isinstance(value, list):
            for inner in value:
                self._name_all(inner)
        elif isinstance(value, str):
            self._text(value)

    def replace(self, value: Any) -> Any:
        """The value with everything in it replaced."""
        if isinstance(value, dict):
            result = {self._text(key): self._replace_at(key, inner) for key, inner in value.items()}
            if _is_collection(value) or value.get("type") == "BOOKMARK":
                self._collection(value, result)
            return result
        if isinstance(value, list):
            return [self.replace(inner) for inner in value]
        return self._text(value) if isinstance(value, str) else value

    def _replace_at(self, key: str, value: Any) -> Any:
        if key == "resourceVersion" and isinstance(value, str) and value.isdigit():
            return self._ranks.get(int(value), value)
        if key == "storageVersionHash":
            return "H"
        if key in PORT_KEYS and isinstance(value, int) and str(value) not in self._given:
            return self._name("P", str(value))
        if key == "continue" and isinstance(value, str) and value:
            return self._continue(value)
        if key == "columnDefinitions" and isinstance(value, list):
            return [self._column(column) for column in value]
        if key == "cells" and isinstance(value, list):
            return [
                AGED.sub("AGE", cell) if isinstance(cell, str) and AGED.search(cell) else self.replace(cell)
                for cell in value
            ]
        return self.replace(value)

    def _column(self, column: dict[str, Any]) -> dict[str, Any]:
        """Whether a column has a description; its words only where the case's author wrote them."""
        words = column.get("description")
        return self.replace(column) | ({"description": "WORDS"} if words and words not in self._given else {})  # type: ignore[no-any-return]

    def _collection(self, value: dict[str, Any], result: dict[str, Any]) -> None:
        """Lists, tables and bookmarks: their version only says what they include."""
        inner, masked = (value["object"], result["object"]) if value.get("type") == "BOOKMARK" else (value, result)
        version = str((inner.get("metadata") or {}).get("resourceVersion", ""))
        if version.isdigit():
            masked["metadata"]["resourceVersion"] = self._at_least(int(version))

    def _at_least(self, version: int) -> str:
        included = [number for number in self._ranks if number <= version]
        return f">={self._ranks[max(included)]}" if included else ">=R0"

    def _continue(self, token: str) -> Any:
        try:
            said = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        except (binascii.Error, ValueError):
            return token
        if isinstance(said.get("rv"), int) and said["rv"] > 0:
            said["rv"] = self._at_least(said["rv"])
        return self.replace(said)

    def _text(self, text: str) -> str:
        for old, new in self._fixed:
            text = text.replace(old, new)
        text = JWT.sub("JWT", text)
        text = UID.sub(lambda found: found[0] if found[0] in self._given else self._name("U", found[0]), text)
        text = TIME.sub(self._time, text)
        text = ADDRESS.sub(lambda found: found[0] if found[0] in self._given else self._name("IP", found[0]), text)
        text = self._generated.sub(self._generated_name, text)
        for pattern, replacement in ALWAYS:
            text = pattern.sub(replacement, text)
        return REVISION_IN_TEXT.sub(self._revision, text)

    def _generated_name(self, found: re.Match[str]) -> str:
        return f"{next(base for base in found.groups() if base)}{self._name('G', found[0])}"

    def _revision(self, found: re.Match[str]) -> str:
        return f"{found[1]}{self._ranks.get(int(found[2]), found[2])}"

    def _time(self, found: re.Match[str]) -> str:
        try:
            time = datetime.datetime.fromisoformat(found[0])
        except ValueError:
            return found[0]
        if found[0] in self._given or abs(time - self._now) > NEAR:
            return found[0]
        return "T.micro" if found[1] else "T"
