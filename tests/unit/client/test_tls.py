"""TLS contexts: one as long as nothing changes, and what is said of certificates that are none."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from flyball.client import tls
from flyball.client.cluster_config import ClusterConfig
from flyball.client.tls import Tls
from flyball.clock import ManualClock
from flyball.errors import CredentialError
from flyball.testing.certificates import CertificateAuthority, KeyPair


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority()


@pytest.fixture(scope="module")
def me(authority: CertificateAuthority) -> KeyPair:
    return authority.client("me")


def tls_of(clock: ManualClock | None = None, **values: Any) -> Tls:
    return Tls(ClusterConfig(server="https://h", **values), clock or ManualClock())


def test_one_context_as_long_as_nothing_changes(authority: CertificateAuthority, me: KeyPair, tmp_path: Path) -> None:
    clock = ManualClock()
    (tmp_path / "ca").write_bytes(authority.certificate)
    found = tls_of(clock, ca_file=tmp_path / "ca", client_cert_data=me.certificate, client_key_data=me.key)
    first = found.context()

    clock.jump(10)
    assert found.context() is first
    assert found.context(insist=True) is first
    (tmp_path / "ca").write_bytes(authority.certificate + CertificateAuthority().certificate)
    assert found.context(insist=True) is not first
    assert len(found.context().get_ca_certs()) == 2


def test_servers_are_checked(authority: CertificateAuthority) -> None:
    context = tls_of(ca_data=authority.certificate).context()

    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_a_certificate_from_a_plugin_goes_first(authority: CertificateAuthority, me: KeyPair) -> None:
    found = tls_of(ca_data=authority.certificate)
    first, handed_out = found.context(), me.certificate + b"\n" + me.key

    second = found.context(handed_out)

    assert second is not first
    assert found.context(handed_out) is second
    assert found.expires is not None
    assert found.context() is not second, "a plugin may change from certificates to tokens"
    assert found.expires is None


@pytest.mark.parametrize("memory_files", [True, False])
def test_keys_leave_no_files_behind(
    me: KeyPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory_files: bool
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    modes: list[int] = []
    load = ssl.SSLContext.load_cert_chain

    def watch(context: ssl.SSLContext, path: str) -> None:
        modes.extend(file.stat().st_mode & 0o777 for file in tmp_path.iterdir())
        load(context, path)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", watch)
    if not memory_files:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    opened = len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    tls_of(client_cert_data=me.certificate, client_key_data=me.key).context()

    assert list(tmp_path.iterdir()) == []
    assert modes == ([] if memory_files else [0o600])
    assert len(os.listdir("/proc/self/fd")) == opened  # noqa: PTH208


def test_a_key_with_a_pass_phrase(me: KeyPair) -> None:
    key = serialization.load_pem_private_key(me.key, None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"x"),
    )

    with pytest.raises(CredentialError, match="client-key of the configuration: the key has a pass phrase; write it"):
        tls_of(client_cert_data=me.certificate, client_key_data=locked).context()


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"\xff", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_a_ca_that_is_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "ca").write_bytes(content)

    with pytest.raises(CredentialError, match=f"certificate-authority {tmp_path / 'ca'}: it holds no PEM certificate"):
        tls_of(ca_file=tmp_path / "ca").context()


def test_client_certificates_that_are_none(me: KeyPair, authority: CertificateAuthority) -> None:
    with pytest.raises(CredentialError, match=r"client-certificate of the configuration: no usable PEM certificate"):
        tls_of(client_cert_data=b"x", client_key_data=me.key).context()
    with pytest.raises(CredentialError, match="no usable PEM certificate with key"):
        tls_of(client_cert_data=me.certificate, client_key_data=b"x").context()
    with pytest.raises(CredentialError, match="certificate and key do not belong together; write the pair again"):
        tls_of(client_cert_data=me.certificate, client_key_data=authority.client("you").key).context()


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(CredentialError, match=f"client-key {tmp_path / 'key'}: no such file; check the path"):
        tls_of(client_cert_data=b"x", client_key_file=tmp_path / "key").context()


def test_unchecked_is_said_aloud(caplog: pytest.LogCaptureFixture) -> None:
    context = tls_of(insecure_skip_tls_verify=True, source="kubeconfig /k").context()

    assert context.verify_mode == ssl.CERT_NONE
    assert caplog.messages == [
        "kubeconfig /k: the certificate of https://h is not checked (insecure-skip-tls-verify); "
        "set certificate-authority"
    ]
    assert tls.log.name == "flyball.client.tls"
