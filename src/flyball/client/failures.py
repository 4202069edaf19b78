"""What went wrong on the wire, said so that a person can act on it.

aiohttp, asyncio, OpenSSL and the resolver each have their own words for a failure; here they become one
`TransportError` whose class tells whether the server can have acted, and whose line names the host, the cause and the
remedy.
"""

from __future__ import annotations

import errno
import ssl
from datetime import datetime

import aiohttp

from flyball.errors import (
    ConnectError,
    ConnectionLost,
    MalformedAnswer,
    RequestTimeout,
    TlsError,
    TransportError,
    one_line,
)

__all__ = ["CONNECT_SECONDS", "expired_certificate", "refused_by_tls", "transport_error"]

CONNECT_SECONDS = 10.0
"""How long a connection may take to come about, TLS included."""

_EXPIRED, _NOT_YET = 10, 9
_NAME_MISMATCH = {62, 64}
_UNKNOWN_ISSUER = {2, 18, 19, 20, 21}

_CHECK_ADDRESS = "check that the server runs and that the address in the configuration is right"


def transport_error(error: BaseException, *, host: str, action: str, silence: float, proxy: str = "") -> TransportError:
    """The error to raise for one of aiohttp's; never raises."""
    kind, text = _explain(error, silence, proxy)
    return kind(text, host=host, action=action)


def refused_by_tls(error: BaseException) -> bool:
    """Whether the server said, in TLS, that it does not take us as we came."""
    tls = _tls_error(error)
    return tls is not None and "ALERT" in (tls.reason or "")


def expired_certificate(name: str, moment: datetime, *, host: str, action: str) -> TlsError:
    """The error for a client certificate that is of no use any more."""
    text = f"the {name} expired on {moment:%Y-%m-%d %H:%M} UTC; renew it (kubeadm certs renew, or ask who issued it)"
    return TlsError(text, host=host, action=action)


def _explain(error: BaseException, silence: float, proxy: str) -> tuple[type[TransportError], str]:
    tls = _tls_error(error)
    if tls is not None:
        return TlsError, _explain_tls(tls)
    match error:
        case aiohttp.ClientHttpProxyError():
            return ConnectError, _explain_refusing_proxy(error, proxy)
        case aiohttp.ClientProxyConnectionError():
            return ConnectError, f"the proxy {proxy} cannot be reached ({_os_cause(error.os_error)}); check proxy-url"
        case aiohttp.ClientConnectorDNSError():
            cause = _os_cause(error.os_error)
            return ConnectError, f"the host name cannot be resolved ({cause}); check it in the configuration, and DNS"
        case aiohttp.ClientConnectorError():
            return ConnectError, f"{_os_cause(error.os_error)}; {_CHECK_ADDRESS}"
        case aiohttp.ConnectionTimeoutError():
            return ConnectError, f"no connection within {CONNECT_SECONDS:g} s; {_CHECK_ADDRESS}, and the firewall"
        case aiohttp.ServerTimeoutError() | TimeoutError():
            return RequestTimeout, f"the server was silent for {silence:g} s; look at its load, or set a longer timeout"
        case aiohttp.ClientResponseError():
            return MalformedAnswer, f"the answer is not HTTP ({_short(error.message)}); {_CHECK_ADDRESS}"
        case aiohttp.ClientPayloadError():
            return ConnectionLost, "the answer broke off in its middle; try again, and look at proxies on the way"
        case aiohttp.ClientConnectionError() | ConnectionError() | aiohttp.ClientError() | OSError():
            return ConnectionLost, f"the connection broke before the answer came ({_os_cause(error)}); try again"
        case _:
            return TransportError, f"the request cannot be sent: {_short(str(error))}; check its path and headers"


def _tls_error(error: BaseException) -> ssl.SSLError | None:
    """OpenSSL's own error within one of aiohttp's, which also call themselves SSLError but do not tell the reason."""
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, ssl.SSLError) and not isinstance(inner, aiohttp.ClientError):
            return inner
        inner = inner.__cause__ or inner.__context__
    return None


def _explain_tls(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _explain_distrust(error.verify_code, error.verify_message)
    reason = error.reason or one_line(str(error))
    if reason in {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"}:
        return f"the server does not speak TLS ({reason}); check the port, or write http:// in the server's address"
    if refused_by_tls(error):
        return f"the server refused our TLS ({reason}); check the client certificate and its CA"
    return f"TLS failed ({reason}); check that the address leads to a Kubernetes API server"


def _explain_distrust(code: int, words: str) -> str:
    words = one_line(words).rstrip(".")
    if code == _EXPIRED:
        return "the server's certificate has expired; renew it on the server, or correct this machine's clock"
    if code == _NOT_YET:
        return "the server's certificate is not valid yet; correct this machine's clock, or the server's"
    if code in _NAME_MISMATCH:
        return f"the server's certificate is for another name ({words}); set tls-server-name, or use a name it holds"
    if code in _UNKNOWN_ISSUER:
        return (
            f"the server's certificate is signed by an unknown CA ({words}); set certificate-authority to the right CA"
        )
    return f"the server's certificate is not valid ({words}); renew it, or set certificate-authority"


def _explain_refusing_proxy(error: aiohttp.ClientHttpProxyError, proxy: str) -> str:
    if error.status == 407:
        return f"the proxy {proxy} asks for credentials (407); write them into proxy-url"
    return f"the proxy {proxy} refused the way to the server ({error.status} {_short(error.message)}); check its rules"


def _os_cause(error: BaseException) -> str:
    number = getattr(error, "errno", None)
    if number == errno.ECONNREFUSED:
        return "connection refused"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "closed by the server"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return _short(str(text)).removeprefix("[Errno ").strip()


def _short(text: str) -> str:
    return one_line(text)[:160]
