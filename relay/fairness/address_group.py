"""The group that a connection belongs to, where connections are counted by address."""

from functools import lru_cache
from ipaddress import IPv6Address
from typing import Final

from protocol.auth.host_pattern import plain_address

# A client with one IPv6 address has all 2**64 of its network.
_IPV6_NETWORK: Final = 64
_REMEMBERED: Final = 4096


@lru_cache(_REMEMBERED)
def address_group(address: str) -> str:
    """Return the IPv4 address, also of one that is mapped into IPv6, or the /64 network of an IPv6 address.

    Text that is no address, such as that of a Unix socket, is a group of its own.
    """
    parsed = plain_address(address)
    if isinstance(parsed, IPv6Address) and not parsed.is_loopback:
        return f"{IPv6Address(int(parsed) >> 64 << 64)}/{_IPV6_NETWORK}"
    return str(parsed) if parsed is not None else address
