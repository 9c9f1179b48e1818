"""The files and sockets that this process may have open at once, and the connections for which they suffice.

A flood of connections must not take the descriptors by which the archive continues: at the next file of the source the writer would
fail. So the number of connections follows what the system grants.
"""

import os
import resource
from dataclasses import dataclass
from typing import Final

import structlog

log = structlog.get_logger()

_BY_A_CONNECTION: Final = 3
"""The descriptors of a replica: its socket, the file that it is sent, and for a moment the next one or an index of it."""
_BY_A_THREAD: Final = 3
"""The descriptors of a thread that reads a file: the file, an index of it, its directory."""
_THREADS_OF_THE_ARCHIVE: Final = 8
_TO_THE_SOURCE: Final = 8
"""The descriptors of the stream, and of further connections that ask for GTIDs, settings, tables, and to other sources."""
_GENERATION_TO_COME: Final = 8
"""The descriptors of one more generation: its lock, marks and catalog, its first file and the last one of the one before."""
_BY_A_VIEW: Final = _GENERATION_TO_COME + _THREADS_OF_THE_ARCHIVE * _BY_A_THREAD
"""The descriptors of its archive, and of the file of the mirror that it is built from."""
_BY_THE_REST: Final = 16
_LONGEST_BACKLOG: Final = 512
_SHORTEST_BACKLOG: Final = 8
_STRANGERS_PART: Final = 6
_ADMINS_PART: Final = 10
"""If descriptors are few, one of so many is for clients that have not logged in, and of the rest for admins."""


@dataclass(frozen=True, slots=True)
class Descriptors:
    """The room for connections. connections: at once, of those that have logged in; admins: so many more of theirs; strangers: of
    those that have not. backlog: those that the system accepts before the relay looks at them, and which the event loop may then take
    all at once."""

    connections: int
    admins: int
    strangers: int
    backlog: int = _LONGEST_BACKLOG


def share_descriptors(wished: Descriptors, views: int = 0, http: int = 0) -> Descriptors:
    """Raise the limit as far as the system allows, and divide it as `wished`, or as far as it suffices; `views` are opened later, and
    so many connections come by `http`.

    Reserved are the descriptors that are open now, and those that the archive, its threads and the connections to the source may open
    besides. Call it when the archive is open. Systems give a process 1,024 and let it ask for more: only select() could not bear
    that.
    """
    limit = _raised_limit()
    kept = _open_now() + _kept_back() + views * _BY_A_VIEW + http
    wanted = kept + _taken_by(wished)
    if limit is None or limit >= wanted:
        return wished
    left = max(0, limit - kept)
    backlog = min(wished.backlog, max(_SHORTEST_BACKLOG, left // 8))
    left -= backlog
    strangers = min(wished.strangers, max(1, left // _STRANGERS_PART))
    logged_in = max(1, (left - strangers) // _BY_A_CONNECTION)
    admins = min(wished.admins, logged_in // _ADMINS_PART)
    given = Descriptors(min(wished.connections, logged_in - admins), admins, strangers, backlog)
    if given.connections < wished.connections:
        log.warning(
            "few_descriptors",
            allowed=limit,
            wanted=wanted,
            kept_back=kept,
            max_connections=given.connections,
            max_unauthenticated=given.strangers,
            advice="Raise the limit of open files (LimitNOFILE= of the unit, ulimit -n), or lower listen.max_connections.",
        )
    return given


def wanted_descriptors(wished: Descriptors, views: int) -> int:
    """Return how many descriptors a relay with so many of each needs, without those that it has open before."""
    return _kept_back() + views * _BY_A_VIEW + _taken_by(wished)


def _taken_by(given: Descriptors) -> int:
    return given.backlog + given.strangers + (given.connections + given.admins) * _BY_A_CONNECTION


def _raised_limit() -> int | None:
    """Return the limit, raised to the hard one; None: there is none."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            hard = soft
    return None if hard == resource.RLIM_INFINITY else hard


def _open_now() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 64


def _kept_back() -> int:
    # The most threads of asyncio.to_thread.
    pool = min(32, (os.cpu_count() or 1) + 4)
    threads = (pool + _THREADS_OF_THE_ARCHIVE) * _BY_A_THREAD
    return threads + _TO_THE_SOURCE + _GENERATION_TO_COME + _BY_THE_REST
