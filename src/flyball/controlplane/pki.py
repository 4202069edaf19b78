"""The certificates and keys of a cluster: its own authority, and who may sign what. Needs `cryptography`.

An authority signs certificates of servers and of users. `Keys` is what one cluster must keep to be the same cluster
after a restart: its authority and the key that signs ServiceAccount tokens.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from flyball.controlplane.files import write_private
from flyball.errors import ConfigError

__all__ = ["SERVER_HOSTS", "CertificateAuthority", "KeyPair", "Keys", "server_context"]

SERVER_HOSTS = (
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "10.0.0.1",
)
"""The names under which clients look for an API server; the last one is the first address of the service network."""

_LIFE = datetime.timedelta(days=30)
_AUTHORITY_LIFE = datetime.timedelta(days=3650)
_SKEW = datetime.timedelta(minutes=5)
_PEM = serialization.Encoding.PEM
_PARTS = re.compile(rb"-----BEGIN [A-Z ]+-----.+?-----END [A-Z ]+-----\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes


class CertificateAuthority:
    """Signs certificates that live for a month: long enough for a test, short enough to be worthless when it leaks.

    Times are those of the machine, not of a cluster's clock: who verifies certificates asks no other.
    """

    def __init__(self, name: str = "flyball test authority", *, pair: KeyPair | None = None) -> None:
        """Make an authority, or go on as the one whose certificate and key are given."""
        if pair is not None:
            self._certificate = x509.load_pem_x509_certificate(pair.certificate)
            self._name = self._certificate.subject
            self._key = _curve_key(pair.key)
            return
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        end = datetime.datetime.now(datetime.UTC) + _AUTHORITY_LIFE
        builder = _builder(self._name, self._name, self._key.public_key(), end)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(sign_certificates=True), critical=True)
        builder = builder.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
        )
        self._certificate = builder.sign(self._key, hashes.SHA256())

    @cached_property
    def certificate(self) -> bytes:
        """The authority's own certificate, PEM."""
        return self._certificate.public_bytes(_PEM)

    @property
    def key(self) -> bytes:
        """The authority's private key, PEM."""
        return private_pem(self._key)

    def server(self, hosts: Sequence[str] = SERVER_HOSTS, name: str = "server") -> KeyPair:
        """A serving certificate for host names and addresses."""
        alternative = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        return self._sign([(NameOID.COMMON_NAME, name)], ExtendedKeyUsageOID.SERVER_AUTH, alternative, None)

    def client(self, user: str, groups: Sequence[str] = (), *, expires: datetime.datetime | None = None) -> KeyPair:
        """A certificate that authenticates a user with groups, as Kubernetes reads it (CN and O)."""
        subject = [(NameOID.COMMON_NAME, user), *((NameOID.ORGANIZATION_NAME, group) for group in groups)]
        return self._sign(subject, ExtendedKeyUsageOID.CLIENT_AUTH, None, expires)

    def _sign(
        self,
        subject: Sequence[tuple[x509.ObjectIdentifier, str]],
        purpose: x509.ObjectIdentifier,
        alternative: x509.SubjectAlternativeName | None,
        expires: datetime.datetime | None,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(kind, value) for kind, value in subject])
        builder = _builder(name, self._name, key.public_key(), expires)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(sign_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
        )
        if alternative is not None:
            builder = builder.add_extension(alternative, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return KeyPair(certificate.public_bytes(_PEM), private_pem(key))


class Keys:
    """What makes a cluster the same one after a restart: old kubeconfigs and tokens go on being valid."""

    def __init__(self, authority: CertificateAuthority, accounts: ec.EllipticCurvePrivateKey) -> None:
        """Take the authority and the key that signs ServiceAccount tokens."""
        self.authority = authority
        self.accounts = accounts

    @classmethod
    def new(cls) -> Self:
        """Make keys for a cluster that ends with its process."""
        return cls(CertificateAuthority("flyball"), ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def kept(cls, path: Path) -> Self:
        """Read the keys from a file that only its owner may read; make keys and the file where there is none."""
        if path.exists():
            return cls._read(path)
        keys = cls.new()
        pem = keys.authority.certificate + keys.authority.key + private_pem(keys.accounts)
        write_private(path, pem)
        return keys

    @classmethod
    def _read(cls, path: Path) -> Self:
        try:
            certificate, authority, accounts = _PARTS.findall(path.read_bytes())
            return cls(CertificateAuthority(pair=KeyPair(certificate, authority)), _curve_key(accounts))
        except (OSError, ValueError, TypeError) as error:
            told = f"{path}: these are no keys of a cluster ({error}); move the file away, new keys are made then"
            raise ConfigError(told) from None


def server_context(pair: KeyPair, authority: bytes) -> ssl.SSLContext:
    """A TLS context of a server that asks clients for a certificate, and serves those without one as well."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_verify_locations(cadata=authority.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    with tempfile.TemporaryDirectory(prefix="flyball-") as folder:  # OpenSSL reads files only
        path = Path(folder) / "server.pem"
        write_private(path, pair.certificate + pair.key)
        context.load_cert_chain(path)
    return context


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Write a private key as PEM."""
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def _curve_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("a key is not one of an elliptic curve")
    return key


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    expires: datetime.datetime | None = None,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    end = expires or now + _LIFE
    start = min(now, end) - _SKEW
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    return builder.serial_number(x509.random_serial_number()).not_valid_before(start).not_valid_after(end)


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not sign_certificates,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
