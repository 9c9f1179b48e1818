"""`catalog.sqlite`: what is known about each file, the source's identity, and the append-only ledger.

Files are the truth: rows can be rebuilt by `relay.archive.recovery.recovery`. The ledger cannot, nor the source's identity and the
origin of a generation: so nothing deletes from the ledger, and all three are written to `ledger.jsonl` too.

Each row has a checksum of its own: SQLite finds pages that are not its own, but not a value that was changed.
"""

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import ExitCode
from protocol.position import binlog_number
from relay.archive.catalog.catalog_faults import is_damage
from relay.archive.catalog.catalog_layout import EARLIER, KEEPS_TEXT, LAYOUT, MARKS, SCHEMA, SUMMED, is_newer
from relay.archive.catalog.catalog_rows import (
    DamagedPlace,
    LedgerRow,
    damage_values,
    decoded_gtids,
    decoded_state,
    encoded_state,
    file_of,
    file_row,
    ledger_values,
    row_sum,
    summed,
)
from relay.archive.catalog.ledger_records import identity_record, ledger_record, origin_record
from relay.archive.catalog.ledger_text import LedgerText, LedgerTextLost, Record
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.archived_file import ArchivedFile, SourceIdentity
from relay.archive.storage.disk_advice import disk_advice
from relay.archive.storage.files import LEDGER_TEXT_NAME, FileLayer
from relay.archive.storage.gtid_facts import GtidChain, GtidEntry, GtidFacts, encode_state
from relay.archive.storage.ledger_kinds import LEDGER_TEXT_REMADE
from relay.archive.storage.origin import Origin
from relay.archive.storage.storage_location import StorageLocation, Tier
from relay.disk.database_file import open_database, open_database_to_read

_FILE_COLUMNS: Final = f"{SUMMED['files']}, sum"
_SELECT_FILES: Final = f"SELECT {_FILE_COLUMNS} FROM files ORDER BY number"  # noqa: S608 - constants only
_PUT_FILE: Final = f"REPLACE INTO files ({_FILE_COLUMNS}) VALUES ({','.join('?' * 17)})"  # noqa: S608
_ADD_FILE: Final = f"INSERT OR IGNORE INTO files ({_FILE_COLUMNS}) VALUES ({','.join('?' * 17)})"  # noqa: S608
_SELECT_GTIDS: Final = (
    "SELECT number, flavour, before, inside, anonymous, gtids.sum FROM gtids JOIN files USING (number) ORDER BY number"
)
_GTIDS: Final = "SELECT flavour, before, inside, anonymous, gtids.sum FROM gtids JOIN files USING (number)"
_PUT_GTIDS: Final = f"REPLACE INTO gtids ({SUMMED['gtids']}, sum) VALUES (?, ?, ?, ?, ?)"  # noqa: S608
_ADD_LEDGER: Final = f"INSERT INTO ledger ({SUMMED['ledger']}, sum) VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_ADD_DAMAGE: Final = f"INSERT OR IGNORE INTO damage ({SUMMED['damage']}, sum) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608
_HAS_LEDGER: Final = "SELECT 1 FROM ledger WHERE file = ? AND time = ? AND kind = ?"

REMADE: Final = "It was made again from the catalog."
_P = ParamSpec("_P")
_T = TypeVar("_T")


class CatalogUnreadable(ArchiveError):
    """`catalog.sqlite` is damaged, or is no catalog."""


class CatalogNewer(ArchiveError):
    """`catalog.sqlite` was written by a later version, which may keep in the archive what this one would not maintain."""

    exit_code = ExitCode.WRONG_USE

    def __init__(self, path: Path, layout: int) -> None:
        super().__init__(
            f"{path} has layout {layout}: a newer binlog-relay wrote it, and this one knows layouts up to {LAYOUT}",
            advice="Nothing was changed. Start the newer binlog-relay again, or put back the copy of the archive from before the "
            "upgrade; docs/RUNNING.md has the way back.",
        )
        self.layout = layout


def _told(method: Callable[Concatenate["Catalog", _P], _T]) -> Callable[Concatenate["Catalog", _P], _T]:
    """Convert SQLite's reports of damage to CatalogUnreadable."""

    @wraps(method)
    def call(self: "Catalog", /, *args: _P.args, **named: _P.kwargs) -> _T:
        try:
            return method(self, *args, **named)
        except (sqlite3.Error, UnicodeError, OverflowError) as error:
            if is_damage(error, self.path):
                raise CatalogUnreadable(f"the catalog is damaged: {error}", file=self.path.name) from error
            raise

    return call


