"""Tables: objects as rows of cells, as kubectl prints them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from flyball.api.fielderrors import FieldError
from flyball.controlplane.apiserver.kinds import Kind
from flyball.controlplane.apiserver.printing.cells import Column
from flyball.controlplane.apiserver.printing.columns import SCALE, columns_of, row_conditions
from flyball.controlplane.apiserver.render import encode, metadata_only, object_bytes, parse
from flyball.controlplane.apiserver.status import bad_request
from flyball.controlplane.apiserver.store import Entry

__all__ = ["scale_table", "table_bytes"]

Object = dict[str, Any]


def table_bytes(
    kind: Kind,
    entries: Sequence[Entry],
    metadata: Object,
    now: datetime,
    include: str = "",
    version: str = "v1",
    columns: bool = True,
) -> bytes:
    """Write entries as a Table; `include` says what of the object each row carries."""
    _check_include(include)
    of_kind = columns_of(kind)
    rows = [_row(kind, entry, of_kind, now, include, version) for entry in entries]
    return _table(of_kind if columns else (), rows, metadata, version)


def scale_table(scale: Object, now: datetime, include: str, version: str) -> bytes:
    """Write a Scale as a Table of one row."""
    _check_include(include)
    carried: Any = None
    if include == "Object":
        carried = scale
    elif include != "None":
        carried = {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"meta.k8s.io/{version}",
            "metadata": scale["metadata"],
        }
    row = {"cells": [column.cell(scale, now) for column in SCALE], "object": carried}
    return _table(SCALE, [row], {"resourceVersion": scale["metadata"]["resourceVersion"]}, version)


def _check_include(include: str) -> None:
    if include not in ("", "None", "Metadata", "Object"):
        words = "must be 'Metadata', 'Object', 'None', or empty"
        raise bad_request(
            f"Unable to convert to Table as requested: {FieldError.invalid('includeObject', include, words)}"
        )


def _table(columns: Sequence[Column], rows: list[Object], metadata: Object, version: str) -> bytes:
    head = {"kind": "Table", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}
    return encode({**head, "columnDefinitions": [column.definition() for column in columns] or None, "rows": rows})


def _row(kind: Kind, entry: Entry, columns: Sequence[Column], now: datetime, include: str, version: str) -> Object:
    obj = parse(kind, entry)
    carried: Any = None
    if include == "Object":
        carried = msgspec.Raw(object_bytes(kind, entry))
    elif include != "None":
        carried = msgspec.Raw(metadata_only(entry, version))
    row: Object = {"cells": [column.cell(obj, now) for column in columns]}
    conditions = row_conditions(kind, obj)
    if conditions:
        row["conditions"] = conditions
    return {**row, "object": carried}
