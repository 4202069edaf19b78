"""Which proxy stands between, by the configuration or by the environment."""

from __future__ import annotations

import pytest

from flyball.client.cluster_config import ClusterConfig
from flyball.client.proxies import proxy_of
from flyball.errors import ConfigError

ENV = {"HTTPS_PROXY": "http://p:3128", "http_proxy": "q:80"}


def proxy(server: str, environ: dict[str, str], url: str | None = None) -> str | None:
    return proxy_of(ClusterConfig(server=server, proxy_url=url), environ)


def test_the_configuration_goes_before_the_environment() -> None:
    assert proxy("https://h", ENV, "https://other:1") == "https://other:1"
    assert proxy("https://h", ENV, "") is None
    assert proxy("https://h", ENV) == "http://p:3128"
    assert proxy("http://h", ENV) == "http://q:80"
    assert proxy("https://h", {}) is None


@pytest.mark.parametrize(
    ("rules", "server", "direct"),
    [
        ("*", "https://h", True),
        ("example.com", "https://example.com", True),
        ("example.com", "https://API.example.com", True),
        ("example.com", "https://notexample.com", False),
        (".example.com", "https://api.example.com", True),
        (".example.com", "https://example.com", False),
        ("*.example.com", "https://api.example.com", True),
        ("example.com:6443", "https://example.com:6443", True),
        ("example.com:6443", "https://example.com", False),
        ("x, 10.0.0.0/8", "https://10.1.2.3:6443", True),
        ("10.0.0.0/8", "https://11.1.2.3", False),
        ("10.1.2.3", "https://10.1.2.3", True),
        ("fd00::/8", "https://[fd00::1]:6443", True),
        ("", "https://127.0.0.1:6443", True),
        ("", "https://[::1]:6443", True),
        ("", "https://localhost", True),
        ("", "https://h", False),
    ],
)
def test_exceptions(rules: str, server: str, direct: bool) -> None:
    assert (proxy(server, {**ENV, "NO_PROXY": rules}) is None) is direct


@pytest.mark.parametrize("url", ["socks5://h:1", "socks5h://h:1", "socks://h"])
def test_socks_is_refused_with_the_remedy(url: str) -> None:
    with pytest.raises(ConfigError, match="proxy-url: SOCKS proxies are not supported; use an http:// or https://"):
        proxy("https://h", {}, url)
    with pytest.raises(ConfigError, match="HTTPS_PROXY: SOCKS proxies are not supported"):
        proxy("https://h", {"HTTPS_PROXY": url})


@pytest.mark.parametrize("url", ["h:1", "ftp://h", "http://", "http://h:x", "http://u:hidden@h:99999"])
def test_what_is_no_proxy(url: str) -> None:
    with pytest.raises(ConfigError, match="proxy-url is not a URL; write it as http://host:port") as caught:
        proxy("https://h", {}, url)

    assert "hidden" not in str(caught.value)
