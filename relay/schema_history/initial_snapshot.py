"""The tables from before an archive that a view asks for, from the relay's records beside the archive's binlogs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from protocol.binlog.format_description import decode_first_event
from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import ProtocolError
from protocol.position import binlog_number
from protocol.sql.tables.source_table import Table, TableName
from relay.archive.storage.files import SCHEMA_NAME, StoredFile
from relay.binlog_file.head import read_start
from relay.packed_reads.archive_layer import layer_of
from relay.schema_history.certain_tables import CertainTables
from relay.schema_history.definition_scan import is_about_triggers, logged_event, scan_definitions
from relay.schema_history.logged_definition import LoggedDefinition
from relay.schema_history.schema_facts import DefinedSpan, Place
from relay.schema_history.schema_file import recorded_lines
from relay.schema_history.schema_record import Line

_MOST_SCANNED_BYTES: Final = 1 << 30
"""The most bytes of a binlog that are searched after the end of the records."""


class InitialSnapshot:
    """The snapshot of an archive's generation in `directory`. `may_ask`: it is read, which blocks; else nothing is known. Not
    thread-safe."""

    def __init__(self, directory: Path) -> None:
        self.may_ask = True
        self._directory = directory
        self._read = (0, 0)
        """The size and time of the file that was read."""
        self._lines: Sequence[Line] = ()
        self._known: CertainTables | None = None
        self._known_to: Place = (-1, 0)

    def around(self, name: TableName, file: str, offset: int) -> list[Table] | None:
        """Return the table as it is for a statement at this place, and all that refer to it; None: it is not certain. Blocking.

        Raises: OSError.
        """
        known = self._known_at(file, offset)
        return None if known is None else known.around(name, (binlog_number(file), offset))

    def exists(self, name: TableName, file: str, offset: int) -> bool | None:
        """Return whether the table exists before a statement at this place, or the schema, for an empty name; None: it is not certain.
        Blocking.

        Raises: OSError.
        """
        known = self._known_at(file, offset)
        return None if known is None else known.exists(name, (binlog_number(file), offset))

    def _known_at(self, file: str, offset: int) -> CertainTables | None:
        if not self.may_ask:
            return None
        place = (binlog_number(file), offset)
        self._read_anew()
        if not self._lines:
            return None
        if self._known is None or place > self._known_to:
            self._known, self._known_to = self._up_to(file, place)
        return self._known

    def _read_anew(self) -> None:
        try:
            told = (self._directory / SCHEMA_NAME).stat()
            now = (told.st_size, told.st_mtime_ns)
        except FileNotFoundError:
            now = (0, 0)
        if now != self._read:
            self._lines, self._known, self._read = recorded_lines(self._directory), None, now

    def _up_to(self, file: str, place: Place) -> tuple[CertainTables, Place]:
        """Return what is known up to a place, as far as the binlog can be searched after the end of the records."""
        end = max(one.place for one in self._lines)
        if end >= place or end[0] != place[0] or place[1] - end[1] > _MOST_SCANNED_BYTES:
            return CertainTables(self._lines), end
        definitions: list[tuple[Place, LoggedDefinition]] = []
        triggers: list[Place] = []
        path = self._directory / file
        start = max(end[1], FIRST_EVENT)
        try:
            with StoredFile.open(layer_of(self._directory), path) as stored:
                version = decode_first_event(read_start(stored).event)[1].server_version
            for event in scan_definitions(path, start, place[1]):
                found, at = logged_event(event, version), (place[0], event.offset)
                if found is not None:
                    definitions.append((at, found))
                if is_about_triggers(event):
                    triggers.append(at)
        except (OSError, ValueError, ProtocolError):
            return CertainTables(self._lines), end
        return CertainTables(self._lines, DefinedSpan(end, place, tuple(definitions)), triggers), place
