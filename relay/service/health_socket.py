"""The health answer over a Unix socket next to the archive, which only the relay's own user and root can reach.

Network traffic cannot take anything from it. It speaks HTTP: `curl --unix-socket source.health.sock http://relay/healthz`. It is next
to the archive and not inside: a copy of an archive contains plain files only.
"""

import asyncio
import contextlib
import os
import socket
from pathlib import Path
from typing import Final, cast

import structlog

from relay.disk.file_calls import open_directory, remove_file
from relay.fairness.fair_places import FairPlaces

log = structlog.get_logger()

_ENDING: Final = ".health.sock"
_BODY: Final = b"ok\n"
_ANSWER: Final = b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)
_LONGEST_REQUEST: Final = 4096
_LONGEST_S: Final = 2.0
_MOST: Final = 16
_ADVICE: Final = "Probes of this socket fail; /healthz of [http] answers the same. Is the archive on a local disk?"


class HealthSocket:
    """`begin`, then `close`; on the event loop."""

    def __init__(self, directory: Path) -> None:
        """directory: the one whose lock this process holds: an existing socket is left of an earlier process."""
        self.path = directory.with_name(directory.name + _ENDING)
        self._server: asyncio.Server | None = None
        self._asking = FairPlaces[_Asking]()

    async def begin(self) -> None:
        """Answer from now on. A relay without it continues, and logs the reason."""
        try:
            self._server = await asyncio.get_running_loop().create_unix_server(self._asked, sock=self._bound())
        except OSError as error:
            log.warning("health_socket_failed", what=f"{self.path}: {error.strerror}", advice=_ADVICE)

    def close(self) -> None:
        """Stop answering."""
        if self._server is None:
            return
        self._server.close()
        with contextlib.suppress(OSError):
            remove_file(self.path)

    def _bound(self) -> socket.socket:
        remove_file(self.path)
        directory = open_directory(self.path.parent)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # The mode that the file gets: there is no moment at which others could connect.
            os.fchmod(listening.fileno(), 0o600)
            # An address has 108 bytes at most, paths have more.
            listening.bind(f"/proc/self/fd/{directory}/{self.path.name}")
        except OSError:
            listening.close()
            raise
        finally:
            os.close(directory)
        return listening

    def _asked(self) -> "_Asking":
        asking = _Asking(self._asking)
        if len(self._asking) >= _MOST:
            first = self._asking.first_to_go()
            assert first is not None
            first.end()
        self._asking.add(asking, "")
        return asking


class _Asking(asyncio.Protocol):
    """One connection."""

    def __init__(self, all_of_them: FairPlaces["_Asking"]) -> None:
        self._all = all_of_them
        self._request = b""
        self._transport: asyncio.Transport | None = None
        self._too_late = asyncio.get_running_loop().call_later(_LONGEST_S, self.end)

    def end(self) -> None:
        """Close it now."""
        self._all.discard(self)
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for its request."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Answer: the answer is the same for each request."""
        self._request += data
        if self._transport is not None and (
            b"\r\n\r\n" in self._request or b"\n\n" in self._request or len(self._request) > _LONGEST_REQUEST
        ):
            self._transport.write(_ANSWER)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, which has ended."""
        self._too_late.cancel()
        self._all.discard(self)
