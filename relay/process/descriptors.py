"""How many files and sockets this process may have open at once."""

import resource
from typing import Final

import structlog

log = structlog.get_logger()

_BY_A_CONNECTION: Final = 2
"""The descriptors of a replica: its socket, and the file that it is sent."""
_BY_A_GENERATION: Final = 6
"""The descriptors of a generation: its lock, marks and catalog."""
_BY_THE_REST: Final = 64


def allow_descriptors(connections: int, archive: int) -> None:
    """Raises the limit to what so many connections and generations of the archive may need; says so where it cannot.

    Systems give a process 1,024 and let it ask for more: what only select() could not bear.
    """
    wanted = connections * _BY_A_CONNECTION + archive * _BY_A_GENERATION + _BY_THE_REST
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    given = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (given, hard))
    except (OSError, ValueError):
        given = soft
    if given < wanted:
        log.warning(
            "few_descriptors",
            allowed=given,
            wanted=wanted,
            advice="Raise the limit of open files (LimitNOFILE= of the unit, ulimit -n), or lower listen.max_connections.",
        )
