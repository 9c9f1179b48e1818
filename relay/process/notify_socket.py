"""The relay's messages to the service manager that started it: sd_notify(3), of systemd and compatible ones.

They report that a start takes longer than usual, that it serves, that its event loop runs (the watchdog), that it reloads its
configuration, that it ends. Without NOTIFY_SOCKET in the environment all of this does nothing.
"""

import asyncio
import os
import socket
import time
from collections import deque
from collections.abc import MutableMapping
from typing import Final

import structlog

log = structlog.get_logger()

_STEP_S: Final = 5.0
"""The interval between messages about a start, or an end, that takes long."""
_LONGER_S: Final = 30
"""The additional time that each of them asks for."""
_AGAIN_S: Final = 0.1
"""The time after which a message is sent again for which the manager's queue had no room."""
_MOST_WAITING: Final = 8


class NotifySocket:
    """One-way messages to the service manager. On the event loop; nothing here waits, and a failure stops nothing."""

    def __init__(self, address: str | None = None, watchdog_s: float | None = None) -> None:
        """address: of a unix datagram socket, `@` at its beginning for an abstract one; None: no manager listens. watchdog_s: the
        manager ends a process that was silent for so long."""
        self._address = address
        self._tick_s = None if watchdog_s is None else watchdog_s / 3
        self._socket: socket.socket | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: deque[str] = deque(maxlen=_MOST_WAITING)
        self._sends_again = False
        self._serves = False
        self._failure_said = False

    @classmethod
    def of_service(cls, environment: MutableMapping[str, str]) -> "NotifySocket":
        """Return the socket that the manager names in the environment; the variables are removed, because they are not for child
        processes."""
        address = environment.pop("NOTIFY_SOCKET", None)
        period, process = environment.pop("WATCHDOG_USEC", ""), environment.pop("WATCHDOG_PID", "")
        wanted = period.isdecimal() and int(period) > 0 and process in ("", str(os.getpid()))
        return cls(address or None, int(period) / 1e6 if wanted else None)

    def begin(self) -> None:
        """Report that the process starts, and until `ready` that it still does."""
        if self._address is None:
            return
        if self._address[0] not in "/@":
            self._failed(f"{self._address} is not the name of a unix socket")
            return
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setblocking(False)
        self._tick()

    def ready(self, status: str) -> None:
        """Report that it serves, or has reloaded its configuration. status: one line for `systemctl status`."""
        self._send(f"READY=1\nSTATUS={status}")
        if not self._serves:
            self._serves = True
            self._tick()

    def reloading(self) -> None:
        """Report that it reloads its configuration; `ready` reports the end of that."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self, status: str) -> None:
        """Report that it ends, which may take a moment."""
        self._serves = False
        self._send(f"STOPPING=1\nSTATUS={status}")
        self._tick()

    def close(self) -> None:
        """Stop reporting."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _tick(self) -> None:
        """Report by the loop's own timer: if the loop stops, no message says that it runs."""
        if self._socket is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        message = "WATCHDOG=1" if self._tick_s is not None else ""
        if not self._serves:
            # The watchdog counts between READY and the end only, but a manager may have begun to count with STOPPING.
            message = f"EXTEND_TIMEOUT_USEC={_LONGER_S * 1_000_000}" + (f"\n{message}" if message else "")
        if message and not self._waiting:
            self._send(message)
        pause_s = _STEP_S if self._tick_s is None else min(_STEP_S, self._tick_s)
        self._timer = asyncio.get_running_loop().call_later(pause_s, self._tick)

    def _send(self, message: str) -> None:
        if self._socket is None:
            return
        self._waiting.append(message)
        if not self._sends_again:
            self._send_waiting()

    def _send_waiting(self) -> None:
        self._sends_again = False
        if self._socket is None or self._address is None:
            return
        address = "\0" + self._address[1:] if self._address[0] == "@" else self._address
        while self._waiting:
            try:
                self._socket.sendto(self._waiting[0].encode(), address)
            except BlockingIOError:
                self._sends_again = True
                asyncio.get_running_loop().call_later(_AGAIN_S, self._send_waiting)
                return
            except OSError as error:
                self._failed(f"{self._address}: {error.strerror or error}")
            self._waiting.popleft()

    def _failed(self, what: str) -> None:
        if not self._failure_said:
            self._failure_said = True
            log.warning(
                "service_not_notified",
                what=what,
                advice="NOTIFY_SOCKET names the socket of the service manager. The relay runs without it, but a unit with "
                "Type=notify is taken for one that did not start: look whether a sandbox hides the socket.",
            )
