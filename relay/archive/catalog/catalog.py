"""`catalog.sqlite`: what is known about each file, the source's identity, and the append-only ledger.

Files are the truth: rows can be made again by `relay.archive.recovery.recovery`. The ledger cannot, so nothing deletes from it.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from protocol.errors import Malformed
from protocol.gtid.gtid_set import GtidSet
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.archived_file import ArchivedFile, SourceIdentity
from relay.archive.storage.files import FileLayer
from relay.archive.storage.gtid_facts import GtidChain, GtidEntry, GtidFacts, decode_state, encode_state
from relay.archive.storage.origin import Origin

_SCHEMA_VERSION: Final = 4
_ORIGIN_SCHEMA: Final = """
CREATE TABLE beginning (            -- of a generation that is not the first; `Origin` says what it means
    one INTEGER PRIMARY KEY CHECK (one = 1),
    time REAL NOT NULL,
    file TEXT NOT NULL,
    after_file TEXT NOT NULL,
    after_offset INTEGER NOT NULL,
    flavour TEXT NOT NULL,
    state BLOB                      -- as in the event at a file's head; NULL: not known
) STRICT;
"""
_GTIDS_SCHEMA: Final = """
CREATE TABLE gtids (                -- of sealed files
    number INTEGER PRIMARY KEY,
    before BLOB,                    -- as in the event at a file's head; NULL: the state behind the file before it, or nothing
    inside BLOB,                    -- the whole transactions in it, in the same form; NULL: they cannot be read
    anonymous INTEGER NOT NULL      -- transactions without a GTID
) STRICT;
"""
_DAMAGE_SCHEMA: Final = """
CREATE TABLE damage (               -- where archived files are not what was archived; a repair removes the row
    file TEXT NOT NULL,
    offset INTEGER NOT NULL,        -- the first byte that is known to be wrong
    boundary INTEGER NOT NULL,      -- end of the last whole transaction before it: streams end there
    found REAL NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (file, offset)
) STRICT;
CREATE TABLE checks (               -- of sealed files: when all bytes were last found to be what was archived
    number INTEGER PRIMARY KEY,
    time REAL NOT NULL
) STRICT;
"""
_SCHEMA: Final = f"""{_GTIDS_SCHEMA}{_ORIGIN_SCHEMA}{_DAMAGE_SCHEMA}
CREATE TABLE files (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    end INTEGER NOT NULL,           -- sealed: size; open: a synced transaction boundary, recovery scans from here
    sealed INTEGER NOT NULL,
    created INTEGER NOT NULL,
    server_version TEXT NOT NULL,
    server_id INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    flavour TEXT NOT NULL,
    first_timestamp INTEGER NOT NULL,
    last_timestamp INTEGER NOT NULL,
    events INTEGER NOT NULL,        -- as of `end`
    groups INTEGER NOT NULL,        -- as of `end`
    cut INTEGER NOT NULL,
    damaged INTEGER NOT NULL,
    digest TEXT
) STRICT;
CREATE TABLE source (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    flavour TEXT NOT NULL,
    version TEXT NOT NULL,
    server_id INTEGER NOT NULL,
    server_uuid TEXT
) STRICT;
CREATE TABLE ledger (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time REAL NOT NULL,
    kind TEXT NOT NULL,
    file TEXT NOT NULL,
    offset INTEGER NOT NULL,
    text TEXT NOT NULL,
    details TEXT NOT NULL DEFAULT ''    -- JSON, for programs; empty: none
) STRICT;
CREATE TRIGGER ledger_keeps_rows BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_keeps_text BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""
# What catalogs of earlier layouts lack. Recovery fills the GTIDs from the files.
_SINCE_3: Final = f"{_DAMAGE_SCHEMA} ALTER TABLE ledger ADD COLUMN details TEXT NOT NULL DEFAULT '';"
_EARLIER: Final = {
    1: _GTIDS_SCHEMA + _ORIGIN_SCHEMA + _SINCE_3,
    2: _ORIGIN_SCHEMA + _SINCE_3,
    3: _SINCE_3,
}
_FILE_COLUMNS: Final = (
    "name, number, end, sealed, created, server_version, server_id, checksum, flavour, "
    "first_timestamp, last_timestamp, events, groups, cut, damaged, digest"
)
_SELECT_FILES: Final = f"SELECT {_FILE_COLUMNS} FROM files ORDER BY number"  # noqa: S608 - constants only
_PUT_FILE: Final = f"INSERT OR REPLACE INTO files ({_FILE_COLUMNS}) VALUES ({','.join('?' * 16)})"  # noqa: S608

