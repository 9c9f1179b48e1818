"""The host part of an account: which addresses it is for, and which of several is the most specific.

Names are never looked up: a slow or lying resolver would decide who logs in.
"""

import ipaddress
import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Self

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
_IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
_ANY: Final = "%"
_LOOPBACK: Final = "localhost"
_WILDCARDS: Final = re.compile(r"[%_]")
_PATTERN: Final = re.compile(r"[0-9A-Fa-f.:%_]+")
_MAX_PATTERN: Final = 255


class _Kind(IntEnum):
    """The kinds of patterns, in the order in which servers look. Source: MySQL 8.0.23 and later, "Access Control, Stage 1"."""

    ADDRESS = 0
    NETWORK = 1
    NETMASK = 2
    PATTERN = 3
    ANY = 4


def plain_address(text: str) -> IPAddress | None:
    """Return the address of a peer, with an IPv4 one mapped into IPv6 as IPv4; None if the text is no address."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


@dataclass(frozen=True, slots=True)
class HostPattern:
    """`%`, an address, `localhost` (the loopback addresses), address/bits, address/netmask, or text with `%` and `_`."""

    text: str
    _kind: _Kind
    _networks: tuple[_IPNetwork, ...] = ()
    _regex: re.Pattern[str] | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a pattern. Raises: ValueError that says what is wrong with it."""
        if text == _ANY:
            return cls(text, _Kind.ANY)
        if text.lower() == _LOOPBACK:
            return cls(text, _Kind.ADDRESS, (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128")))
        if "/" in text:
            kind = _Kind.NETMASK if "." in text.partition("/")[2] else _Kind.NETWORK
            return cls(text, kind, (_network(text),))
        if _WILDCARDS.search(text):
            if len(text) > _MAX_PATTERN or _PATTERN.fullmatch(text) is None:
                raise ValueError("a pattern is matched against addresses, names are not looked up")
            return cls(text, _Kind.PATTERN, (), _regex_of(text))
        address = plain_address(text)
        if address is None:
            raise ValueError("this is no address, and names are not looked up")
        return cls(text, _Kind.ADDRESS, (ipaddress.ip_network(address),))

    def matches(self, peer: IPAddress | None) -> bool:
        """Return whether the pattern includes a peer with this address, which comes from `plain_address`."""
        if self._kind is _Kind.ANY:
            return True
        if peer is None:
            return False
        if self._regex is not None:
            return self._regex.fullmatch(str(peer)) is not None
        return any(peer in network for network in self._networks)

    @property
    def order(self) -> tuple[int, int]:
        """The key by which patterns sort with the most specific first, as servers do."""
        if self._kind in (_Kind.NETWORK, _Kind.NETMASK):
            return (self._kind, -self._networks[0].prefixlen)
        if self._kind is _Kind.PATTERN:
            wildcard = _WILDCARDS.search(self.text)
            return (self._kind, -(wildcard.start() if wildcard else 0))
        return (self._kind, 0)

    @property
    def identity(self) -> str:
        """A key that is equal for two spellings of the same hosts."""
        return " ".join(map(str, self._networks)) or self.text.lower()


def _network(text: str) -> _IPNetwork:
    address_text, _, mask = text.partition("/")
    address = plain_address(address_text)
    if address is None:
        raise ValueError(f"{address_text[:40]!r} is no address")
    if "." in mask:
        mask = str(_prefix_length(mask))
    if not mask.isascii() or not mask.isdigit() or int(mask) > address.max_prefixlen:
        raise ValueError(f"behind the / there must be 0 to {address.max_prefixlen} or a netmask")
    try:
        return ipaddress.ip_network(f"{address}/{mask}")
    except ValueError:
        raise ValueError("the address has bits that the mask does not cover, so no address would match") from None


def _prefix_length(netmask: str) -> int:
    try:
        bits = int(ipaddress.IPv4Address(netmask))
    except ValueError:
        raise ValueError(f"{netmask[:40]!r} is no netmask") from None
    length = 32 - (~bits & 0xFFFFFFFF).bit_length()
    if bits != 0xFFFFFFFF >> (32 - length) << (32 - length) if length else bits:
        raise ValueError(f"{netmask} is no netmask")
    return length


def _regex_of(pattern: str) -> re.Pattern[str]:
    parts = {"%": ".*", "_": "."}
    return re.compile("".join(parts.get(c, re.escape(c)) for c in pattern), re.IGNORECASE | re.DOTALL)
