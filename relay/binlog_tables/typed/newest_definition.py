"""A table's columns as they are at the end of what is read."""

from collections.abc import Iterator

from protocol.errors import Malformed
from protocol.position import Position
from protocol.sql.tables.source_table import Table
from relay.binlog_tables.plan.places import Places
from relay.binlog_tables.plan.read_finding import ReadRefused
from relay.binlog_tables.plan.recorded import reported_schema
from relay.binlog_tables.typed.column_kinds import TypedColumn, typed_columns
from relay.schema_history.schema_record import RecordedSchema


def named_table(text: str) -> tuple[str, str]:
    """Return (schema, table) of SCHEMA.TABLE. Raises: ReadRefused."""
    schema, _, table = text.partition(".")
    if not schema or not table:
        raise ReadRefused(f"table is {text!r}; it takes SCHEMA.TABLE")
    return schema, table


def _told(told: RecordedSchema, schema: str, name: str, file: str, end: int) -> Iterator[Table | None]:
    """Yield what is known at the end, and just before it: what statements say is known up to the end, but not at the end itself."""
    for offset in (end, end - 1):
        yield told.recorded(schema, name, file, offset)
        yield told.worked_out(schema, name, file, offset)


def newest_columns(paths: tuple[str, ...], table: str, end: Position | None = None) -> tuple[TypedColumn, ...]:
    """Return the columns of SCHEMA.TABLE at `end`; None means the current end. Raises: ReadRefused, OSError."""
    schema, name = named_table(table)
    places = Places(paths, end)
    place = places.newest()
    files = places.files()
    path = files[places.index(files, place)].path
    directory, _, base = path.rpartition("/")
    told = reported_schema(places.store, directory or ("/" if path.startswith("/") else "."), base, place.offset)
    try:
        found = next(filter(None, _told(told, schema, name, base, place.offset)), None)
    except Malformed:
        found = None
    if found is None:
        raise ReadRefused(
            f"nobody told the columns that {table} has at {place}: the relay recorded none there, and the binlogs have no CREATE TABLE "
            "of it that is sure, or it was dropped. Level rows shows its changes as JSON; with endingPosition before a DROP its "
            "columns of then are known."
        )
    return typed_columns(found)
