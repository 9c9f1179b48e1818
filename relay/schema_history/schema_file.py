"""`source-schema.jsonl` of one archive directory, and its writer. relay/schema_history/schema_record.py explains the lines.

Lines are appended and synced; a torn last one is removed at the next open. At an open, and when binlogs were purged, the file is
rewritten without the lines of purged binlogs, and replaced as a whole.
"""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from protocol.binlog.layout import FIRST_EVENT
from protocol.position import binlog_number
from relay.archive.storage.files import SCHEMA_NAME, FileLayer, StoredFile, replace_file, write_all
from relay.disk.file_calls import read_file
from relay.schema_history.schema_facts import Place
from relay.schema_history.schema_record import (
    WORKED_OUT,
    Line,
    RecordedSchema,
    database_line,
    line,
    parse_lines,
    table_line,
)
from relay.source_tables.table_facts import table_facts


class SchemaFile:
    """The file in `directory`. Blocking. Every method raises OSError as the system does."""

    def __init__(self, directory: Path, layer: FileLayer | None = None) -> None:
        self._layer = layer or FileLayer()
        self.path = directory / SCHEMA_NAME
        self._size = 0
        self.covered: tuple[str, int] | None = None
        """The position up to which statements that define tables were noted; None: none were."""

    def open(self, oldest: str | None, end: tuple[str, int] | None) -> RecordedSchema:
        """Read the file, and rewrite it without the lines before the archive's `oldest` binlog, and after its end.

        Lines after the end belong to transactions that a crash removed; the source sends them again.
        """
        lines = list(parse_lines(self._read()))
        place = (binlog_number(end[0]), end[1]) if end is not None else None
        lines = [one for one in lines if place is not None and one.place <= place]
        return self._rewrite(kept_from(lines, oldest))

    def purge(self, oldest: str) -> None:
        """Remove the lines of binlogs before `oldest`."""
        self._rewrite(kept_from(list(parse_lines(self._read())), oldest))

    def append(self, lines: Sequence[str]) -> None:
        """Append lines, durably. After an error none of them exists for readers of the next open."""
        data = "".join(lines).encode()
        if not data:
            return
        if not self._layer.exists(self.path):
            replace_file(self._layer, self.path, b"")
            self._size = 0
        fd = self._layer.open_alone(self.path)
        try:
            if self._layer.size(fd) != self._size:
                self._layer.truncate(fd, self._size)  # the rest of a failed write
            write_all(self._layer, fd, [data], self._size, len(data))
            self._layer.sync_data(fd)
        finally:
            self._layer.close(fd)
        self._size += len(data)
        self._note_covered(parse_lines(data))

    def _read(self) -> bytes:
        if not self._layer.exists(self.path):
            return b""
        with StoredFile.open(self._layer, self.path) as stored:
            return stored.read_all()

    def _rewrite(self, lines: list[Line]) -> RecordedSchema:
        data = "".join(one.text for one in lines).encode()
        if data or self._layer.exists(self.path):
            replace_file(self._layer, self.path, data)
        self._size = len(data)
        self.covered = None
        self._note_covered(lines)
        return RecordedSchema(lines)

    def _note_covered(self, lines: Iterable[Line]) -> None:
        for one in lines:
            if self.covered is None or one.place >= (binlog_number(self.covered[0]), self.covered[1]):
                self.covered = (str(one.facts["file"]), one.place[1])


def kept_from(lines: list[Line], oldest: str | None) -> list[Line]:
    """Return lines that say the same of everything from the beginning of the binlog `oldest` on."""
    if oldest is None:
        return []
    begin: Place = (binlog_number(oldest), FIRST_EVENT)
    lines = _without_old_covers(lines)
    later = [number for number, one in enumerate(lines) if one.place >= begin]
    if not lines or not later:
        return []
    if later[0] == 0:
        return lines
    # A span that covers the beginning continues; tables that were known in it are known from there.
    before, rest = lines[: later[0]], [one for one in lines[later[0] :] if one.place >= begin]
    if rest[0].kind == "watched":
        return rest
    schema = RecordedSchema(before)
    watched = next(one for one in reversed(before) if one.kind == "watched" or one is before[0])
    has_statements = bool(watched.facts.get("statements"))
    texts = [line("watched", oldest, FIRST_EVENT, **({"statements": True} if has_statements else {}))]
    texts += [database_line(name, default, oldest, FIRST_EVENT) for name, default in sorted(schema.charsets().items())]
    texts += [table_line(table_facts(table), oldest, FIRST_EVENT) for table in schema.standing(begin)]
    texts += [
        table_line(table_facts(table), oldest, FIRST_EVENT, WORKED_OUT) for table in schema.standing_worked_out(begin)
    ]
    return [*parse_lines("".join(texts).encode()), *rest]


def _without_old_covers(lines: list[Line]) -> list[Line]:
    """Keep only the last mark of each span among those that say up to where it was noted."""
    kept: list[Line] = []
    for one in lines:
        if one.kind == "covered" and kept and kept[-1].kind == "covered":
            kept.pop()
        kept.append(one)
    return [one for number, one in enumerate(kept) if one.kind != "covered" or _ends_a_span(kept, number)]


def _ends_a_span(lines: list[Line], number: int) -> bool:
    return number + 1 == len(lines) or lines[number + 1].kind == "watched"


def read_schema(directory: Path, named: tuple[str, str] = ("", "")) -> RecordedSchema:
    """Return what is recorded in an archive's directory; without a file it is empty. Raises: OSError.

    `named` is a schema and a table, in lower case, empty for any: lines of others are skipped, which saves time.
    """
    path = directory / SCHEMA_NAME
    data = read_file(path) if os.path.exists(path) else b""
    wanted = [
        f'"{key}": {json.dumps(name, ensure_ascii=False)}'.encode()
        for key, name in zip(("schema", "table"), named, strict=True)
        if name and name.isascii()
    ]
    if wanted:
        data = b"\n".join(raw for raw in data.split(b"\n") if _may_be_of(raw, wanted))
    return RecordedSchema.parse(data)


def recorded_lines(directory: Path) -> list[Line]:
    """Return all lines that are recorded in an archive's directory. Blocking. Raises: OSError."""
    path = directory / SCHEMA_NAME
    try:
        return list(parse_lines(read_file(path)))
    except FileNotFoundError:
        return []


def _may_be_of(raw: bytes, wanted: Sequence[bytes]) -> bool:
    """Return whether a line may be about the wanted table, or about no table."""
    if not raw.startswith((b'{"kind": "table"', b'{"kind": "dropped"')):
        return True
    line_in_lower_case = raw.lower()
    return all(one in line_in_lower_case for one in wanted)