def _layout_of(db: sqlite3.Connection, path: Path) -> int:
    """Return the layout of the catalog. Raises: CatalogNewer; sqlite3.Error."""
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if is_newer(version, int(db.execute("PRAGMA application_id").fetchone()[0])):
        raise CatalogNewer(path, version)
    return version


def _log() -> Any:
    # Spark's executors read catalogs, and have no structlog.
    import structlog

    return structlog.get_logger(__name__)


class Catalog:
    """The database, on one connection that must stay in one thread.

    Every method raises CatalogUnreadable if the database turns out to be damaged, and sqlite3.Error if it cannot be read or written
    for another reason. Those that add to the ledger, and `set_identity` and `set_origin`, have also written to `ledger.jsonl`,
    durably on return, if it can be written.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path, layer: FileLayer | None = None) -> None:
        self._db = connection
        self.path = path
        self._layer = layer
        self._text = None if layer is None else LedgerText(path.with_name(LEDGER_TEXT_NAME), layer)
        self._text_fails = False
        self.is_new = False
        """True if there was no catalog, or an empty one, when it was opened."""
        self.had_no_text = False
        """True if it was written by a version that had no `ledger.jsonl`."""

    @classmethod
    def open(cls, path: Path, layer: FileLayer) -> "Catalog":
        """Open the catalog for writing; it is created when missing (mode 0640; SQLite gives -wal and -shm the same).

        Raises: CatalogUnreadable; CatalogNewer; OSError; sqlite3.OperationalError (disk full).
        """
        if not layer.exists(path):
            layer.close(layer.create(path))
        db = open_database(path)
        catalog = cls(db, path, layer)
        try:
            catalog._prepare()
        except BaseException:
            db.close()
            raise
        return catalog

    @_told
    def _prepare(self) -> None:
        db = self._db
        version = _layout_of(db, self.path)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        if version == 0 and not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            self.is_new = True
            db.executescript(f"BEGIN; {SCHEMA} {MARKS} COMMIT;")
        elif version == LAYOUT - 1:
            db.executescript(f"BEGIN; {EARLIER[version]} {MARKS} COMMIT;")
        elif version in EARLIER:
            self.had_no_text = True
            db.executescript(f"BEGIN; {EARLIER[version]}")
            for table, columns in SUMMED.items():
                rows = db.execute(f"SELECT rowid, {columns} FROM {table}")  # noqa: S608 - constants only
                sums = [(row_sum((*row,)), number) for number, *row in rows]
                db.executemany(f"UPDATE {table} SET sum = ? WHERE rowid = ?", sums)  # noqa: S608
            db.executescript(f"{KEEPS_TEXT} {MARKS}")
        elif version != LAYOUT:
            raise CatalogUnreadable(
                f"the catalog has layout {version}, this program writes layout {LAYOUT}", file=self.path.name
            )

    @classmethod
    def open_read_only(cls, path: Path) -> "Catalog":
        """Open the catalog while a relay may be running, without its lock.

        Raises: CatalogUnreadable, also when there is no catalog; CatalogNewer.
        """
        try:
            db = open_database_to_read(path)
            version = _layout_of(db, path)
        except (sqlite3.DatabaseError, UnicodeError, OSError) as error:
            raise CatalogUnreadable(f"the catalog cannot be read: {error}", file=path.name) from error
        if version != LAYOUT:
            db.close()
            raise CatalogUnreadable(f"the catalog has layout {version}, not {LAYOUT}", file=path.name)
        return cls(db, path)

    def close(self) -> None:
        """Close the connection."""
        if self._text is not None:
            self._text.close()
        self._db.close()

    @contextlib.contextmanager
    def _transaction(self, *, durable: bool = False) -> Iterator[None]:
        """Run the block as one transaction. durable: on return it is on stable storage, not only safe from a crash of this process."""
        if durable:
            self._db.execute("PRAGMA synchronous=FULL")
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # SQLite has done it already if it met damage
                    self._db.execute("ROLLBACK")
                raise
            try:
                self._db.execute("COMMIT")
            except sqlite3.Error:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise
        finally:
            if durable:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("PRAGMA synchronous=NORMAL")

    def _sound(self, rows: Iterable[tuple[Any, ...]], table: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows without their checksums, which are the last values. Raises: CatalogUnreadable at one that is wrong."""
        for row in rows:
            values = row[:-1]
            if row_sum(values) != row[-1]:
                raise CatalogUnreadable(f"the catalog is damaged: a row of {table} was changed", file=self.path.name)
            yield values

    # --- files -------------------------------------------------------------------------------------------------------

    @_told
    def files(self) -> list[ArchivedFile]:
        """Return all rows by number."""
        places = self._places()
        files = [file_of(row) for row in self._sound(self._db.execute(_SELECT_FILES), "files")]
        if places:
            for file in files:
                file.place = places.get(file.number)
        return files

    def _places(self) -> dict[int, StorageLocation]:
        rows = self._db.execute(f"SELECT {SUMMED['places']}, sum FROM places")  # noqa: S608 - constants only
        return {row[0]: StorageLocation(Tier(row[1]), *row[2:]) for row in self._sound(rows, "places")}

    @_told
    def put_place(self, number: int, place: StorageLocation | None) -> None:
        """Note where a file is; None: on the disk as it was received."""
        if place is None:
            self._db.execute("DELETE FROM places WHERE number = ?", (number,))
            return
        values = (number, str(place.tier), *(getattr(place, name) for name in StorageLocation.__slots__[1:]))
        statement = f"REPLACE INTO places ({SUMMED['places']}, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
        self._db.execute(statement, summed(values))

    @_told
    def gtids_of(self, number: int) -> tuple[str, bytes | None, bytes | None, int] | None:
        """Return one file's GTIDs as they are stored; None: there are none, or they were changed."""
        for flavour, before, inside, anonymous, total in self._db.execute(f"{_GTIDS} WHERE number = ?", (number,)):
            if row_sum((number, before, inside, anonymous)) == total:
                return flavour, before, inside, anonymous
        return None

    @_told
    def file(self, name: str) -> ArchivedFile | None:
        """Return the row of one file; None: there is none."""
        return self._file_of(name)

    @_told
    def gtids(self) -> dict[int, GtidFacts | None]:
        """Return, by number, each sealed file's GTIDs; None if what is stored cannot be decoded: the file must be read again.
        `before` None: the state after the file before it."""
        return {
            number: decoded_gtids(flavour, before, inside, anonymous)
            if row_sum((number, before, inside, anonymous)) == total
            else None
            for number, flavour, before, inside, anonymous, total in self._db.execute(_SELECT_GTIDS)
        }

    @_told
    def put_files(
        self, files: Iterable[ArchivedFile], gtids: Iterable[GtidEntry] = (), *, in_place_of_all: bool = False
    ) -> None:
        """Write whole rows, in one transaction; `gtids`, oldest first, of those that are sealed."""
        with self._transaction():
            if in_place_of_all:
                for table in ("files", "gtids", "places"):
                    self._db.execute(f"DELETE FROM {table}")  # noqa: S608 - constants only
            for file in files:
                self._db.execute(_PUT_FILE, summed(file_row(file)))
                if file.place is not None or not in_place_of_all:
                    self.put_place(file.number, file.place)
            for entry in gtids:
                self._put_gtids(entry)

    @_told
    def add_missing_files(
        self, files: Iterable[ArchivedFile], places: Iterable[DamagedPlace], checks: Mapping[int, float]
    ) -> None:
        """Write the rows of those that have none, with their damaged places and the time of their last check, by number.

        Of a file that is not sealed nothing counts as synced.
        """
        rows = []
        placed = []
        for file in files:
            row = file_row(file)
            if file.place is not None:
                placed.append((file.number, file.place))
            if not file.sealed:
                name, number, _end, *facts = row
                row = (name, number, FIRST_EVENT, *facts[:8], 0, 0, *facts[10:])
            rows.append(summed(row))
        with self._transaction():
            self._db.executemany(_ADD_FILE, rows)
            for number, where in placed:
                self.put_place(number, where)
            self._db.executemany(_ADD_DAMAGE, map(damage_values, places))
            self._db.executemany("INSERT OR IGNORE INTO checks (number, time) VALUES (?, ?)", checks.items())

    @_told
    def take_over_files(
        self, files: Iterable[tuple[Any, ...]], gtids: Iterable[tuple[Any, ...]], damage: Iterable[tuple[Any, ...]]
    ) -> None:
        """Write rows as another catalog had them, each in the order of `SUMMED`, in one transaction."""
        with self._transaction():
            self._db.executemany(_ADD_FILE, map(summed, files))
            self._db.executemany(_PUT_GTIDS, map(summed, gtids))
            self._db.executemany(_ADD_DAMAGE, map(summed, damage))

    @_told
    def put_sealed(self, row: tuple[object, ...], gtids: GtidEntry) -> None:
        """Write the row, made by `file_row`, of a file that was sealed, and its GTIDs, in one transaction."""
        with self._transaction():
            self._db.execute(_PUT_FILE, summed(row))
            self._put_gtids(gtids)

    def _put_gtids(self, entry: GtidEntry) -> None:
        before = entry.before
        if before is not None and entry.follows:
            # Unless the file before it was purged meanwhile: then the state is recorded nowhere else.
            found = self._db.execute("SELECT 1 FROM gtids WHERE number = ?", (entry.number - 1,)).fetchone()
            before = before if found is None else None
        row = (
            entry.number,
            None if before is None else encode_state(before),
            None if entry.inside is None else encode_state(entry.inside),
            entry.anonymous,
        )
        self._db.execute(_PUT_GTIDS, summed(row))

    def _forget(self, names: Iterable[str]) -> None:
        """Delete files' rows; the file after them gets the state before it stored, if it was left to them."""
        gone = set(names)
        left = len(gone)
        chain = GtidChain()
        successors = False
        deleted: list[tuple[int, str]] = []
        updated = []
        cursor = self._db.execute(
            "SELECT number, name, flavour, before, inside, anonymous FROM files LEFT JOIN gtids USING (number) "
            "ORDER BY number"
        )
        # Those that go are mostly the oldest: the rest of a long list is not read.
        for number, name, flavour, *stored in cursor:
            if not left and not successors:
                break
            facts = decoded_gtids(flavour, *stored)
            if name in gone:
                successors = True
                left -= 1
                deleted.append((number, name))
            elif successors:
                successors = False
                if stored[0] is None and stored[2] is not None and chain.state is not None:
                    updated.append(summed((number, encode_state(chain.state), *stored[1:])))
            if facts is None:
                chain = GtidChain(number)
            else:
                chain.add(number, facts)
        cursor.close()
        for table in ("files", "gtids", "checks", "places"):
            statement = f"DELETE FROM {table} WHERE number = ?"  # noqa: S608 - constants only
            self._db.executemany(statement, [(number,) for number, _name in deleted])
        self._db.executemany("DELETE FROM damage WHERE file = ?", [(name,) for _number, name in deleted])
        self._db.executemany(_PUT_GTIDS, updated)

    @_told
    def put_file(self, row: tuple[object, ...]) -> None:
        """Write one row made by `file_row`."""
        self._db.execute(_PUT_FILE, summed(row))

    @_told
    def checkpoint(self, name: str, end: int, events: int, groups: int, last_timestamp: int) -> None:
        """Note that the open file is synced up to the boundary `end`."""
        file = self._file_of(name)
        if file is not None and not file.sealed:
            file.end, file.events, file.groups, file.last_timestamp = end, events, groups, last_timestamp
            self.put_file(file_row(file))

    @_told
    def set_digest(self, name: str, digest: str) -> None:
        """Note a sealed file's digest."""
        file = self._file_of(name)
        if file is not None:
            file.digest = digest
            self.put_file(file_row(file))

    def _file_of(self, name: str) -> ArchivedFile | None:
        # By its number: a damaged index of names would hide it.
        statement = f"SELECT {_FILE_COLUMNS} FROM files WHERE number = ?"  # noqa: S608 - constants only
        for row in self._sound(self._db.execute(statement, (binlog_number(name),)).fetchall(), "files"):
            return file_of(row) if row[0] == name else None
        return None

    @_told
    def forget_files(self, rows: Iterable[LedgerRow]) -> None:
        """Forget the files that `rows` are about and add the rows, in one transaction, durable on return.

        A row that exists already (the same time too) is not added again: what was begun before a crash is finished.
        """
        rows = list(rows)
        added = []
        self.write_text()
        with self._transaction(durable=True):
            self._forget(row.file for row in rows)
            for row in rows:
                if self._db.execute(_HAS_LEDGER, (row.file, row.time, row.kind)).fetchone() is None:
                    self._db.execute(_ADD_LEDGER, ledger_values(row))
                    added.append(ledger_record(row))
        self.write_text(added)

    # --- the records that are in ledger.jsonl too ----------------------------------------------------------------------

    @_told
    def identity(self) -> SourceIdentity | None:
        """Return the source's identity, or None before the first `set_identity`."""
        rows = self._db.execute(f"SELECT {SUMMED['source']}, sum FROM source").fetchall()  # noqa: S608 - constants only
        return next((SourceIdentity(*row[1:]) for row in self._sound(rows, "source")), None)

    @_told
    def set_identity(self, identity: SourceIdentity) -> None:
        """Store the source's identity."""
        values = (1, identity.flavour, identity.version, identity.server_id, identity.server_uuid)
        self._db.execute(
            f"REPLACE INTO source ({SUMMED['source']}, sum) VALUES (?, ?, ?, ?, ?, ?)",  # noqa: S608
            summed(values),
        )
        self.write_text([identity_record(identity)])

    @_told
    def origin(self) -> Origin | None:
        """Return how this generation began; None for the first one, or if it cannot be read."""
        rows = self._db.execute(f"SELECT {SUMMED['beginning']}, sum FROM beginning").fetchall()  # noqa: S608
        for _one, time_s, file, after_file, after_offset, flavour, state in self._sound(rows, "beginning"):
            return Origin(time_s, file, after_file, after_offset, decoded_state(flavour, state))
        return None

    @_told
    def set_origin(self, origin: Origin) -> None:
        """Store how this generation began."""
        flavour, state = encoded_state(origin)
        values = (1, float(origin.time), origin.file, origin.after_file, origin.after_offset, flavour, state)
        self._db.execute(
            f"REPLACE INTO beginning ({SUMMED['beginning']}, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
            summed(values),
        )
        self.write_text([origin_record(origin)])

    @_told
    def add_ledger(self, row: LedgerRow) -> None:
        """Append one row, durable on return, unless the newest row says the same: retries must not fill the disk."""
        newest = self._db.execute("SELECT kind, file, offset, text FROM ledger ORDER BY id DESC LIMIT 1").fetchone()
        if newest == (row.kind, row.file, row.offset, row.text):
            self.write_text()
            return
        with self._transaction(durable=True):
            self._db.execute(_ADD_LEDGER, ledger_values(row))
        self.write_text([ledger_record(row)])

    @_told
    def add_ledger_once(self, row: LedgerRow) -> None:
        """Do as `add_ledger`, unless that very finding (kind, file, offset) exists already."""
        found = self._db.execute(
            "SELECT 1 FROM ledger WHERE kind = ? AND file = ? AND offset = ? LIMIT 1", (row.kind, row.file, row.offset)
        ).fetchone()
        if found is None:
            self.add_ledger(row)
        else:
            self.write_text()

    @_told
    def ledger(self) -> list[LedgerRow]:
        """Return all rows, oldest first."""
        rows = self._db.execute(f"SELECT {SUMMED['ledger']}, sum FROM ledger ORDER BY time, id")  # noqa: S608
        return [LedgerRow(*row) for row in self._sound(rows, "ledger")]

    @_told
    def newest_ledger_rows(self, count: int) -> list[LedgerRow]:
        """Return the rows that were added last, the newest first."""
        order = f"SELECT {SUMMED['ledger']}, sum FROM ledger ORDER BY id DESC LIMIT ?"  # noqa: S608
        return [LedgerRow(*row) for row in self._sound(self._db.execute(order, (count,)), "ledger")]

    @_told
    def newest_ledger_row(self) -> LedgerRow | None:
        """Return the row that was added last."""
        rows = self._db.execute(f"SELECT {SUMMED['ledger']}, sum FROM ledger ORDER BY id DESC LIMIT 1")  # noqa: S608
        return next((LedgerRow(*row) for row in self._sound(rows, "ledger")), None)

    @_told
    def count_ledger(self) -> dict[str, int]:
        """Return the number of rows of each kind."""
        return dict(self._db.execute("SELECT kind, count(*) FROM ledger GROUP BY kind").fetchall())

    @_told
    def take_over(self, rows: Iterable[LedgerRow], identity: SourceIdentity | None, origin: Origin | None) -> None:
        """Add what only `ledger.jsonl` has, in one transaction, durable on return."""
        text, self._text = self._text, None
        try:
            with self._transaction(durable=True):
                self._db.executemany(_ADD_LEDGER, map(ledger_values, rows))
                if identity is not None:
                    self.set_identity(identity)
                if origin is not None:
                    self.set_origin(origin)
        finally:
            self._text = text

    @_told
    def records(self) -> list[Record]:
        """Return the records that belong into `ledger.jsonl`."""
        found = [ledger_record(row) for row in self.ledger()]
        identity, origin = self.identity(), self.origin()
        if identity is not None:
            found.append(identity_record(identity))
        if origin is not None:
            found.append(origin_record(origin))
        return found

    def write_text(self, records: Iterable[Record] = ()) -> None:
        """Add to `ledger.jsonl` what is missing there. Raises: CatalogUnreadable.

        If it cannot be written, that is logged, and each later call tries again: the catalog has it all.
        """
        text = self._text
        if text is None:
            return
        text.add(records)
        try:
            try:
                text.flush()
            except LedgerTextLost as lost:
                self._note_lost_text(text, str(lost))
                self._replace_text(text)
        except OSError as error:
            self._log_text_failure(error)
        else:
            self._text_fails = False

    def remake_text(self) -> None:
        """Rewrite `ledger.jsonl`, as `write_text` does. Raises: CatalogUnreadable."""
        if self._text is None:
            return
        try:
            self._replace_text(self._text)
        except OSError as error:
            self._log_text_failure(error)

    def _replace_text(self, text: LedgerText) -> None:
        text.replace(self.records())

    def _note_lost_text(self, text: LedgerText, how: str) -> None:
        if len(self.records()) <= text.waiting:
            return  # there was nothing in it yet
        row = LedgerRow(time.time(), LEDGER_TEXT_REMADE, LEDGER_TEXT_NAME, -1, f"{LEDGER_TEXT_NAME} {how}. {REMADE}")
        with self._transaction(durable=True):
            self._db.execute(_ADD_LEDGER, ledger_values(row))
        log = _log()
        log.warning("archive_ledger", kind=row.kind, file=row.file, offset=row.offset, text=row.text)

    def _log_text_failure(self, error: OSError) -> None:
        if not self._text_fails:
            assert self._layer is not None
            advice = disk_advice(self._layer, self.path.parent, error.errno or 0)
            log = _log()
            log.error("ledger_text_not_written", what=str(error), advice=advice or None)
        self._text_fails = True

    # --- damage and checks -------------------------------------------------------------------------------------------

    @_told
    def damaged_places(self) -> list[DamagedPlace]:
        """Return all damaged places, by file and offset."""
        rows = self._db.execute(f"SELECT {SUMMED['damage']}, sum FROM damage ORDER BY file, offset")  # noqa: S608
        return [DamagedPlace(*row) for row in self._sound(rows, "damage")]

    @_told
    def add_damage(self, place: DamagedPlace) -> None:
        """Remember a place, once."""
        self._db.execute(_ADD_DAMAGE, damage_values(place))

    @_told
    def forget_damage(self, file: str) -> None:
        """Forget the damage of a file that is again what was archived."""
        self._db.execute("DELETE FROM damage WHERE file = ?", (file,))

    @_told
    def checks(self) -> dict[int, float]:
        """Return, by number, when each sealed file was last found to be what was archived, in seconds since 1970."""
        return dict(self._db.execute("SELECT number, time FROM checks").fetchall())

    @_told
    def note_check(self, number: int, time_s: float) -> None:
        """Note that all bytes of the sealed file `number` were found to be what was archived."""
        self._db.execute("INSERT OR REPLACE INTO checks (number, time) VALUES (?, ?)", (number, time_s))

    # --- the database itself -----------------------------------------------------------------------------------------

    def damage(self) -> str | None:
        """Return what SQLite finds wrong with the database file, or None. Raises: sqlite3.Error if it cannot look."""
        try:
            verdict: str = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        except (sqlite3.DatabaseError, UnicodeError) as error:
            if is_damage(error, self.path):
                return str(error)
            raise
        return None if verdict == "ok" else verdict

    def copy_to(self, path: Path) -> None:
        """Write all of it to the new, empty file `path`, durably. Raises: sqlite3.Error."""
        target = open_database(path)
        try:
            target.execute("PRAGMA synchronous=FULL")
            self._db.backup(target)
        finally:
            target.close()
