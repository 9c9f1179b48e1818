"""The columns of each level, with their types in SQL and in Arrow."""

from typing import Final

import pyarrow as pa

EVENTS: Final = {
    "file": "string",
    "position": "bigint",
    "end": "bigint",
    "time": "timestamp",
    "server_id": "bigint",
    "type": "string",
    "flags": "int",
    "boundary": "string",
    "stamped": "boolean",
    "crc": "string",
    "transaction": "bigint",
    "schema": "string",
    "table": "string",
    "finding": "string",
}
EVENTS_ON_REQUEST: Final = {
    "end_log_pos": "bigint",
    "type_code": "int",
    "inferred": "string",
    "finding_text": "string",
    "transaction_ordinal": "bigint",
    "sequence": "bigint",
}
"""These are not among the columns of a read that names none: each column costs time for every event, and to count transactions a file
must be read from its start."""

TRANSACTIONS: Final = {
    "file": "string",
    "start": "bigint",
    "end": "bigint",
    "bytes": "bigint",
    "first_time": "timestamp",
    "last_time": "timestamp",
    "server_id": "bigint",
    "gtid": "string",
    "xid": "bigint",
    "kind": "string",
    "events": "bigint",
    "statements": "bigint",
    "row_events": "bigint",
    "rows_inserted": "bigint",
    "rows_updated": "bigint",
    "rows_deleted": "bigint",
    "tables": "array<string>",
    "rolled_back": "boolean",
    "violations": "bigint",
    "finding": "string",
    "finding_position": "bigint",
    "sequence": "bigint",
}

ROWS: Final = {
    "file": "string",
    "transaction": "bigint",
    "row": "bigint",
    "position": "bigint",
    "time": "timestamp",
    "gtid": "string",
    "operation": "string",
    "schema": "string",
    "table": "string",
    "before": "string",
    "after": "string",
    "statement": "string",
    "finding": "string",
    "named": "string",
    "sequence": "bigint",
}

STATEMENTS: Final = {
    "file": "string",
    "position": "bigint",
    "end": "bigint",
    "time": "timestamp",
    "server_id": "bigint",
    "type": "string",
    "transaction": "bigint",
    "thread_id": "bigint",
    "error_code": "bigint",
    "sql_mode": "bigint",
    "seeds": "int",
    "schema": "string",
    "digest_text": "string",
    "finding": "string",
}
STATEMENTS_ON_REQUEST: Final = {
    "statement": "string",
    "status_variables": "binary",
    "finding_text": "string",
    "sequence": "bigint",
}
"""The text may be long and contain confidential values."""

TABLE_MAPS: Final = {
    "file": "string",
    "position": "bigint",
    "end": "bigint",
    "time": "timestamp",
    "server_id": "bigint",
    "transaction": "bigint",
    "schema": "string",
    "table": "string",
    "table_map": "binary",
    "finding": "string",
}

FINDINGS: Final = {
    "file": "string",
    "position": "bigint",
    "end": "bigint",
    "time": "timestamp",
    "type": "string",
    "finding": "string",
    "finding_text": "string",
}

LEVELS: Final = {
    "events": EVENTS,
    "transactions": TRANSACTIONS,
    "rows": ROWS,
    "statements": STATEMENTS,
    "table_maps": TABLE_MAPS,
    "findings": FINDINGS,
}
CHANGES: Final = "changes"
"""One more level, whose columns are those of one table."""
ON_REQUEST: Final[dict[str, dict[str, str]]] = {
    "events": EVENTS_ON_REQUEST,
    "transactions": {"finding_text": "string", "closed_by": "string", "row_flags": "bigint"},
    "rows": {"end": "bigint", "server_id": "bigint", "finding_position": "bigint", "finding_text": "string"},
    "statements": STATEMENTS_ON_REQUEST,
    "table_maps": {"finding_text": "string", "sequence": "bigint"},
    "findings": {"sequence": "bigint"},
}

ARROW_TYPES: Final = {
    "string": pa.string(),
    "binary": pa.binary(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<string>": pa.list_(pa.field("element", pa.string(), nullable=True)),
}


def known_columns(level: str) -> dict[str, str]:
    """Return every column of the level, with its SQL type."""
    return LEVELS[level] | ON_REQUEST[level]


def arrow_schema(level: str, columns: tuple[str, ...]) -> pa.Schema:
    """Return the schema that Spark expects of a batch with these columns."""
    known = known_columns(level)
    return pa.schema([pa.field(name, ARROW_TYPES[known[name]]) for name in columns])
