"""IP addresses and networks, as Go's standard library reads them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from flyball.api.cel.errors import EvalError
from flyball.api.cel.operators import NO_OVERLOAD
from flyball.api.cel.overloads import Overload, function, member, size_of, tenth
from flyball.api.cel.strings import go_quoted
from flyball.api.cel.types import BOOL, CIDR, INT, IP, STRING
from flyball.api.cel.values import Opaque

__all__ = ["LIBRARY", "Address", "BadAddress", "Network", "parse_ip"]

_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


class Address(Opaque):
    """An IP address."""

    __slots__ = ("ip",)
    type_name = "net.IP"

    def __init__(self, ip: _Ip) -> None:
        """Take the address."""
        self.ip = ip

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.ip.max_prefixlen // 8

    def __str__(self) -> str:
        """Write it in its canonical form."""
        return str(self.ip)

    def __eq__(self, other: object) -> bool:
        """Equal addresses."""
        return isinstance(other, Address) and self.ip == other.ip

    def __hash__(self) -> int:
        """Fit to equality."""
        return hash(self.ip)

    def equals(self, other: Any) -> bool:
        """Compare with another address."""
        return _same_kind(self, other) and self == other


class Network(Opaque):
    """An address with the length of a prefix."""

    __slots__ = ("bits", "ip")
    type_name = "net.CIDR"

    def __init__(self, ip: _Ip, bits: int) -> None:
        """Take both."""
        self.ip = ip
        self.bits = bits

    @property
    def size(self) -> int:
        """How many bytes the prefix touches."""
        return -(-self.bits // 8)

    def __str__(self) -> str:
        """Write both."""
        return f"{self.ip}/{self.bits}"

    def __eq__(self, other: object) -> bool:
        """Equal addresses and lengths."""
        return isinstance(other, Network) and (self.ip, self.bits) == (other.ip, other.bits)

    def __hash__(self) -> int:
        """Fit to equality."""
        return hash((self.ip, self.bits))

    def equals(self, other: Any) -> bool:
        """Compare with another network."""
        return _same_kind(self, other) and self == other

    def prefix(self, ip: _Ip) -> int:
        """Return the bits of an address that the prefix covers."""
        return int(ip) >> (ip.max_prefixlen - self.bits)

    def contains(self, ip: _Ip) -> bool:
        """Tell whether an address is in the network."""
        return ip.version == self.ip.version and self.prefix(ip) == self.prefix(self.ip)


def _same_kind(one: Opaque, other: Any) -> bool:
    if type(one) is not type(other):
        raise EvalError(NO_OVERLOAD)
    return True


# --- reading ----------------------------------------------------------------------------------------------------------


class BadAddress(ValueError):
    """A text is no address."""


def _bad(text: str, words: str, at: str = "") -> BadAddress:
    where = f" (at {go_quoted(at)})" if at else ""
    return BadAddress(f"ParseAddr({go_quoted(text)}): {words}{where}")


def parse_ip(text: str) -> tuple[_Ip, str]:
    """Return an address and its zone."""
    first = re.search(r"[.:%]", text)
    if first is None:
        raise _bad(text, "unable to parse IP")
    if first[0] == "%":
        raise _bad(text, "missing IPv6 address")
    if first[0] == ".":
        return ipaddress.IPv4Address(_four(text, text)), ""
    address, percent, zone = text.partition("%")
    if percent and not zone:
        raise _bad(text, "zone must be a non-empty string")
    return ipaddress.IPv6Address(_sixteen(text, address)), zone


def _four(text: str, part: str) -> bytes:
    fields: list[int] = []
    digits = ""
    for place, character in enumerate(part):
        if character in "0123456789":
            if digits == "0":
                raise _bad(text, "IPv4 field has octet with leading zero")
            digits += character
            if int(digits) > 255:
                raise _bad(text, "IPv4 field has value >255")
        elif character == ".":
            if not digits or place == len(part) - 1:
                raise _bad(text, "IPv4 field must have at least one digit", part[place:])
            if len(fields) == 3:
                raise _bad(text, "IPv4 address too long")
            fields.append(int(digits))
            digits = ""
        else:
            raise _bad(text, "unexpected character", part[place:])
    if len(fields) < 3:
        raise _bad(text, "IPv4 address too short")
    return bytes([*fields, int(digits)])


_HEX: Final = re.compile(r"[0-9a-fA-F]*")


def _sixteen(text: str, rest: str) -> bytes:
    made = bytearray()
    ellipsis = -1
    if rest.startswith("::"):
        ellipsis = 0
        rest = rest[2:]
    while rest and len(made) < 16:
        found = _HEX.match(rest)
        digits = found[0] if found else ""
        if len(digits) > 4:
            raise _bad(text, "each group must have 4 or less digits", rest)
        if not digits:
            raise _bad(text, "each colon-separated field must have at least one digit", rest)
        if rest[len(digits) : len(digits) + 1] == ".":
            _check_embedded(text, rest, len(made), ellipsis)
            made += _four(text, rest)
            rest = ""
            break
        made += int(digits, 16).to_bytes(2, "big")
        rest = rest[len(digits) :]
        if not rest:
            break
        if rest[0] != ":":
            raise _bad(text, "unexpected character, want colon", rest)
        if len(rest) == 1:
            raise _bad(text, "colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis >= 0:
                raise _bad(text, "multiple :: in address", rest)
            ellipsis = len(made)
            rest = rest[1:]
    return _expanded(text, made, rest, ellipsis)


def _check_embedded(text: str, rest: str, length: int, ellipsis: int) -> None:
    if ellipsis < 0 and length != 12:
        raise _bad(text, "embedded IPv4 address must replace the final 2 fields of the address", rest)
    if length + 4 > 16:
        raise _bad(text, "too many hex fields to fit an embedded IPv4 at the end of the address", rest)


def _expanded(text: str, made: bytearray, rest: str, ellipsis: int) -> bytes:
    if rest:
        raise _bad(text, "trailing garbage after address", rest)
    if len(made) < 16 and ellipsis < 0:
        raise _bad(text, "address string too short")
    if len(made) == 16 and ellipsis >= 0:
        raise _bad(text, "the :: must expand to at least one field of zeros")
    return bytes(made[:ellipsis] + bytes(16 - len(made)) + made[ellipsis:]) if ellipsis >= 0 else bytes(made)


def _is_mapped(ip: _Ip) -> bool:
    return isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None


def _address(text: str) -> Address:
    try:
        ip, zone = parse_ip(text)
    except BadAddress as error:
        raise EvalError(f"IP Address {go_quoted(text)} parse error during conversion from string: {error}") from None
    if zone:
        raise EvalError(f"IP address {go_quoted(text)} with zone value is not allowed")
    if _is_mapped(ip):
        raise EvalError(f"IPv4-mapped IPv6 address {go_quoted(text)} is not allowed")
    return Address(ip)


_CIDR_WORDS: Final = "network address parse error during conversion from string: "


def _network(text: str) -> Network:
    try:
        ip, bits = _parse_prefix(text)
    except BadAddress as error:
        words = f"netip.ParsePrefix({go_quoted(text)}): {error}"
        raise EvalError(f"{_CIDR_WORDS}{_CIDR_WORDS}{words}") from None
    if _is_mapped(ip):
        raise EvalError(f"{_CIDR_WORDS}IPv4-mapped IPv6 address {go_quoted(text)} is not allowed")
    return Network(ip, bits)


def _parse_prefix(text: str) -> tuple[_Ip, int]:
    address, slash, length = text.rpartition("/")
    if not slash:
        raise BadAddress("no '/'")
    ip, zone = parse_ip(address)
    if zone:
        raise BadAddress("IPv6 zones cannot be present in a prefix")
    if re.fullmatch(r"0|[1-9][0-9]*", length) is None or len(length) > 18:
        raise BadAddress(f"bad bits after slash: {go_quoted(length)}")
    if int(length) > ip.max_prefixlen:
        raise BadAddress("prefix length out of range")
    return ip, int(length)


def _is(read: Callable[[str], object]) -> Callable[[str], bool]:
    def test(text: str) -> bool:
        try:
            read(text)
        except EvalError:
            return False
        return True

    return test


# --- functions --------------------------------------------------------------------------------------------------------


def _once(args: Sequence[Any], result: Any) -> int:
    return tenth(size_of(args[0]))


def _twice(args: Sequence[Any], result: Any) -> int:
    return -(-size_of(args[0]) * 2 // 10)


def _contains_ip(network: Network, other: Any) -> bool:
    if isinstance(other, str):
        try:
            other = _address(other)
        except EvalError:
            raise EvalError(NO_OVERLOAD) from None
    return network.contains(other.ip)


def _contains_network(network: Network, other: Any) -> bool:
    inner = _network(other) if isinstance(other, str) else other
    return network.bits <= inner.bits and network.contains(inner.ip)


def _cost_of_ip(args: Sequence[Any], result: Any) -> int:
    cost = tenth(args[0].size * 2)
    return cost + tenth(len(args[1])) if isinstance(args[1], str) else cost


def _cost_of_network(args: Sequence[Any], result: Any) -> int:
    return _cost_of_ip(args, result) + tenth(args[0].size) + 1


def _is_global(address: Address) -> bool:
    ip = address.ip
    if ip.version == 4 and int(ip) == 0xFFFFFFFF:
        return False
    return not (ip.is_unspecified or ip.is_loopback or ip.is_multicast or _is_local(address))


def _is_local(address: Address) -> bool:
    return address.ip in _LOCAL[address.ip.version]


_LOCAL: Final = {4: ipaddress.ip_network("169.254.0.0/16"), 6: ipaddress.ip_network("fe80::/10")}
_MULTICAST: Final = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}


def _is_local_multicast(address: Address) -> bool:
    ip = address.ip
    if ip.version == 6:
        return ip.packed[0] == 0xFF and ip.packed[1] & 0x0F == 2
    return ip in _MULTICAST[4]


def _masked(network: Network) -> Network:
    shift = network.ip.max_prefixlen - network.bits
    return Network(type(network.ip)(int(network.ip) >> shift << shift), network.bits)


def _declare() -> Iterable[Overload]:
    yield function("ip", "string_to_ip", [STRING], IP, _address, _once)
    yield member("ip", "cidr_ip", [CIDR], IP, lambda network: Address(network.ip), lambda args, result: 1)
    yield member("family", "ip_family", [IP], INT, lambda address: address.ip.version)
    canonical: Callable[[str], bool] = lambda text: str(_address(text)) == text  # noqa: E731 # a table's cell
    yield function("ip.isCanonical", "ip_is_canonical", [STRING], BOOL, canonical, _twice)
    tests: dict[str, Callable[[Any], bool]] = {
        "isUnspecified": lambda address: address.ip.is_unspecified,
        "isLoopback": lambda address: address.ip.is_loopback,
        "isLinkLocalMulticast": _is_local_multicast,
        "isLinkLocalUnicast": _is_local,
        "isGlobalUnicast": _is_global,
    }
    for name, test in tests.items():
        yield member(name, f"ip_{name}", [IP], BOOL, test)
    yield function("isIP", "is_ip", [STRING], BOOL, _is(_address), _once)
    yield function("isCIDR", "is_cidr", [STRING], BOOL, _is(_network), _once)
    yield function("cidr", "string_to_cidr", [STRING], CIDR, _network, _once)
    yield function("string", "ip_to_string", [IP], STRING, str)
    yield function("string", "cidr_to_string", [CIDR], STRING, str)
    yield member("containsIP", "cidr_contains_ip_string", [CIDR, STRING], BOOL, _contains_ip, _cost_of_ip)
    yield member("containsIP", "cidr_contains_ip_ip", [CIDR, IP], BOOL, _contains_ip, _cost_of_ip)
    yield member("containsCIDR", "cidr_contains_cidr_string", [CIDR, STRING], BOOL, _contains_network, _cost_of_network)
    yield member("containsCIDR", "cidr_contains_cidr", [CIDR, CIDR], BOOL, _contains_network, _cost_of_network)
    yield member("prefixLength", "cidr_prefix_length", [CIDR], INT, lambda network: network.bits)
    yield member("masked", "cidr_masked", [CIDR], CIDR, _masked)


LIBRARY: Final[tuple[Overload, ...]] = tuple(_declare())
