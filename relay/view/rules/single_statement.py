"""What the rules say of one statement that is no part of a group: for audits, which have texts and no events."""

import struct
from dataclasses import dataclass
from typing import Final

from protocol.kernel.codes import QUERY_EVENT, QUERY_POST
from relay.view.rules.group import CannotBeKept, GroupEvent, SourceGroup, StopReason
from relay.view.rules.group_rules import MysqlRules

_HEADER_AND_MORE: Final = 32
_UTF8MB4: Final = 45


@dataclass(frozen=True, slots=True)
class SingleStatement:
    """A statement as a source ran it, by itself. `error`: its error's number there. `collation`: of the client, by its number."""

    text: bytes
    schema: str = ""
    server_version: str = ""
    sql_mode: int = 0
    thread_id: int = 0
    error: int = 0
    collation: int = _UTF8MB4


def why_not(rules: MysqlRules, statement: SingleStatement) -> StopReason | None:
    """Why a view stops before the statement; None: it is kept, as it is or changed. What it defines is known from now on."""
    schema = statement.schema.encode()
    status = b"\x01" + struct.pack("<Q", statement.sql_mode) + b"\x04" + struct.pack("<HHH", statement.collation, 8, 8)
    head = struct.pack("<IIBHH", statement.thread_id, 0, len(schema), statement.error, len(status))
    body = head + status + schema + b"\0" + statement.text
    event = GroupEvent(0, len(body) + _HEADER_AND_MORE, QUERY_EVENT, 0, 0, 0)
    lengths = bytearray(256)
    lengths[QUERY_EVENT] = QUERY_POST
    group = SourceGroup(
        "", 0, event.length, (event,), True, lambda _event: body, bytes(lengths), statement.server_version
    )
    try:
        rules.plan(group)
    except CannotBeKept as error:
        rules.skipped(group)
        return error.reason
    return None
