"""Whom we trust and with which certificate we come: TLS contexts that follow their files.

A context is built once and used until one of its files (CA, client certificate, key) changes; new connections then
use a new one and the old connections run out. Keys that come as data never reach a disk where the system has memory
files.
"""

from __future__ import annotations

import logging
import os
import ssl
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from flyball.client.cluster_config import ClusterConfig
from flyball.client.rotating import RotatingFile
from flyball.client.x509 import certificate_expiry
from flyball.clock import Clock
from flyball.errors import CredentialError

__all__ = ["Tls"]

log = logging.getLogger(__name__)


class Tls:
    """The TLS contexts of one configuration."""

    def __init__(self, config: ClusterConfig, clock: Clock) -> None:
        """Open nothing yet; say so when the server will not be checked."""
        self._config = config
        self._source = config.source or "the configuration"
        self._files = {
            name: RotatingFile(name, path, clock)
            for name, path, data in (
                ("certificate-authority", config.ca_file, config.ca_data),
                ("client-certificate", config.client_cert_file, config.client_cert_data),
                ("client-key", config.client_key_file, config.client_key_data),
            )
            if data is None and path is not None
        }
        self._data = {
            "certificate-authority": config.ca_data,
            "client-certificate": config.client_cert_data,
            "client-key": config.client_key_data,
        }
        self._made_of: tuple[bytes | None, ...] | None = None
        self._context: ssl.SSLContext | None = None
        self._handed_out: bytes | None = None
        self.expires: datetime | None = None
        """When the client certificate in use expires."""
        if config.insecure_skip_tls_verify and config.server.startswith("https:"):
            log.warning(
                "%s: the certificate of %s is not checked (insecure-skip-tls-verify); set certificate-authority",
                self._source,
                config.server,
            )

    @property
    def certificate_name(self) -> str:
        """What the client certificate is called in messages."""
        file = self._files.get("client-certificate")
        return f"client certificate {file.path}" if file else f"client certificate of {self._source}"

    def context(self, certificate: bytes | None = None, *, insist: bool = False) -> ssl.SSLContext:
        """The context for connections made now; `certificate` (PEM with key) goes before the configured one.

        The same object comes back as long as nothing changed; `insist` looks at the files even if somebody just did.
        """
        if self._context is None or self._files or insist or certificate is not self._handed_out:
            ca = self._part("certificate-authority", insist)
            cert, key = certificate, certificate
            if certificate is None:
                cert, key = self._part("client-certificate", insist), self._part("client-key", insist)
            self._handed_out = certificate
            if self._context is None or (ca, cert, key) != self._made_of:
                self._renew((ca, cert, key))
        assert self._context is not None
        return self._context

    def _part(self, name: str, insist: bool) -> bytes | None:
        file = self._files.get(name)
        return file.read(insist=insist) if file is not None else self._data[name]

    def _renew(self, parts: tuple[bytes | None, ...]) -> None:
        try:
            context = self._build(*parts)
        except CredentialError as error:
            if self._context is None:
                raise
            log.warning("%s; keeping the certificates that were read before", error)
            self._made_of = parts
            return
        self._context, self._made_of = context, parts
        self.expires = certificate_expiry(parts[1]) if parts[1] else None

    def _build(self, ca: bytes | None, cert: bytes | None, key: bytes | None) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        if self._config.insecure_skip_tls_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif ca is None:
            context.load_default_certs()
        else:
            self._trust(context, ca)
        if cert is not None and key is not None:
            self._identify(context, cert, key)
        return context

    def _trust(self, context: ssl.SSLContext, ca: bytes) -> None:
        # Any certificate that is given is trusted, also one that is not a root; the strict X.509 profile is not asked
        # for: that is how kubectl sees it, and how the CAs of clusters are made.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.hostname_checks_common_name = False
        try:
            context.load_verify_locations(cadata=ca.decode("ascii"))
        except (ssl.SSLError, UnicodeDecodeError, ValueError):
            name = self._name("certificate-authority")
            raise CredentialError(f"{name}: it holds no PEM certificate; write the cluster's CA there") from None

    def _identify(self, context: ssl.SSLContext, cert: bytes, key: bytes) -> None:
        name = self._name("client-certificate")
        if b"ENCRYPTED" in key:
            raise CredentialError(f"{self._name('client-key')}: the key has a pass phrase; write it without one")
        try:
            with _private_file(cert if cert is key else cert + b"\n" + key) as path:
                context.load_cert_chain(path)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                problem = "certificate and key do not belong together; write the pair again"
            else:
                problem = f"no usable PEM certificate with key ({error.reason or error}); write both again"
            raise CredentialError(f"{name}: {problem}") from None

    def _name(self, part: str) -> str:
        file = self._files.get(part)
        return f"{part} {file.path}" if file else f"{part} of {self._source}"


@contextmanager
def _private_file(content: bytes) -> Generator[str]:
    """A path under which only this process finds the content, while the block runs."""
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        fd = os.memfd_create("flyball-key", os.MFD_CLOEXEC)
        try:
            os.write(fd, content)
            yield f"/proc/self/fd/{fd}"
        finally:
            os.close(fd)
        return
    fd, name = tempfile.mkstemp(prefix="flyball-")  # made with mode 0600
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
        yield name
    finally:
        Path(name).unlink()
