"""A request as a value."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from flyball.client.cluster_config import ClusterConfig
from flyball.client.http_transport import HttpTransport
from flyball.client.transport import HttpRequest, Transport


def test_a_request_is_a_value() -> None:
    request = HttpRequest("POST", "/api", body=b'{"data":"secret"}')

    assert replace(request, path="/apis").path == "/apis"
    assert "secret" not in repr(request)
    with pytest.raises(FrozenInstanceError):
        request.path = "/x"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError):
        request.headers["A"] = "b"  # type: ignore[index]  # pyright: ignore[reportIndexIssue]


def test_http_is_a_transport() -> None:
    transport: Transport = HttpTransport(ClusterConfig(server="https://h:6443/prefix"))

    assert transport.host == "h:6443"
