"""Transactions that a view creates: BEGIN and COMMIT around a part of the source, or around nothing."""

from collections.abc import Sequence
from typing import Final, Literal

from protocol.binlog.query import Query
from protocol.kernel.codes import QUERY_EVENT
from relay.view.rules.group import Copy, GroupEvent, New, OutGroup
from relay.view.rules.group_parts import GroupPart
from relay.view.rules.statement.logged_query import LoggedQuery

# LOG_EVENT_SUPPRESS_USE_F: servers write BEGIN and COMMIT with it.
_SUPPRESS_USE: Final = 0x0008
# The marks of transactions' edges, as the archive sets them: three bits from 10 on, and four above. The writer sets its own.
_KEPT_FLAGS: Final = 0x03FF


def begin(event: GroupEvent, query: LoggedQuery | None) -> New:
    """Return BEGIN for the part of `query`, at the time of `event`. None: for no statement, in no database."""
    return _control(event, query, b"BEGIN")


def commit(event: GroupEvent, query: LoggedQuery | None) -> New:
    """Return the COMMIT after it."""
    return _control(event, query, b"COMMIT")


def _control(event: GroupEvent, query: LoggedQuery | None, text: bytes) -> New:
    body = Query(0, 0, 0, b"", b"", text).encode() if query is None else query.control(text)
    return New(QUERY_EVENT, _SUPPRESS_USE, event.timestamp, event.server_id, body)


def changed(event: GroupEvent, body: bytes) -> New:
    """Return the source's event with another body."""
    return New(event.type, event.flags & _KEPT_FLAGS, event.timestamp, event.server_id, body)


def empty_group(event: GroupEvent, query: LoggedQuery | None, head: GroupPart | None) -> OutGroup:
    """Return an empty transaction that replaces one with `query`. `head` is the source's GTID event."""
    return out_group([begin(event, query), commit(event, query)], head)


def out_group(pieces: Sequence[Copy | New], head: GroupPart | None) -> OutGroup:
    """Return one transaction, after the source's GTID event if there is one. Adjacent copies are merged."""
    made: list[Copy | New] = [] if head is None else [Copy(head.start, head.stop)]
    for piece in pieces:
        last = made[-1] if made else None
        if isinstance(piece, Copy) and isinstance(last, Copy) and last.stop == piece.start:
            made[-1] = Copy(last.start, piece.stop)
        else:
            made.append(piece)
    gtid: Literal["new", "source"] = "new" if head is None else "source"
    return OutGroup(tuple(made), gtid)


def copied(part: GroupPart) -> Copy:
    """Return the part as the source wrote it."""
    return Copy(part.start, part.stop)
