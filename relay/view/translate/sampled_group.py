"""A long transaction with fewer statements: those that rules judge alike are in it twice at most, where they would be once or often.

Twice, because what is done to a statement may depend on whether another one is beside it.
"""

import secrets
from collections import Counter
from typing import Final

from protocol.binlog.layout import OF_ONE_CONNECTION
from protocol.binlog.query import text_at
from protocol.errors import Truncated
from protocol.kernel.codes import (
    ANONYMOUS_GTID_EVENT,
    GTID_EVENT,
    GTID_TAGGED_EVENT,
    INTVAR_EVENT,
    QUERY_EVENT,
    QUERY_POST,
    QUERY_SCHEMA_LENGTH_AT,
    XID_EVENT,
)
from protocol.sql.control import Control, control_of
from protocol.sql.expressions.constructs import BOUNDS
from protocol.sql.kind import ROW_VERBS, kind_of
from protocol.views.known_statements import KnownStatements
from relay.view.rules.group import GroupEvent, SourceGroup

_TWICE: Final = 2
_MOST_KINDS: Final = 50_000
_ENDS: Final = frozenset((GTID_EVENT, GTID_TAGGED_EVENT, ANONYMOUS_GTID_EVENT, XID_EVENT))


def sampled(group: SourceGroup) -> SourceGroup | None:
    """Return the group without the statements that are judged like two that it keeps; None: it has other events than changes by
    statements, or hardly any are alike. Blocking. Raises: OSError; ArchiveDamaged; Untranslatable for an event that is too long.
    """
    known = KnownStatements(BOUNDS, secrets.token_bytes(16))
    seen: Counter[bytes] = Counter()
    kept: list[GroupEvent] = []
    before: list[GroupEvent] = []
    given = count = 0
    for event in group.events:
        count += 1
        if event.type == INTVAR_EVENT:
            given = given * 4 + group.body(event, 1)[0] % 4
            before.append(event)
            continue
        if event.type in _ENDS:
            kept.append(event)
            continue
        if (
            event.type != QUERY_EVENT
            or event.flags & OF_ONE_CONNECTION
            or group.post_lengths[QUERY_EVENT] != QUERY_POST
        ):
            return None
        body = group.body(event)
        try:
            text = text_at(body, QUERY_POST)
        except Truncated:
            return None
        statement = body[text:]
        if kind_of(statement, group.server_version).verb in ROW_VERBS:
            number = known.number_of(body, QUERY_SCHEMA_LENGTH_AT, text, given)
            if number is not None:
                seen[number] += 1
            if number is None or seen[number] <= _TWICE:
                kept += before
                kept.append(event)
        else:
            found = control_of(statement, group.server_version)
            if found is None or found.control not in (Control.BEGIN, Control.COMMIT):
                return None
            kept.append(event)
        if len(seen) > _MOST_KINDS or len(kept) > 2 * _MOST_KINDS:
            return None
        before, given = [], 0
    return group._replace(events=kept) if len(kept) < count // 2 else None
