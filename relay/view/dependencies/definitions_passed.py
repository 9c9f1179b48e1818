"""Statements that define tables, in the transactions that a view translates."""

from collections.abc import Iterator
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.layout import HEADER
from protocol.binlog.schema.definition_statement import defines
from protocol.sql.kind import kind_of
from relay.schema_history.definition_scan import DefinitionEvent, logged_event
from relay.schema_history.logged_definition import LoggedDefinition
from relay.view.rules.group import GroupEvent, SourceGroup

_LONGEST_BYTES: Final = 1 << 20
"""The longest statement that is read; the effect of a longer one is unknown."""
_SEEN_BYTES: Final = 64 << 10


def definitions_in(group: SourceGroup) -> Iterator[tuple[int, LoggedDefinition]]:
    """Yield what the group defines, each with its offset. Dropping temporary tables changes no other table, and is left out.

    Raises: OSError; ArchiveDamaged.
    """
    for event in group.events:
        if event.type != EventType.QUERY:
            continue
        post_length = group.post_lengths[EventType.QUERY]
        if not defines(_raw(group, event, _SEEN_BYTES), post_length, False):
            continue
        raw = _raw(group, event, None) if event.length <= _LONGEST_BYTES else None
        found = logged_event(DefinitionEvent(event.offset, raw, post_length, False), group.server_version)
        if found is not None and not _drops_temporary(found):
            yield event.offset, found


def _drops_temporary(found: LoggedDefinition) -> bool:
    """Return whether it drops temporary tables: servers write that when connections with such tables end, maybe millions of times."""
    kind = kind_of((found.text or "").encode(), found.version)
    return kind.verb == "DROP" and kind.temporary


def _raw(group: SourceGroup, event: GroupEvent, most: int | None) -> bytes:
    """Return the event without a checksum, with at most `most` bytes of its body."""
    body = group.body(event, most)
    size = HEADER.size + len(body)
    return HEADER.pack(event.timestamp, event.type, event.server_id, size, 0, event.flags) + body
