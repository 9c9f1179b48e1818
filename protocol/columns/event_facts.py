# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""What every reader of the walker's table asks of an event: what is wrong with it, and whether it is a transaction."""

import cython

C_CHECKSUM_MISMATCH = cython.declare(cython.int, 1)
C_BOUNDARY_VIOLATION = cython.declare(cython.int, 2)
C_POSITION_CHAIN_BROKEN = cython.declare(cython.int, 3)
C_UNKNOWN_EVENT_TYPE = cython.declare(cython.int, 4)
C_EVENT_MALFORMED = cython.declare(cython.int, 5)
K_UNKNOWN = cython.declare(cython.int, 0)
K_SELF = cython.declare(cython.int, 2)
K_ROTATE = cython.declare(cython.int, 3)
K_INCIDENT = cython.declare(cython.int, 4)
K_MEMBER = cython.declare(cython.int, 18)
K_GTID_LIST = cython.declare(cython.int, 19)


def event_finding(info, kind, flags):
    """What is wrong with an event by the walker's word (`info`, see Ingest.set_table): a finding's code, 0 for nothing."""
    if info & 32:
        return C_CHECKSUM_MISMATCH
    if info & 64:
        return C_BOUNDARY_VIOLATION
    if info & 2048:
        return C_POSITION_CHAIN_BROKEN
    if info & 4096:
        return C_EVENT_MALFORMED
    if kind == K_UNKNOWN and not flags & 0x80:
        return C_UNKNOWN_EVENT_TYPE
    return 0


def is_transaction(kind):
    """Whether a self-contained event of this kind is a transaction, and not a mark between two."""
    return not (kind == K_SELF or kind == K_ROTATE or kind == K_GTID_LIST or kind == K_MEMBER or kind == K_INCIDENT)
