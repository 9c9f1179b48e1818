"""A process that has imported the relay, and becomes it in a copy of itself on request.

To import the relay takes a second of processor time, and tests start it a thousand times. A copy runs `python -m relay`, from its
`__main__` on, with the requested arguments, environment and outputs; it is killed with this process.

It is run as `python -m tests.support.forking_relay DESCRIPTOR`; relay_template.py is at the other end.
"""

import array
import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import runpy
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, Final

from tests.support.loop_holds import REPORT_VARIABLE, watch_into

REQUEST_BYTES: Final = 1 << 17
_PR_SET_PDEATHSIG: Final = 1
# Each copy imports the rest as needed, as the relay itself does.
_IMPORTED: Final = (
    "relay.service.app",
    "relay.process.log_setup",
    *(
        f"relay.commands.{name}"
        for name in (
            *(
                "binlogs.annotate",
                "archive_accept_gap",
                "archive_command",
                "archive_find",
                "archive_place",
                "archive_repair",
            ),
            *("binlogs.events_command", "binlogs.positions_command", "view_changes", "view_command", "view_seed"),
        )
    ),
)


def serve(link: socket.socket) -> dict[str, Any] | None:
    """Make copies until the other end closes the link, then return None. In a copy, return what it must become."""
    poll = select.poll()
    poll.register(link, select.POLLIN)
    ends: dict[int, tuple[int, int]] = {}  # By the descriptor of a copy: its id, and where its end is reported
    while True:
        for ready, _ in poll.poll():
            if ready in ends:
                poll.unregister(ready)
                _tell_end(ready, *ends.pop(ready))
                continue
            request, descriptors = _received(link)
            if not request:
                return None
            copy = os.fork()
            if copy == 0:
                link.detach()  # its descriptor is closed with all others
                return {**json.loads(request), "outputs": descriptors[:2]}
            for output in descriptors[:2]:
                os.close(output)
            watched = os.pidfd_open(copy)
            ends[watched] = (copy, descriptors[2])
            poll.register(watched, select.POLLIN)
            link.send(str(copy).encode())


def _received(link: socket.socket) -> tuple[bytes, list[int]]:
    """Return a request, and the descriptors that came with it."""
    descriptors = array.array("i")
    request, ancillary, _, _ = link.recvmsg(REQUEST_BYTES, socket.CMSG_LEN(3 * descriptors.itemsize))
    for _, _, data in ancillary:
        descriptors.frombytes(data)
    return request, list(descriptors)


def _tell_end(watched: int, copy: int, told: int) -> None:
    _, status = os.waitpid(copy, 0)
    with contextlib.suppress(BrokenPipeError):  # The report is not wanted
        os.write(told, str(os.waitstatus_to_exitcode(status)).encode())
    os.close(told)
    os.close(watched)


def become(wanted: dict[str, Any], parent: int) -> None:
    """Run `python -m relay` in this process, which shares only the imports with its parent."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the process that was copied has ended")
    os.setsid()
    for number, output in enumerate(wanted["outputs"], start=1):
        os.dup2(output, number)
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    os.environ.clear()
    os.environ.update(wanted["environment"])
    time.tzset()
    if report := os.environ.get(REPORT_VARIABLE):
        watch_into(Path(report))
    sys.argv = ["relay", *wanted["arguments"]]
    runpy.run_module("relay", run_name="__main__", alter_sys=True)


def main() -> None:
    """Import, and serve."""
    link = socket.socket(fileno=int(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    gc.disable()
    for name in _IMPORTED:
        importlib.import_module(name)
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: F401
    # A copy that looked for garbage in what all have would make all of it its own.
    gc.freeze()
    gc.enable()
    assert len(os.listdir("/proc/self/task")) == 1, "a process with threads cannot be copied"
    itself = os.getpid()
    wanted = serve(link)
    if wanted is not None:
        become(wanted, itself)


if __name__ == "__main__":
    main()
