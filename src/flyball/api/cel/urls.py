"""URLs, as Go's standard library reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from flyball.api.cel.errors import EvalError
from flyball.api.cel.network import BadAddress, parse_ip
from flyball.api.cel.operators import NO_OVERLOAD
from flyball.api.cel.overloads import Overload, function, member, size_of, tenth
from flyball.api.cel.strings import go_quoted
from flyball.api.cel.types import BOOL, STRING, URL, list_of, map_of
from flyball.api.cel.values import MapValue, Opaque

__all__ = ["LIBRARY", "Link", "url_problem"]


class Link(Opaque):
    """A URL."""

    __slots__ = ("fragment", "host", "path", "query", "scheme", "text", "user")
    type_name = "kubernetes.URL"

    def __init__(self, text: str) -> None:
        """Read a URL. Raises `ValueError`."""
        self.text = text
        body, _, self.fragment = text.partition("#")
        self.scheme, self.user, self.host, self.path, self.query = _parse_url(body, request=False)
        if self.fragment:
            _unescaped(self.fragment, "fragment")

    def __str__(self) -> str:
        """Return the text it was read from."""
        return self.text

    def equals(self, other: Any) -> bool:
        """Compare all parts with those of another URL."""
        if not isinstance(other, Link):
            raise EvalError(NO_OVERLOAD)
        return self._parts() == other._parts()

    def _parts(self) -> tuple[str, ...]:
        return (self.scheme, self.user, self.host, self.escaped_path(), self.query, self.fragment)

    def escaped_path(self) -> str:
        """Return the path with what must be escaped in it."""
        if self.path.startswith("\0"):
            return ""
        if re.fullmatch(r"[A-Za-z0-9\-._~!$&'()*+,;=:@\[\]%/]*", self.path):
            return self.path
        return _escaped(_unescaped(self.path, "path"))

    def hostname(self) -> str:
        """Return the host without its port and brackets."""
        host = self._host_and_port()[0]
        return host[1:-1] if host.startswith("[") and host.endswith("]") else host

    def port(self) -> str:
        """Return the port."""
        return self._host_and_port()[1]

    def _host_and_port(self) -> tuple[str, str]:
        head, colon, port = self.host.rpartition(":")
        return (head, port) if colon and re.fullmatch(r"[0-9]*", port) else (self.host, "")

    def values(self) -> MapValue:
        """Return what the query says."""
        made = MapValue()
        for part in self.query.split("&"):
            if not part or ";" in part:
                continue
            name, _, value = part.partition("=")
            try:
                key, found = (_decoded(_unescaped(each.replace("+", " "), "query")) for each in (name, value))
            except ValueError:
                continue
            made.insert(key, [*made.entries.get(key, []), found])
        return made


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


_HOST_CHARACTER: Final = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"]")


def _parse_url(text: str, *, request: bool) -> tuple[str, str, str, str, str]:
    """Return scheme, user, host, path and query. Raises `ValueError` with Go's words."""
    if any(character < " " or character == "\x7f" for character in text):
        raise ValueError("net/url: invalid control character in URL")
    if not text and request:
        raise ValueError("empty url")
    if text == "*":
        return "", "", "", "*", ""
    scheme, rest = _scheme(text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return scheme, "", "", f"\0{rest}", query
        if request:
            raise ValueError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise ValueError("first path segment in URL cannot contain colon")
    user = host = ""
    if (scheme or (not request and not rest.startswith("///"))) and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        user, host = _authority(authority)
        rest = slash + path
    _unescaped(rest, "path")
    return scheme, user, host, rest, query


def _scheme(text: str) -> tuple[str, str]:
    found = re.match(r"([A-Za-z][A-Za-z0-9+.\-]*):", text)
    if found is not None:
        return found[1].lower(), text[found.end() :]
    if text.startswith(":"):
        raise ValueError("missing protocol scheme")
    return "", text


def _authority(text: str) -> tuple[str, str]:
    user, at, host = text.rpartition("@")
    host = _host(host)
    if not at:
        return "", host
    if re.fullmatch(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", user) is None:
        raise ValueError("net/url: invalid userinfo")
    _unescaped(user, "user")
    return user, host


def _host(text: str) -> str:
    port = ""
    if text.rfind("[") > 0:
        raise ValueError("invalid IP-literal")
    if text.startswith("["):
        end = text.rfind("]")
        if end < 0:
            raise ValueError("missing ']' in host")
        port = text[end + 1 :]
    elif ":" in text:
        port = text[text.index(":") :]
    if port and re.fullmatch(r":[0-9]*", port) is None:
        raise ValueError(f"invalid port {go_quoted(port)} after host")
    if text.startswith("["):
        literal = text[1 : text.rfind("]")].replace("%25", "%")
        try:
            ip, _ = parse_ip(literal)
        except BadAddress as error:
            raise ValueError(f"invalid host: {error}") from None
        if ip.version == 4:
            raise ValueError("invalid IP-literal")
        return f"[{literal}]{port}"
    return _decoded(_unescaped(text, "host"))


def _unescaped(text: str, part: str) -> bytes:
    """Take percent signs away. Raises `ValueError` where they, or what stands in a host, make no sense."""
    at = 0
    while at < len(text):
        character = text[at]
        if character == "%":
            piece = text[at : at + 3]
            if re.fullmatch(r"%[0-9a-fA-F]{2}", piece) is None:
                raise ValueError(f"invalid URL escape {go_quoted(piece)}")
            if part == "host" and int(piece[1], 16) < 8 and piece != "%25":
                raise ValueError(f"invalid URL escape {go_quoted(piece)}")
            at += 2
        elif part == "host" and character < "\x80" and _HOST_CHARACTER.fullmatch(character) is None:
            raise ValueError(f"invalid character {go_quoted(character)} in host name")
        at += 1
    return unquote_to_bytes(text)


_KEPT: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~$&+,/:;=@")


def _escaped(raw: bytes) -> str:
    return "".join(chr(byte) if byte in _KEPT else f"%{byte:02X}" for byte in raw)


def url_problem(text: str) -> str:
    """Say why a text is no URL, or nothing."""
    try:
        _parse_url(text, request=True)
    except ValueError as error:
        return f"parse {go_quoted(text)}: {error}"
    return ""


def _link(text: str) -> Link:
    problem = url_problem(text)
    if not problem:
        try:
            return Link(text)
        except ValueError as error:
            problem = f"parse {go_quoted(text)}: {error}"
    raise EvalError(f"URL parse error during conversion from string: {problem}")


# --- functions --------------------------------------------------------------------------------------------------------


def _once(args: Sequence[Any], result: Any) -> int:
    return tenth(size_of(args[0]))


def _declare() -> Iterable[Overload]:
    yield function("url", "string_to_url", [STRING], URL, _link, _once)
    yield function("isURL", "is_url_string", [STRING], BOOL, lambda text: not url_problem(text))
    yield member("getScheme", "url_get_scheme", [URL], STRING, lambda link: link.scheme)
    yield member("getHost", "url_get_host", [URL], STRING, lambda link: link.host)
    yield member("getHostname", "url_get_hostname", [URL], STRING, Link.hostname)
    yield member("getPort", "url_get_port", [URL], STRING, Link.port)
    yield member("getEscapedPath", "url_get_escaped_path", [URL], STRING, Link.escaped_path)
    yield member("getQuery", "url_get_query", [URL], map_of(STRING, list_of(STRING)), Link.values)


LIBRARY: Final[tuple[Overload, ...]] = tuple(_declare())
