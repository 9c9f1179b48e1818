"""The check whether an address is the relay's own: there it would follow itself, under its source's name."""

import socket
from typing import Final, NamedTuple

_ANY: Final = ("", "0.0.0.0", "::")


class ListenAddress(NamedTuple):
    """The address where replicas reach this relay. If `host` is None there is none; `port` is for the source's list of replicas too."""

    host: str | None = None
    port: int = 0


NOWHERE: Final = ListenAddress()


def is_own_address(host: str, port: int, listen_host: str, listen_port: int) -> bool:
    """Return whether connections to `host` end at our own listener. It blocks if the ports are the same, as the name is looked up.

    A name that cannot be looked up is not our address: the connection attempt will report the reason.
    """
    if port != listen_port:
        return False
    try:
        there = _addresses(host)
        return any(_is_local(address) for address in there) and (
            listen_host in _ANY or bool(there & _addresses(listen_host))
        )
    except OSError:
        return False


def _addresses(host: str) -> set[str]:
    return {str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}


def _is_local(address: str) -> bool:
    """Return whether an address is local: the system refuses to bind to another machine's address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True
