"""The places from which the tables of an archive differ: by the relay's record, and by the statements in the binlogs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from protocol.errors import Malformed
from protocol.position import binlog_number
from protocol.sql.tables.source_table import Table, TableName
from relay.audit.definitions.table_differences import table_differences
from relay.binlog_tables.plan.recorded import reported_schema
from relay.binlog_tables.plan.series_files import SeriesFile
from relay.binlog_tables.plan.store import Store
from relay.schema_history.schema_facts import Place


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A table before and after a place; None if there was none, or it is unknown. `file` is named as the audit names it."""

    file: str
    position: int
    name: TableName
    before: Table | None
    after: Table | None

    @property
    def table(self) -> str:
        """The name as schema.table."""
        return ".".join(self.name)

    @property
    def told(self) -> list[str]:
        """The differences."""
        return table_differences(self.before, self.after)


def schema_changes(store: Store, files: Sequence[SeriesFile]) -> list[SchemaChange]:
    """Return every change of a table in these files, in their order. Blocking. Raises: OSError."""
    found: list[SchemaChange] = []
    directories = dict.fromkeys(file.path.rpartition("/")[0] for file in files)
    for directory in directories:
        held = {}
        for file in files:
            if file.path.rpartition("/")[0] == directory:
                try:
                    held[binlog_number(file.path.rpartition("/")[2])] = file
                except Malformed:
                    continue
        if held:
            found += _of_directory(store, directory, held)
    return found


def _of_directory(store: Store, directory: str, held: dict[int, SeriesFile]) -> Iterator[SchemaChange]:
    newest = held[max(held)]
    schema = reported_schema(store, directory or ".", newest.path.rpartition("/")[2], newest.end)
    for place, name in schema.changes():
        if place[0] not in held:
            continue
        before, after = schema.at(name, _just_before(place)), schema.at(name, place)
        if before != after:
            yield SchemaChange(held[place[0]].name, place[1], name, before, after)


def _just_before(place: Place) -> Place:
    number, offset = place
    return (number, offset - 1) if offset else (number - 1, 1 << 62)
