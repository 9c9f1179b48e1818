"""The recorder of the source's tables beside the stream: it notes statements that define some, and asks the source for the results.

The kernel reports where such statements are; everything else happens in a separate thread with its own connection, so the stream waits
for nothing. The source is asked when the stream has caught up with it, and the answer is kept once the stream has passed the position
at which it was given: then it is known which statements the answer includes.
"""

import asyncio
import contextlib
import hashlib
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pymysql.err
import structlog

from protocol.binlog.format_description import decode_first_event
from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import ProtocolError
from protocol.position import Position, binlog_number
from protocol.sql.tables.source_table import CharsetDefault, Table, TableName
from relay.archive.storage.files import StoredFile
from relay.binlog_file.head import read_start
from relay.packed_reads.archive_layer import layer_of
from relay.process.background import tell_fault
from relay.schema_history.definition_scan import (
    DefinitionEvent,
    is_about_triggers,
    logged_event,
    scan_definitions,
)
from relay.schema_history.logged_definition import LoggedDefinition
from relay.schema_history.schema_facts import Place
from relay.schema_history.schema_file import SchemaFile
from relay.schema_history.schema_record import database_line, line, table_line
from relay.source_tables.table_facts import table_facts
from relay.upstream.schema.definition_notes import DefinitionNotes
from relay.upstream.schema.foreign_key_query import ForeignKeyQuery
from relay.upstream.schema.information_schema import TooManyColumns, schemas_of, tables_of
from relay.upstream.schema.scanned_files import ScannedFile
from relay.upstream.schema.trigger_query import tables_with_triggers
from relay.upstream.source.connection import SourceConnection
from relay.upstream.source.source_errors import UpstreamError

log = structlog.get_logger()

_LOOK_S: Final = 0.2
"""The interval at which it is checked whether something was noted, or a position reached."""
_SETTLE_S: Final = 0.5
"""Statements that define tables come by the dozen: one query covers all of this time."""
_LEAST_PAUSE_S: Final = 1.0
_PAUSE_FACTOR: Final = 20
"""The source spends at most a twentieth of its time on our queries."""
_RETRY_S: Final = (5.0, 30.0, 300.0, 3600.0)
_MOST_COLUMNS: Final = 500_000
"""The most columns of all schemas together; the rest is left out, since the tables of an answer are held until they are written."""
_SCAN_LIMIT_BYTES: Final = 1 << 30
"""The number of bytes of an archive that are scanned at a start; what is older and was not noted stays unknown."""

GRANTS: Final = "GRANT REPLICATION CLIENT, REFERENCES ON *.* TO"


@dataclass(frozen=True, slots=True)
class _Answer:
    """The source's answer about a table: facts, or None if they are as recorded. For `names` see `_names_about`."""

    facts: str | None
    names: frozenset[str]


@dataclass(slots=True)
class SchemaRecording:
    """The part that outlives one stream: who writes the file, and what was already reported."""

    open_connection: Callable[[], Awaitable[SourceConnection]]
    user: str
    lock: threading.Lock = field(default_factory=threading.Lock)
    reported: set[str] = field(default_factory=set)

    def say_once(self, name: str, **facts: str) -> None:
        """Log a warning if it was not logged before."""
        if name not in self.reported:
            self.reported.add(name)
            log.warning(name, **facts)

    def mention_once(self, name: str, **facts: str) -> None:
        """Log an info event if it was not logged before."""
        if name not in self.reported:
            self.reported.add(name)
            log.info(name, **facts)


