"""Certificates that a TLS library accepts and Kubernetes can read."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from flyball.testing.certificates import CertificateAuthority, KeyPair


def shake_hands(authority: CertificateAuthority, server: KeyPair, client: KeyPair, host: str, folder: Path) -> None:
    """A whole TLS handshake in memory, both sides verified."""
    contexts: list[ssl.SSLContext] = []
    for name, pair, protocol in (("s", server, ssl.PROTOCOL_TLS_SERVER), ("c", client, ssl.PROTOCOL_TLS_CLIENT)):
        (folder / f"{name}.crt").write_bytes(pair.certificate)
        (folder / f"{name}.key").write_bytes(pair.key)
        context = ssl.SSLContext(protocol)
        context.load_verify_locations(cadata=authority.certificate.decode())
        context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
        contexts.append(context)
    contexts[0].verify_mode = ssl.CERT_REQUIRED
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        contexts[1].wrap_bio(to_client, to_server, server_hostname=host),
        contexts[0].wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(6):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_server_and_client_trust_each_other(tmp_path: Path, host: str) -> None:
    authority = CertificateAuthority()
    shake_hands(authority, authority.server(["localhost", "127.0.0.1"]), authority.client("me"), host, tmp_path)


def test_another_host_is_refused(tmp_path: Path) -> None:
    authority = CertificateAuthority()
    with pytest.raises(ssl.SSLCertVerificationError, match="elsewhere"):
        shake_hands(authority, authority.server(["localhost"]), authority.client("me"), "elsewhere", tmp_path)


def test_an_expired_client_is_refused(tmp_path: Path) -> None:
    authority = CertificateAuthority()
    past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    late = authority.client("me", expires=past)
    with pytest.raises(ssl.SSLError, match=r"(?i)expired"):
        shake_hands(authority, authority.server(["localhost"]), late, "localhost", tmp_path)


def test_user_and_groups_are_where_kubernetes_reads_them() -> None:
    pair = CertificateAuthority().client("jane", ["dev", "ops"])
    subject = x509.load_pem_x509_certificate(pair.certificate).subject
    assert [part.value for part in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["jane"]
    assert [part.value for part in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == ["dev", "ops"]
