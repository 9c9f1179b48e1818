"""Transactions that a view makes of its own: BEGIN and COMMIT around something of the source, or around nothing."""

from collections.abc import Sequence
from typing import Final, Literal

from protocol.binlog.query import Query
from protocol.kernel.codes import QUERY_EVENT
from relay.view.rules.group import Copy, GroupEvent, New, OutGroup
from relay.view.rules.group_parts import GroupPart
from relay.view.rules.statement.logged_query import LoggedQuery

# LOG_EVENT_SUPPRESS_USE_F: servers write BEGIN and COMMIT with it.
_SUPPRESS_USE: Final = 0x0008
# Marks of transactions' edges, as the archive puts them: three bits from 10 on, and four above. The writer puts its own.
_KEPT_FLAGS: Final = 0x03FF


def begin(event: GroupEvent, query: LoggedQuery | None) -> New:
    """BEGIN in front of what `query` belongs to, at the time of `event`. None: of nobody, in no database."""
    return _control(event, query, b"BEGIN")


def commit(event: GroupEvent, query: LoggedQuery | None) -> New:
    """COMMIT behind it."""
    return _control(event, query, b"COMMIT")


def _control(event: GroupEvent, query: LoggedQuery | None, text: bytes) -> New:
    body = Query(0, 0, 0, b"", b"", text).encode() if query is None else query.control(text)
    return New(QUERY_EVENT, _SUPPRESS_USE, event.timestamp, event.server_id, body)


def changed(event: GroupEvent, body: bytes) -> New:
    """The source's event with another body."""
    return New(event.type, event.flags & _KEPT_FLAGS, event.timestamp, event.server_id, body)


def empty_group(event: GroupEvent, query: LoggedQuery | None, head: GroupPart | None) -> OutGroup:
    """A transaction that does nothing, in place of one with `query`. `head`: the source's GTID event."""
    return out_group([begin(event, query), commit(event, query)], head)


def out_group(pieces: Sequence[Copy | New], head: GroupPart | None) -> OutGroup:
    """One transaction, with the source's GTID event in front if there is one. Neighbours that are copied are one copy."""
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
    """The part as the source wrote it."""
    return Copy(part.start, part.stop)
