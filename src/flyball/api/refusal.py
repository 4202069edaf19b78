"""Classes that cannot become a CRD are refused when they are made, with the path of the field and the remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flyball.errors import FlyballError

if TYPE_CHECKING:
    from flyball.api.resource import Resource

__all__ = ["SchemaError", "check_kind"]


class SchemaError(FlyballError, TypeError):
    """A class says something that no CustomResourceDefinition can hold."""

    def __init__(self, path: str, cause: str, remedy: str) -> None:
        """`path` is that of the field, from the class: `Shell.spec.boxes[].size`."""
        super().__init__(f"{path}: {cause}; {remedy}")
        self.path = path


def check_kind(cls: type[Resource]) -> None:
    """Raise `SchemaError` for a kind that no server would take.

    A class that names classes which are defined further below cannot be looked into yet; it is checked when its CRD is
    made.
    """
    from flyball.api.crd import version_of
    from flyball.api.kind_names import check_names

    check_names(cls)
    try:
        version_of(cls, whole=False)
    except NameError:
        return