_ADD_LEDGER_ONCE: Final = (
    "INSERT INTO ledger (time, kind, file, offset, text, details) SELECT ?, ?, ?, ?, ?, ? "
    "WHERE NOT EXISTS (SELECT 1 FROM ledger WHERE time = ? AND kind = ? AND file = ?)"
)


class CatalogUnreadable(ArchiveError):
    """`catalog.sqlite` is damaged, or was written by another version."""


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One thing that an operator must be able to find later. `time` in seconds since 1970, `offset` -1 where none.

    `details`: what a program must be able to read of it, as a JSON object; empty: nothing.
    """

    time: float
    kind: str
    file: str
    offset: int
    text: str
    details: str = ""


@dataclass(frozen=True, slots=True)
class DamagedPlace:
    """A place where an archived file is not what was archived.

    `offset`: the first byte that is known to be wrong. `boundary`: the end of the last whole transaction before it, where
    streams end. `found`: seconds since 1970. `text`: what is wrong, without a full stop.
    """

    file: str
    offset: int
    boundary: int
    found: float
    text: str


class Catalog:
    """The database, on one connection that must stay in one thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    @classmethod
    def open(cls, path: Path, layer: FileLayer) -> "Catalog":
        """Opens for writing, made when missing (mode 0640; SQLite gives -wal and -shm the same).

        Raises: CatalogUnreadable; OSError; sqlite3.OperationalError (disk full).
        """
        if not path.exists():
            layer.close(layer.create(path))
        db = sqlite3.connect(path, isolation_level=None, timeout=10.0)
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version == 0 and not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                db.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version={_SCHEMA_VERSION}; COMMIT;")
            elif version in _EARLIER:
                db.executescript(f"BEGIN; {_EARLIER[version]} PRAGMA user_version={_SCHEMA_VERSION}; COMMIT;")
            elif version != _SCHEMA_VERSION:
                raise CatalogUnreadable(
                    f"the catalog has layout {version}, this program writes layout {_SCHEMA_VERSION}", file=path.name
                )
        except sqlite3.OperationalError:
            db.close()
            raise
        except sqlite3.DatabaseError as error:
            db.close()
            raise CatalogUnreadable(f"the catalog cannot be read: {error}", file=path.name) from error
        except CatalogUnreadable:
            db.close()
            raise
        return cls(db)

    @classmethod
    def open_read_only(cls, path: Path) -> "Catalog":
        """Opens beside a running relay, without its lock.

        Raises: CatalogUnreadable, also when there is no catalog.
        """
        try:
            db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=10.0)
            version = db.execute("PRAGMA user_version").fetchone()[0]
        except sqlite3.DatabaseError as error:
            raise CatalogUnreadable(f"the catalog cannot be read: {error}", file=path.name) from error
        if version != _SCHEMA_VERSION:
            db.close()
            raise CatalogUnreadable(f"the catalog has layout {version}, not {_SCHEMA_VERSION}", file=path.name)
        return cls(db)

    def close(self) -> None:
        """Closes the connection."""
        self._db.close()

    def files(self) -> list[ArchivedFile]:
        """All rows by number. Raises: CatalogUnreadable."""
        try:
            rows = self._db.execute(_SELECT_FILES).fetchall()
        except sqlite3.DatabaseError as error:
            raise CatalogUnreadable(f"the catalog cannot be read: {error}") from error
        return [
            ArchivedFile(n, i, e, s != 0, c, v, d, k, f, t0, t1, ev, g, cut != 0, bad != 0, digest)
            for n, i, e, s, c, v, d, k, f, t0, t1, ev, g, cut, bad, digest in rows
        ]

    def gtids(self) -> dict[int, GtidFacts | None]:
        """By number, what each sealed file says of GTIDs; None where what is stored cannot be decoded, which is a file to
        be read again. `before` None: the state behind the file before it. Raises: CatalogUnreadable."""
        try:
            rows = self._db.execute(
                "SELECT number, flavour, before, inside, anonymous FROM gtids JOIN files USING (number)"
            ).fetchall()
        except sqlite3.DatabaseError as error:
            raise CatalogUnreadable(f"the catalog cannot be read: {error}") from error
        return {number: _decoded(*stored) for number, *stored in rows}

    def put_files(
        self, files: Iterable[ArchivedFile], gtids: Iterable[GtidEntry] = (), *, in_place_of_all: bool = False
    ) -> None:
        """Writes whole rows, in one transaction; `gtids`, oldest first, of those that are sealed."""
        self._db.execute("BEGIN")
        try:
            if in_place_of_all:
                self._db.execute("DELETE FROM files")
                self._db.execute("DELETE FROM gtids")
            self._db.executemany(_PUT_FILE, [_row(file) for file in files])
            for entry in gtids:
                self._put_gtids(entry)
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def put_sealed(self, row: tuple[object, ...], gtids: GtidEntry) -> None:
        """Writes the row, made by `file_row`, of a file that was sealed, and its GTIDs, in one transaction."""
        self._db.execute("BEGIN")
        try:
            self._db.execute(_PUT_FILE, row)
            self._put_gtids(gtids)
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _put_gtids(self, entry: GtidEntry) -> None:
        before = entry.before
        if before is not None and entry.follows:
            # Unless the file before it was purged meanwhile: then nobody else knows the state.
            found = self._db.execute("SELECT 1 FROM gtids WHERE number = ?", (entry.number - 1,)).fetchone()
            before = before if found is None else None
        self._db.execute(
            "INSERT OR REPLACE INTO gtids (number, before, inside, anonymous) VALUES (?, ?, ?, ?)",
            (
                entry.number,
                None if before is None else encode_state(before),
                None if entry.inside is None else encode_state(entry.inside),
                entry.anonymous,
            ),
        )

    def _forget(self, names: Iterable[str]) -> None:
        """Deletes files' rows; the file behind them gets the state before it written down, where it was left to them."""
        gone = set(names)
        left = len(gone)
        chain = GtidChain()
        successors = False
        for number, name, flavour, *stored in self._db.execute(
            "SELECT number, name, flavour, before, inside, anonymous FROM files LEFT JOIN gtids USING (number) "
            "ORDER BY number"
        ).fetchall():
            if not left and not successors:
                break
            facts = _decoded(flavour, *stored)
            if name in gone:
                successors = True
                left -= 1
                self._db.execute("DELETE FROM files WHERE number = ?", (number,))
                self._db.execute("DELETE FROM gtids WHERE number = ?", (number,))
                self._db.execute("DELETE FROM checks WHERE number = ?", (number,))
                self._db.execute("DELETE FROM damage WHERE file = ?", (name,))
            elif successors:
                successors = False
                if stored[0] is None and chain.state is not None:
                    values = (encode_state(chain.state), number)
                    self._db.execute("UPDATE gtids SET before = ? WHERE number = ?", values)
            if facts is None:
                chain = GtidChain(number)
            else:
                chain.add(number, facts)

    def put_file(self, row: tuple[object, ...]) -> None:
        """Writes one row made by `file_row`."""
        self._db.execute(_PUT_FILE, row)

    def checkpoint(self, name: str, end: int, events: int, groups: int, last_timestamp: int) -> None:
        """Notes that the open file is synced up to the boundary `end`."""
        self._db.execute(
            "UPDATE files SET end = ?, events = ?, groups = ?, last_timestamp = ? WHERE name = ? AND sealed = 0",
            (end, events, groups, last_timestamp, name),
        )

    def set_digest(self, name: str, digest: str) -> None:
        """Notes a sealed file's digest."""
        self._db.execute("UPDATE files SET digest = ? WHERE name = ?", (digest, name))

    def forget_files(self, rows: Iterable[LedgerRow]) -> None:
        """Forgets the files that `rows` are about and adds the rows, in one transaction, durable on return.

        A row that is there already (the same time too) is not added again: what was begun before a crash is finished.
        """
        rows = list(rows)
        self._db.execute("PRAGMA synchronous=FULL")
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._forget(row.file for row in rows)
                for row in rows:
                    values = (row.time, row.kind, row.file, row.offset, row.text, row.details)
                    self._db.execute(_ADD_LEDGER_ONCE, (*values, row.time, row.kind, row.file))
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
        finally:
            self._db.execute("PRAGMA synchronous=NORMAL")

    def identity(self) -> SourceIdentity | None:
        """The source's identity, or None before the first `set_identity`."""
        row = self._db.execute("SELECT flavour, version, server_id, server_uuid FROM source").fetchone()
        return None if row is None else SourceIdentity(*row)

    def set_identity(self, identity: SourceIdentity) -> None:
        """Remembers the source."""
        self._db.execute(
            "INSERT OR REPLACE INTO source (one, flavour, version, server_id, server_uuid) VALUES (1, ?, ?, ?, ?)",
            (identity.flavour, identity.version, identity.server_id, identity.server_uuid),
        )

    def origin(self) -> Origin | None:
        """How this generation began; None for the first one, or where it cannot be read."""
        row = self._db.execute("SELECT time, file, after_file, after_offset, flavour, state FROM beginning").fetchone()
        if row is None:
            return None
        time_s, file, after_file, after_offset, flavour, state = row
        try:
            value = None if state is None else decode_state(flavour, state)
        except Malformed:
            value = None
        return Origin(time_s, file, after_file, after_offset, value)

    def set_origin(self, origin: Origin) -> None:
        """Remembers how this generation began."""
        state = origin.state
        self._db.execute(
            "INSERT OR REPLACE INTO beginning (one, time, file, after_file, after_offset, flavour, state) "
            "VALUES (1, ?, ?, ?, ?, ?, ?)",
            (
                origin.time,
                origin.file,
                origin.after_file,
                origin.after_offset,
                "mysql" if isinstance(state, GtidSet) else "mariadb",
                None if state is None else encode_state(state),
            ),
        )

    def add_ledger(self, row: LedgerRow) -> None:
        """Appends one row, durable on return; not when the newest row says the same: retries must not fill the disk."""
        newest = self._db.execute("SELECT kind, file, offset, text FROM ledger ORDER BY id DESC LIMIT 1").fetchone()
        if newest == (row.kind, row.file, row.offset, row.text):
            return
        self._db.execute("PRAGMA synchronous=FULL")
        try:
            self._db.execute(
                "INSERT INTO ledger (time, kind, file, offset, text, details) VALUES (?, ?, ?, ?, ?, ?)",
                (row.time, row.kind, row.file, row.offset, row.text, row.details),
            )
        finally:
            self._db.execute("PRAGMA synchronous=NORMAL")

    def add_ledger_once(self, row: LedgerRow) -> None:
        """As `add_ledger`, unless that very finding (kind, file, offset) is there already."""
        found = self._db.execute(
            "SELECT 1 FROM ledger WHERE kind = ? AND file = ? AND offset = ? LIMIT 1", (row.kind, row.file, row.offset)
        ).fetchone()
        if found is None:
            self.add_ledger(row)

    def ledger(self) -> list[LedgerRow]:
        """All rows, oldest first."""
        rows = self._db.execute("SELECT time, kind, file, offset, text, details FROM ledger ORDER BY id").fetchall()
        return [LedgerRow(*row) for row in rows]

    def count_ledger(self) -> dict[str, int]:
        """How many rows there are of each kind."""
        return dict(self._db.execute("SELECT kind, count(*) FROM ledger GROUP BY kind").fetchall())

    def damaged_places(self) -> list[DamagedPlace]:
        """All, by file and offset. Raises: sqlite3.Error."""
        rows = self._db.execute("SELECT file, offset, boundary, found, text FROM damage ORDER BY file, offset")
        return [DamagedPlace(*row) for row in rows.fetchall()]

    def add_damage(self, place: DamagedPlace) -> None:
        """Remembers a place, once."""
        self._db.execute(
            "INSERT OR IGNORE INTO damage (file, offset, boundary, found, text) VALUES (?, ?, ?, ?, ?)",
            (place.file, place.offset, place.boundary, place.found, place.text),
        )

    def forget_damage(self, file: str) -> None:
        """The file is what was archived again."""
        self._db.execute("DELETE FROM damage WHERE file = ?", (file,))

    def checks(self) -> dict[int, float]:
        """By number, when each sealed file was last found to be what was archived, in seconds since 1970."""
        return dict(self._db.execute("SELECT number, time FROM checks").fetchall())

    def note_check(self, number: int, time_s: float) -> None:
        """All bytes of the sealed file `number` were found to be what was archived."""
        self._db.execute("INSERT OR REPLACE INTO checks (number, time) VALUES (?, ?)", (number, time_s))

    def damage(self) -> str | None:
        """What SQLite finds wrong with the database file, or None."""
        try:
            verdict: str = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        except sqlite3.DatabaseError as error:
            return str(error)
        return None if verdict == "ok" else verdict


def _decoded(flavour: str, before: bytes | None, inside: bytes | None, anonymous: int | None) -> GtidFacts | None:
    if anonymous is None:
        return None
    try:
        return GtidFacts(
            None if before is None else decode_state(flavour, before),
            None if inside is None else decode_state(flavour, inside),
            anonymous,
        )
    except Malformed:
        return None


def file_row(file: ArchivedFile) -> tuple[object, ...]:
    """The file's catalog row as of now; pass it to `Catalog.put_file` in the catalog's thread."""
    return _row(file)


def _row(file: ArchivedFile) -> tuple[object, ...]:
    return (
        file.name,
        file.number,
        file.end,
        int(file.sealed),
        file.created,
        file.server_version,
        file.server_id,
        file.checksum,
        file.flavour,
        file.first_timestamp,
        file.last_timestamp,
        file.events,
        file.groups,
        int(file.cut),
        int(file.damaged),
        file.digest,
    )
