"""What this room raises before a request is sent, or when a kind is not to be had.

Errors that the server's answer makes are in `flyball.errors`; these are about the call itself.
"""

from __future__ import annotations

from flyball.errors import FlyballError

__all__ = ["RefusedRequest", "UnknownKind", "UnregisteredKind"]


class RefusedRequest(FlyballError, ValueError):
    """The call would lose data, reach another place than it says, or cannot work; nothing was sent."""


class UnregisteredKind(FlyballError, TypeError):
    """The class stands for no kind of Kubernetes, so there is no address to send anything to; nothing was sent."""


class UnknownKind(FlyballError, LookupError):
    """The server does not serve this kind, also after its list of kinds was read again."""
