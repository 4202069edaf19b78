"""Who asks: client certificates, tokens, or nobody known."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from flyball.controlplane.apiserver.request import ANONYMOUS, User
from flyball.controlplane.apiserver.status import StatusError, unauthorized

__all__ = ["Authenticator", "user_of_certificate", "with_groups"]

_AUTHENTICATED = "system:authenticated"
_CREDENTIAL = "authentication.kubernetes.io/credential-id"

TokenReader = Callable[[str], User | None]


@dataclass(slots=True)
class Authenticator:
    """Knows the users. Raises Unauthorized for credentials that are wrong; without any, the user is anonymous."""

    tokens: dict[str, User] = field(default_factory=dict[str, User])
    """Static bearer tokens."""
    readers: list[TokenReader] = field(default_factory=list[TokenReader])
    """Asked in order about tokens that are not static, such as those of ServiceAccounts."""

    def authenticate(self, headers: Mapping[str, str], certificate: User | None = None) -> User:
        """Return who asks."""
        for name in headers:
            if name.startswith("impersonate-"):
                told = "impersonation is not supported by this server yet; use the credentials of the user themselves"
                raise StatusError(400, "BadRequest", told)
        if certificate is not None:
            return with_groups(certificate)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if not scheme:
            return ANONYMOUS
        if scheme.lower() != "bearer" or not token.strip():
            raise unauthorized()
        return with_groups(self._of_token(token.strip()))

    def static(self, token: str) -> User | None:
        """Return the user of a static token, if it is one."""
        for known, user in self.tokens.items():
            if hmac.compare_digest(known.encode(), token.encode(errors="replace")):
                return user
        return None

    def _of_token(self, token: str) -> User:
        user = self.static(token)
        if user is not None:
            return user
        for read in self.readers:
            found = read(token)
            if found is not None:
                return found
        raise unauthorized()


def with_groups(user: User) -> User:
    """Return a user with the group of all who are known."""
    if _AUTHENTICATED in user.groups:
        return user
    groups = (*user.groups, _AUTHENTICATED)
    return User(user.name, groups, user.uid, user.extra)


def user_of_certificate(certificate: Mapping[str, Any] | None, fingerprint: str = "") -> User | None:
    """Read the user from a client's certificate, as `ssl` shows it: the common name, and organisations as groups."""
    if not certificate:
        return None
    subject = [pair for part in certificate.get("subject", ()) for pair in part]
    name = next((value for key, value in subject if key == "commonName"), "")
    groups = tuple(value for key, value in subject if key == "organizationName")
    extra = {_CREDENTIAL: (f"X509SHA256={fingerprint}",)} if fingerprint else {}
    return User(name, groups, extra=extra) if name else None
