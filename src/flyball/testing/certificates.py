"""A certificate authority for tests: servers and users of one control plane. Needs `cryptography` (extra `webhook`)."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from flyball.controlplane.pki import CertificateAuthority, KeyPair

__all__ = ["CertificateAuthority", "KeyPair", "service_account_key"]


def service_account_key() -> KeyPair:
    """The key pair that signs ServiceAccount tokens: here `certificate` is the public key, PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyPair(public, private)
