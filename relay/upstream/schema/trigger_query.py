"""A query for the source's tables that have triggers, for accounts that are shown all of them."""

from typing import Final

from protocol.sql.tables.source_table import TableName
from relay.upstream.schema.answer_text import SchemaSource, answer_text
from relay.upstream.source.answer_bound import TABLE_LIST

_TIMEOUT_S: Final = 120.0
MOST_TABLES: Final = 10_000
"""With more, none is reported: they would crowd the file of what is recorded."""
_PRIVILEGES: Final = "SELECT GRANTEE, PRIVILEGE_TYPE, CURRENT_USER() FROM information_schema.USER_PRIVILEGES"
_TRIGGERS: Final = (
    "SELECT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS "
    "GROUP BY EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE LIMIT {limit}"
)


async def tables_with_triggers(source: SchemaSource) -> frozenset[TableName] | None:
    """Return the tables with triggers in all schemas; None if the account may not be shown all tables and all triggers, or there are
    too many. Raises: as `query`."""
    privileges = await source.query(_PRIVILEGES, _TIMEOUT_S, TABLE_LIST)
    held = set()
    for grantee, privilege, account in privileges:
        user, _, host = answer_text(account).rpartition("@")
        if answer_text(grantee) == f"'{user}'@'{host}'":
            held.add(answer_text(privilege).upper())
    if "TRIGGER" not in held or held.isdisjoint(("REFERENCES", "SELECT")):
        return None
    rows = await source.query(_TRIGGERS.format(limit=MOST_TABLES + 1), _TIMEOUT_S, TABLE_LIST)
    if len(rows) > MOST_TABLES:
        return None
    return frozenset((answer_text(schema), answer_text(table)) for schema, table in rows)
