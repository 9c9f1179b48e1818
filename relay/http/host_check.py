"""The host names under which a request may arrive, by its Host header.

A page of any site can have its own name point at 127.0.0.1, and a browser on this machine then takes answers of the relay for that
site's (DNS rebinding). Its requests have that name as their Host.
"""

import ipaddress
from collections.abc import Sequence
from typing import Final

from relay.config.text.http_access import is_loopback

_LONGEST: Final = 255


class HostCheck:
    """listen_host: the address that it listens on; hosts: further names, as in `http.hosts`.

    If it listens on loopback, or there are `hosts`, other names are refused. Else only network access and the token count.
    """

    def __init__(self, listen_host: str, hosts: Sequence[str]) -> None:
        self._is_loopback = is_loopback(listen_host)
        self._checks = self._is_loopback or bool(hosts)
        self._names = {_plain(name) for name in (listen_host, "localhost", *hosts)}

    def lets_in(self, headers: Sequence[str]) -> bool:
        """Return whether the request is let in. headers: all its Host headers. Browsers send one with each; none at all is let in."""
        return not self._checks or all(self._is_known(one) for one in headers)

    def _is_known(self, header: str) -> bool:
        name = asked_name(header)
        if name is None:
            return False
        if name in self._names or is_loopback(name):
            return True
        # Beyond loopback an address is accepted as well as a name: a foreign site has no address as its name.
        return not self._is_loopback and _is_address(name)


def asked_name(header: str) -> str | None:
    """Return the host of a Host header, in small letters, without port and brackets; None: it has none."""
    text = header.strip(" \t")
    if len(text) > _LONGEST:
        return None
    if text.startswith("["):
        name, bracket, port = text[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            return None
        port = port[1:]
    else:
        name, _, port = text.partition(":")
    if not name or not ((port.isascii() and port.isdigit()) or not port):
        return None
    return _plain(name)


def _plain(name: str) -> str:
    return name.lower().removeprefix("[").removesuffix("]").removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
