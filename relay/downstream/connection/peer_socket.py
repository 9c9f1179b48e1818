"""The system's facts about a replica's socket: whether the peer is alive, whether it has ended its side, what it has not read."""

import contextlib
import fcntl
import socket
import struct
import termios
from typing import Final

_TCP_INFO_BYTES: Final = 232  # up to and with tcpi_snd_wnd
_TCP_CLOSE_WAIT: Final = 8  # Source: Linux `tcp_states.h`: the peer has ended its side, and no reset came
# A replica whose machine died silently while it waited for events is noticed after two or three minutes.
_KEEPALIVE: Final = ((socket.TCP_KEEPIDLE, 60), (socket.TCP_KEEPINTVL, 20), (socket.TCP_KEEPCNT, 4))


class PeerSocket:
    """The socket to one peer. `sock` None: there is none, and nothing is known."""

    def __init__(self, sock: socket.socket | None) -> None:
        self._sock = sock
        self._widest_window = 0

    def keep_alive(self) -> None:
        """Make the system notice a peer that disappeared without closing."""
        if self._sock is None:
            return
        with contextlib.suppress(OSError):
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _KEEPALIVE:
                self._sock.setsockopt(socket.IPPROTO_TCP, option, value)

    def unread_bytes(self) -> int | None:
        """Return the bytes that the peer's system has not acknowledged plus those that the replica has not read there; None: unknown.

        The latter is the difference between the widest window that the peer has offered and its present one. Source: Linux `struct
        tcp_info`, tcpi_snd_wnd (since 5.4; None before).
        """
        facts = self._tcp_info()
        if len(facts) < _TCP_INFO_BYTES or self._sock is None:
            return None
        try:
            unacknowledged = int(struct.unpack("i", fcntl.ioctl(self._sock.fileno(), termios.TIOCOUTQ, bytes(4)))[0])
        except OSError:
            return None
        window = int.from_bytes(facts[_TCP_INFO_BYTES - 4 :], "little")
        self._widest_window = max(self._widest_window, window)
        return unacknowledged + self._widest_window - window

    @property
    def peer_ended_cleanly(self) -> bool:
        """True if the peer has ended its side, and has not reset the connection since. Source: as above, tcpi_state."""
        facts = self._tcp_info()
        return bool(facts) and facts[0] == _TCP_CLOSE_WAIT

    def _tcp_info(self) -> bytes:
        """Return the system's `struct tcp_info`, or nothing if it is not available."""
        try:
            return (
                b""
                if self._sock is None
                else self._sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
            )
        except OSError:
            return b""
