"""The words of libraries become one line; the wire itself is tested in test_http_transport."""

from __future__ import annotations

import errno
import ssl

import aiohttp
import pytest

from flyball.client.failures import transport_error
from flyball.errors import ConnectionLost, RequestTimeout, TlsError, TransportError


def explain(error: BaseException) -> TransportError:
    return transport_error(error, host="h:1", action="get Pod a", silence=30.0)


def distrust(code: int, words: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, words
    return error


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (10, "certificate has expired", "the server's certificate has expired; renew it on the server"),
        (9, "certificate is not yet valid", "is not valid yet; correct this machine's clock"),
        (62, "Hostname mismatch.", "is for another name (Hostname mismatch); set tls-server-name"),
        (18, "self-signed certificate", "signed by an unknown CA (self-signed certificate); set certificate-authority"),
        (23, "certificate revoked", "is not valid (certificate revoked); renew it"),
    ],
)
def test_distrust(code: int, words: str, said: str) -> None:
    error = explain(distrust(code, words))

    assert isinstance(error, TlsError)
    assert said in str(error)


def test_the_stall_of_thirty_seconds() -> None:
    error = explain(aiohttp.SocketTimeoutError("Timeout on reading data from socket"))

    assert isinstance(error, RequestTimeout)
    assert str(error) == ("get Pod a: h:1: the server was silent for 30 s; look at its load, or set a longer timeout")


@pytest.mark.parametrize(
    "error", [ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), BrokenPipeError(), OSError()]
)
def test_connections_that_break(error: OSError) -> None:
    found = explain(error)

    assert isinstance(found, ConnectionLost)
    assert str(found).startswith("get Pod a: h:1: the connection broke before the answer came (")


def test_anything_else_is_one_line_too() -> None:
    found = explain(ValueError("line one\nline two"))

    assert type(found) is TransportError
    assert str(found) == ("get Pod a: h:1: the request cannot be sent: line one line two; check its path and headers")
