"""Values that Kubernetes writes as text: quantities, durations, times, and "an int or a string".

How they travel (measured, 0.22 of msgspec): a type of ours costs 0.1 us more per value to decode than plain text, and a
Pod holds a dozen of them that nobody looks at. So there are two spellings:

- `Quantity`, `Duration` as the type of a field of your own: always the real value, decoded when the object is.
- `QuantityLike` for the built-in kinds: read as the text (or number) that the server sent; `Quantity(text)` when it is
  looked at. Text and `Quantity` may both be written.

`MicroTime` and `datetime` (metav1.Time) are both datetimes; `flyball.api.codec` writes the former with six decimals and
the latter with whole seconds.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from flyball.api.duration import Duration
from flyball.api.quantity import Quantity

__all__ = ["Duration", "Int32", "Int64", "IntOrString", "Micro", "MicroTime", "Quantity", "QuantityLike"]

IntOrString = int | str
"""A port or a percentage: `80`, `"http"`, `"25%"`."""

if TYPE_CHECKING:
    QuantityLike = Quantity | str | int | float
else:
    QuantityLike = str | int | float


class Micro:
    """Marks a datetime that is written with microseconds."""


MicroTime = Annotated[datetime, Micro]
"""metav1.MicroTime: a datetime written with exactly six decimals."""

from flyball.api.markers import Format  # noqa: E402 - below the types that markers never need

Int32 = Annotated[int, Format("int32")]
Int64 = Annotated[int, Format("int64")]


def dec_hook(kind: type[Any], value: Any) -> Any:
    """For msgspec: make one of our values from what JSON holds."""
    if kind is Quantity:
        return Quantity(value)
    if kind is Duration:
        return Duration(value)
    raise NotImplementedError(f"no way to read a {kind.__name__} from JSON")


def enc_hook(value: Any) -> Any:
    """For msgspec: the JSON form of one of our values."""
    if isinstance(value, (Quantity, Duration)):
        return str(value)
    raise NotImplementedError(f"no way to write a {type(value).__name__} as JSON")
