"""Tokens of ServiceAccounts: signed for an audience and a time, and worthless when their object is gone.

A token is a JWT signed with ES256. It names the ServiceAccount and, if it is bound to one, a Pod, Secret or Node; all
of them must still be there, with the same uid, whenever the token is shown.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from flyball.controlplane.apiserver.core import Core
from flyball.controlplane.apiserver.render import encode
from flyball.controlplane.apiserver.request import Answer, Request, User
from flyball.controlplane.apiserver.status import StatusError, unauthorized
from flyball.controlplane.apiserver.store import Entry, Key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

__all__ = ["ISSUER", "Bound", "InvalidToken", "Issued", "Tokens"]

ISSUER: Final = "https://kubernetes.default.svc"
CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"

_LEEWAY: Final = timedelta(seconds=60)
"""So long after its deletion began an object still counts, and so far may clocks differ."""
_KNOWN: Final = 1024
_BOUND: Final = {"pod": "pods", "secret": "secrets", "node": "nodes"}
_SIGNATURE_HALF: Final = 32


class InvalidToken(Exception):
    """A token that proves nothing; the text says why."""


class Bound(NamedTuple):
    """An object that a token lives and dies with: the word in the claims, its name and uid."""

    word: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Issued:
    """A new token and when it ends."""

    token: str
    expires: datetime


class _Metadata(msgspec.Struct):
    deletionTimestamp: datetime | None = None  # noqa: N815 - the name in JSON


class _Deletable(msgspec.Struct):
    metadata: _Metadata


_decode_deletable: Final = msgspec.json.Decoder(_Deletable).decode


class Tokens:
    """Issues and verifies the tokens of one cluster, by the cluster's clock."""

    def __init__(
        self,
        core: Core,
        key: Callable[[], ec.EllipticCurvePrivateKey],
        *,
        issuer: str = ISSUER,
        audiences: Sequence[str] = (ISSUER,),
    ) -> None:
        """Take where ServiceAccounts are looked up; `key` gives the key once it is needed."""
        self.issuer = issuer
        self.audiences = tuple(audiences)
        self._core = core
        self._load_key = key
        self._seen: OrderedDict[str, dict[str, Any]] = OrderedDict()

    # Issuing

    def issue(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        audiences: Sequence[str] = (),
        seconds: int = 3600,
        bound: Sequence[Bound] = (),
    ) -> Issued:
        """Sign a token for a ServiceAccount."""
        now = self._core.now().replace(microsecond=0)
        account = {"name": name, "uid": uid}
        others = {one.word: {"name": one.name, "uid": one.uid} for one in bound}
        begin = int(now.timestamp())
        claims = {
            "aud": list(audiences or self.audiences),
            "exp": begin + seconds,
            "iat": begin,
            "iss": self.issuer,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": {"namespace": namespace, **dict(sorted({**others, "serviceaccount": account}.items()))},
            "nbf": begin,
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        return Issued(self._sign(claims), now + timedelta(seconds=seconds))

    def _sign(self, claims: Mapping[str, Any]) -> str:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        head = {"alg": "ES256", "kid": self.jwk["kid"]}
        signed = f"{_encoded(_json(head))}.{_encoded(_json(claims))}"
        first, second = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        signature = first.to_bytes(_SIGNATURE_HALF, "big") + second.to_bytes(_SIGNATURE_HALF, "big")
        return f"{signed}.{_encoded(signature)}"

    @cached_property
    def _key(self) -> ec.EllipticCurvePrivateKey:
        return self._load_key()

    @cached_property
    def jwk(self) -> dict[str, str]:
        """The public key as a JSON Web Key."""
        numbers = self._key.public_key().public_numbers()
        x, y = (_encoded(part.to_bytes(_SIGNATURE_HALF, "big")) for part in (numbers.x, numbers.y))
        print_ = hashlib.sha256(_json({"crv": "P-256", "kty": "EC", "x": x, "y": y})).digest()
        return {"use": "sig", "kty": "EC", "kid": _encoded(print_), "crv": "P-256", "alg": "ES256", "x": x, "y": y}

    # Verifying

    def read(self, token: str) -> User | None:
        """Return who shows a token; None where it is no token of this kind. Raises Unauthorized for an invalid one."""
        if token.count(".") != 2:
            return None
        try:
            return self.verify(token, self.audiences)[0]
        except InvalidToken:
            raise unauthorized() from None

    def verify(self, token: str, audiences: Sequence[str]) -> tuple[User, list[str]]:
        """Return who shows a token and for which of the audiences it is. Raises InvalidToken."""
        claims = self._claims(token)
        now = self._core.now()
        if claims["exp"] + 0 < now.timestamp():
            raise InvalidToken("[invalid bearer token, service account token has expired]")
        if claims["nbf"] > (now + _LEEWAY).timestamp():
            raise InvalidToken("[invalid bearer token, service account token is not valid yet]")
        meant = [audience for audience in audiences if audience in claims["aud"]]
        if not meant:
            told = f"token audiences {_quoted(claims['aud'])} is invalid for the target audiences {_quoted(audiences)}"
            raise InvalidToken(f"[invalid bearer token, {told}]")
        return self._user(claims), meant

    def _claims(self, token: str) -> dict[str, Any]:
        """Return what a token says, once its signature is verified."""
        known = self._seen.get(token)
        if known is not None:
            self._seen.move_to_end(token)
            return known
        parts = token.split(".")
        if len(parts) != 3 or not self._is_signed(parts):
            raise InvalidToken("invalid bearer token")
        claims: dict[str, Any] = json.loads(_decoded(parts[1]))
        if claims.get("iss") != self.issuer:
            raise InvalidToken("invalid bearer token")
        self._seen[token] = claims
        while len(self._seen) > _KNOWN:
            self._seen.popitem(last=False)
        return claims

    def _is_signed(self, parts: list[str]) -> bool:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

        try:
            signature = _decoded(parts[2])
            if json.loads(_decoded(parts[0])).get("alg") != "ES256" or len(signature) != 2 * _SIGNATURE_HALF:
                return False
            first, second = signature[:_SIGNATURE_HALF], signature[_SIGNATURE_HALF:]
            pair = encode_dss_signature(int.from_bytes(first, "big"), int.from_bytes(second, "big"))
            signed = f"{parts[0]}.{parts[1]}".encode()
            self._key.public_key().verify(pair, signed, ec.ECDSA(hashes.SHA256()))
        except (ValueError, AttributeError, RecursionError, InvalidSignature):
            return False
        return True

    def _user(self, claims: Mapping[str, Any]) -> User:
        about: Mapping[str, Any] = claims["kubernetes.io"]
        namespace, account = about["namespace"], about["serviceaccount"]
        self._expect("serviceaccounts", namespace, account)
        extra: dict[str, tuple[str, ...]] = {CREDENTIAL: (f"JTI={claims['jti']}",)}
        for word, resource in _BOUND.items():
            if word not in about:
                continue
            if word != "node" or "pod" not in about:  # the node of a pod may go before the pod does
                self._expect(resource, "" if word == "node" else namespace, about[word])
            if word != "secret":
                extra[f"authentication.kubernetes.io/{word}-name"] = (about[word]["name"],)
                extra[f"authentication.kubernetes.io/{word}-uid"] = (about[word]["uid"],)
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        return User(claims["sub"], groups, account["uid"], extra)

    def _expect(self, resource: str, namespace: str, named: Mapping[str, str]) -> None:
        entry = self._core.store.get(Key(resource, namespace, named["name"]))
        if entry is None or entry.uid != named["uid"] or self._is_going(entry):
            told = f"{resource} {named['name']} has been deleted or made anew since the token was issued"
            raise InvalidToken(f"[invalid bearer token, {told}]")

    def _is_going(self, entry: Entry) -> bool:
        deletion = _decode_deletable(entry.body).metadata.deletionTimestamp
        return deletion is not None and deletion.astimezone(UTC) + _LEEWAY < self._core.now()

    # What others need to verify for themselves

    def answer(self, request: Request, address: str) -> Answer | None:
        """Answer the paths of OpenID discovery; None for all others."""
        headers = {"Cache-Control": "public, max-age=3600"}
        if request.path == "/openid/v1/jwks":
            return Answer(200, encode({"keys": [self.jwk]}).rstrip(), "application/jwk-set+json", headers)
        if request.path != "/.well-known/openid-configuration":
            return None
        told = {
            "issuer": self.issuer,
            "jwks_uri": f"https://{address}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }
        return Answer(200, encode(told).rstrip(), headers=headers)


def not_there() -> StatusError:
    """Say that this server signs no tokens."""
    return StatusError(501, "NotImplemented", "this server has no key to sign tokens with", {})


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _quoted(texts: Sequence[str]) -> str:
    return "[" + " ".join(json.dumps(text) for text in texts) + "]"