class SchemaWatch:
    """The recording during one stream. It is created on the event loop; `notes` is for the intake; `close` it with the stream."""

    def __init__(
        self,
        recording: SchemaRecording,
        directory: Path,
        held: Sequence[ScannedFile],
        place: Position | None,
        oldest: Callable[[], str | None],
    ) -> None:
        self.notes = DefinitionNotes(place)
        self._recording = recording
        self._file = SchemaFile(directory)
        self._held = held
        self._start = place
        self._oldest_now = oldest
        self._oldest = held[0].name if held else None
        self._known: dict[tuple[str, str], bytes] = {}
        """A digest of the tables that are recorded."""
        self._charsets: dict[str, CharsetDefault] = {}
        """The schemas' character sets and collations, as last queried."""
        self._children: dict[str, set[str]] = {}
        """This maps names of tables to the schemas of those whose foreign keys refer to them, all in lower case."""
        self._definitions: list[tuple[Place, frozenset[str] | None]] = []
        """The definitions since the open question was asked."""
        self._triggers: frozenset[TableName] | None = None
        """The tables that had triggers when this was last written; None if it must be rewritten."""
        self._left_out: set[str] = set()
        """Schemas with too many columns: it is unknown which tables their foreign keys refer to."""
        self._stale: set[str] = set()
        """Names in definitions since the last answer: the record of such tables ends there, even if it is the same."""
        self._all_stale = False
        self._scope: set[str] | None = None
        """Schemas to ask about, in lower case, and words that may be some; None means all of them."""
        self._due = True
        self._files_seen = 0
        self._waited = 0.0
        self._version = ("", "")
        """A file, and the version of the server that writes it."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._main, name="source-schema", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop recording. It returns at once; what was noted is written in a moment."""
        self._closed.set()
        loop, task = self._loop, self._task
        if loop is not None and task is not None:
            with contextlib.suppress(RuntimeError):  # It has just ended
                loop.call_soon_threadsafe(task.cancel)

    def join(self, timeout_s: float) -> None:
        """Return when the thread has ended, or after the time. Blocking."""
        self._thread.join(timeout_s)

    # --- the thread --------------------------------------------------------------------------------------------------

    def _main(self) -> None:
        with self._recording.lock:
            try:
                asyncio.run(self._record())
            except OSError as error:
                log.warning(
                    "source_schema_not_kept",
                    file=str(self._file.path),
                    why=error.strerror or str(error),
                    note="tried again at the next attachment; the stream is not affected",
                )
            except Exception as fault:
                tell_fault("source_schema_failed", fault, again="at the next attachment")
            finally:
                self.notes.wanted = False  # They are no longer taken

    async def _record(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._open_file()
        failures = 0
        try:
            while not self._closed.is_set():
                await self._wait_until_due()
                begun = time.monotonic()
                try:
                    if not await self._ask():
                        return
                    failures = 0
                    pause = max(_LEAST_PAUSE_S, _PAUSE_FACTOR * (time.monotonic() - begun - self._waited))
                except (UpstreamError, pymysql.err.MySQLError) as error:
                    pause = _RETRY_S[min(failures, len(_RETRY_S) - 1)]
                    failures += 1
                    self._due = True
                    self._scope = None
                    log.info("source_schema_not_seen", why=_reason(error), retry_in_s=pause)
                await self._pause(pause)
        except asyncio.CancelledError:
            pass
        finally:
            self.notes.wanted = False
            place = self._write_notes()
            if place is not None:
                self._file.append([line("covered", place.file, place.offset)])

    def _open_file(self) -> None:
        """Read the existing record, and note what the binlogs have had since then."""
        end = (self._start.file, self._start.offset) if self._start is not None else None
        schema = self._file.open(self._oldest, end)
        if end is not None:
            lines = self._look_through(end)
            self._file.append([*lines, line("covered", *end)])
            schema = self._file.open(self._oldest, end)
            place = (binlog_number(end[0]), end[1])
            for table in schema.standing(place):
                self._known[table.schema, table.name] = _digest(table_facts(table))
                self._note_parents(table)

    def _look_through(self, end: tuple[str, int]) -> list[str]:
        """Return the definitions between where they were last noted and `end`, in the archive's own files."""
        covered = self._file.covered
        last = binlog_number(end[0])
        todo: list[tuple[ScannedFile, int, int]] = []
        size = 0
        for held in reversed(self._held):
            number = binlog_number(held.name)
            if number > last:
                continue
            stop = end[1] if number == last else held.end
            start = FIRST_EVENT
            if covered is not None and number == binlog_number(covered[0]):
                start = covered[1]
            if covered is not None and number < binlog_number(covered[0]):
                break
            size += stop - start
            if size > _SCAN_LIMIT_BYTES and todo:
                covered = None
                break
            todo.append((held, start, stop))
        reached = covered is not None and any(held.name == covered[0] for held, _start, _stop in todo)
        lines: list[str] = []
        for held, start, stop in reversed(todo):
            if not reached:
                lines.append(_watched(held.name, start))
                reached = True
            try:
                lines += [self._definition_line(held.name, event) for event in scan_definitions(held.path, start, stop)]
            except (OSError, ValueError) as error:
                log.info("source_schema_gap", file=held.name, why=str(error))
                lines = []
                reached = False
        if not reached:
            lines.append(_watched(*end))
        return [text for text in lines if text]

    def _definition_line(self, file: str, event: DefinitionEvent | None, offset: int = -1) -> str:
        """Return the line for a definition; empty if it defines nothing. Note it for the open question, and the next one."""
        made = LoggedDefinition(None)
        if event is not None:
            offset = event.offset
            found = logged_event(event, self._version_of(file))
            if found is None and not is_about_triggers(event):
                return ""
            if found is None:
                self._triggers, self._due = None, True
                self._definitions.append(((binlog_number(file), offset), frozenset()))
                return line("trigger", file, offset)
            made = found
        names, schema = made.names, made.schema
        self._definitions.append(((binlog_number(file), offset), names))
        if names is None:
            self._scope = None
            self._all_stale = True
        else:
            self._stale |= names
            if self._scope is not None:
                self._scope |= names | {schema.lower()}
                self._scope.update(*(self._children.get(name, ()) for name in names))
        self._due = True
        told = {"sql": made.facts} if made.facts is not None else {}
        return line("definition", file, offset, names=sorted(names) if names is not None else None, **told)

    def _version_of(self, file: str) -> str:
        """Return the version of the server that writes a binlog, by its first event; empty if that cannot be read."""
        if self._version[0] != file:
            try:
                directory = self._file.path.parent
                with StoredFile.open(layer_of(directory), directory / file) as stored:
                    start = read_start(stored)
                self._version = (file, decode_first_event(start.event)[1].server_version)
            except (OSError, ProtocolError):
                return ""
        return self._version[1]

    def _write_notes(self) -> Position | None:
        """Write what was noted, and return up to where that is complete."""
        notes, place = self.notes.take()
        lines = []
        if self._file.covered is None and place is not None:
            lines.append(_watched(self.notes.first_file or place.file, FIRST_EVENT))
        lines += [self._definition_line(note.file, note.event, note.offset) for note in notes]
        new_file = self.notes.file_changes != self._files_seen and place is not None
        if new_file and place is not None:
            self._files_seen = self.notes.file_changes
            lines.append(line("covered", place.file, place.offset))
        self._file.append([text for text in lines if text])
        if new_file:
            oldest = self._oldest_now()
            if oldest is not None and oldest != self._oldest and self._oldest is not None:
                self._file.purge(oldest)
                self._triggers, self._due = None, True  # What was known before `oldest` is left out
            self._oldest = oldest
        return place

    async def _wait_until_due(self) -> None:
        while not self._due:
            await self._pause(_LOOK_S)
        await self._pause(_SETTLE_S)

    async def _pause(self, seconds: float) -> None:
        """Sleep, and write what is noted meanwhile."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, _LOOK_S))
            if self.notes.waiting or self.notes.file_changes != self._files_seen:
                self._write_notes()

    async def _reach(self, target: Position) -> None:
        """Return when the stream is at `target`, and what is defined up to there is written."""
        begun = time.monotonic()
        while True:
            place = self._write_notes()
            if place is not None and not place < target:
                break
            await asyncio.sleep(_LOOK_S)
        self._waited += time.monotonic() - begun

    # --- asking ------------------------------------------------------------------------------------------------------

    async def _ask(self) -> bool:
        """Ask the source once and write what is new. Return False if it reports too little ever to be of use."""
        self._waited = 0.0
        now = await self._newest_position()
        if now is None:
            return False
        await self._reach(now)
        # From here on it is open whether the answer includes what is noted: that is known when the stream has passed it.
        scope, self._scope = (self._scope, set())
        self._definitions.clear()
        self._due = False
        connection = await self._recording.open_connection()
        try:
            foreign_keys = ForeignKeyQuery(connection)
            charsets = await schemas_of(connection)
            if await foreign_keys.is_of_relay():
                charsets = dict.fromkeys(charsets, ("", ""))
            requested = {name for name in charsets if scope is None or name.lower() in scope}
            found: dict[TableName, _Answer] = {}
            columns = 0
            for name in sorted(requested):
                try:
                    tables = await tables_of(connection, name, foreign_keys, _MOST_COLUMNS - columns)
                except TooManyColumns as error:
                    requested.remove(name)
                    self._left_out.add(name)
                    self._recording.say_once("source_schema_too_large", what=str(error), note="it is not recorded")
                    continue
                for table in tables:
                    facts, key = table_facts(table), (table.schema, table.name)
                    columns += len(table.columns)
                    names = _names_about(table)
                    same = self._known.get(key) == _digest(facts) and not self._is_stale(names)
                    found[key] = _Answer(None if same else facts, names)
                    self._note_parents(table)
            is_of_relay = await foreign_keys.is_of_relay()
            triggers = None if is_of_relay else await tables_with_triggers(connection)
            then = await connection.newest_position()
        finally:
            connection.close()
        if then is None:
            return False
        await self._reach(then)
        self._keep(found, requested, charsets, then)
        self._keep_triggers(triggers, then)
        if foreign_keys.refusal:
            self._recording.mention_once(
                "source_foreign_keys_not_seen",
                what=f"the source does not tell its foreign keys: {foreign_keys.refusal}",
                note="they are known of tables that statements in the archive define, and not of others",
                advice=self._advice_on_foreign_keys if foreign_keys.lacks_privilege else "",
            )
        if scope is None and not found and not self._known:
            self._recording.say_once(
                "source_schema_empty",
                what="the source shows this account no table",
                note="where it has some, audits show rows without the names of their columns",
                advice=self._advice,
            )
        return True

    async def _newest_position(self) -> Position | None:
        connection = await self._recording.open_connection()
        try:
            position = await connection.newest_position()
        finally:
            connection.close()
        if position is None:
            self._recording.say_once(
                "source_schema_not_recorded",
                what="the source does not tell its position, so it cannot be known of when its tables are",
                advice=self._advice,
            )
        return position

    @property
    def _advice(self) -> str:
        return f"On the source: {GRANTS} '{self._recording.user}'@'<relay host>'; or source.record_schema = false."

    @property
    def _advice_on_foreign_keys(self) -> str:
        return f"On the source, where they are wanted: GRANT PROCESS ON *.* TO '{self._recording.user}'@'<relay host>'."

    def _is_stale(self, names: frozenset[str]) -> bool:
        return self._all_stale or not names.isdisjoint(self._stale)

    def _note_parents(self, table: Table) -> None:
        for _schema, parent in table.parents:
            self._children.setdefault(parent, set()).add(table.schema.lower())

    def _keep(
        self,
        found: dict[TableName, _Answer],
        requested: set[str],
        schemas: dict[str, CharsetDefault],
        then: Position,
    ) -> None:
        """Write the answer about tables. `requested` are the schemas that it concerns."""
        place = (binlog_number(then.file), then.offset)
        news = [names for at, names in self._definitions if at < place]

        def unsure(*about: str) -> bool:
            return any(names is None or not names.isdisjoint(about) for names in news)

        lines: list[str] = []
        for key, answer in found.items():
            # A table that changed while it was asked is left: the statement has made the next query due.
            if answer.facts is not None and not unsure(*answer.names):
                lines.append(table_line(answer.facts, then.file, then.offset))
                self._known[key] = _digest(answer.facts)
        for name, default in schemas.items():
            if default[0] and self._charsets.get(name) != default and not unsure(name.lower()):
                lines.append(database_line(name, default, then.file, then.offset))
                self._charsets[name] = default
        for key in list(self._known):
            if key not in found and (key[0] in requested or key[0] not in schemas) and not unsure(key[1].lower()):
                lines.append(line("dropped", then.file, then.offset, schema=key[0], table=key[1]))
                del self._known[key]
        self._file.append(lines)
        if lines:
            self._triggers = None
        self._stale = {name for _at, names in self._definitions for name in names or ()}
        self._all_stale = any(names is None for _at, names in self._definitions)
        if any('"kind": "database"' not in one for one in lines):
            log.info("source_schema_recorded", tables=len(self._known), news=len(lines), position=str(then))

    def _keep_triggers(self, triggers: frozenset[TableName] | None, then: Position) -> None:
        """Write which tables have triggers. If something was defined meanwhile, the next answer does."""
        place = (binlog_number(then.file), then.offset)
        if (
            triggers is None
            or self._left_out
            or triggers == self._triggers
            or any(at < place for at, _names in self._definitions)
        ):
            return
        self._file.append([line("triggers", then.file, then.offset, tables=sorted(map(list, triggers)))])
        self._triggers = triggers


def _names_about(table: Table) -> frozenset[str]:
    """Return the names, in lower case, that occur in a statement that changes a table: its own and its parents'."""
    return frozenset((table.name.lower(), *(parent for _schema, parent in table.parents)))


def _watched(file: str, offset: int) -> str:
    """Return the line after which all statements are noted, with their texts."""
    return line("watched", file, offset, statements=True)


def _reason(error: UpstreamError | pymysql.err.MySQLError) -> str:
    return str(error) if isinstance(error, UpstreamError) else " ".join(map(str, error.args))


def _digest(facts: str) -> bytes:
    return hashlib.blake2b(facts.encode(), digest_size=16).digest()
