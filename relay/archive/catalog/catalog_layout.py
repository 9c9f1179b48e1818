"""The tables of `catalog.sqlite`, and what earlier layouts of it do not have."""

from typing import Final

LAYOUT: Final = 7
"""SQLite's user_version of the catalogs that are written now."""
APPLICATION: Final = 0x424C5200
"""With the layout added, SQLite's application_id of catalogs: the second witness that another layout is one, and no damage."""
MARKS: Final = f"PRAGMA application_id={APPLICATION + LAYOUT}; PRAGMA user_version={LAYOUT};"
"""The statements that mark a catalog as one of this layout."""
_SUM: Final = "sum INTEGER NOT NULL DEFAULT 0"
"""The last column of a table: `row_sum` the values before it."""
_ORIGIN_SCHEMA: Final = f"""
CREATE TABLE beginning (            -- of a generation that is not the first; `Origin` says what it means
    one INTEGER PRIMARY KEY CHECK (one = 1),
    time REAL NOT NULL,
    file TEXT NOT NULL,
    after_file TEXT NOT NULL,
    after_offset INTEGER NOT NULL,
    flavour TEXT NOT NULL,
    state BLOB,                     -- as in the event at a file's head; NULL: not known
    {_SUM}
) STRICT;
"""
_GTIDS_SCHEMA: Final = f"""
CREATE TABLE gtids (                -- of sealed files
    number INTEGER PRIMARY KEY,
    before BLOB,                    -- as in the event at a file's head; NULL: the state behind the file before it, or nothing
    inside BLOB,                    -- the whole transactions in it, in the same form; NULL: they cannot be read
    anonymous INTEGER NOT NULL,     -- transactions without a GTID
    {_SUM}
) STRICT;
"""
_DAMAGE_SCHEMA: Final = f"""
CREATE TABLE damage (               -- where archived files are not what was archived; a repair removes the row
    file TEXT NOT NULL,
    offset INTEGER NOT NULL,        -- the first byte that is known to be wrong
    boundary INTEGER NOT NULL,      -- end of the last whole transaction before it: streams end there
    found REAL NOT NULL,
    text TEXT NOT NULL,
    {_SUM},
    PRIMARY KEY (file, offset)
) STRICT;
CREATE TABLE checks (               -- of sealed files: when all bytes were last found to be what was archived
    number INTEGER PRIMARY KEY,
    time REAL NOT NULL
) STRICT;
"""
_PLACES_SCHEMA: Final = f"""
CREATE TABLE places (               -- of files that are not on the disk as they were received; NAME.place says the same
    number INTEGER PRIMARY KEY,
    tier TEXT NOT NULL,             -- cold, object
    stored_name TEXT NOT NULL,
    stored_bytes INTEGER NOT NULL,
    key_id TEXT,                    -- NULL: not encrypted
    digest TEXT NOT NULL,           -- of the stored bytes
    plain_bytes INTEGER NOT NULL,
    end_digest TEXT NOT NULL,       -- of what stands behind its frames; empty: not noted
    {_SUM}
) STRICT;
"""
KEEPS_TEXT: Final = (
    "CREATE TRIGGER ledger_keeps_text BEFORE UPDATE ON ledger "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;"
)
SCHEMA: Final = f"""{_GTIDS_SCHEMA}{_ORIGIN_SCHEMA}{_DAMAGE_SCHEMA}{_PLACES_SCHEMA}
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
    digest TEXT,
    {_SUM}
) STRICT;
CREATE TABLE source (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    flavour TEXT NOT NULL,
    version TEXT NOT NULL,
    server_id INTEGER NOT NULL,
    server_uuid TEXT,
    {_SUM}
) STRICT;
CREATE TABLE ledger (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time REAL NOT NULL,
    kind TEXT NOT NULL,
    file TEXT NOT NULL,
    offset INTEGER NOT NULL,
    text TEXT NOT NULL,
    details TEXT NOT NULL DEFAULT '',   -- JSON, for programs; empty: none
    {_SUM}
) STRICT;
CREATE INDEX ledger_of_file ON ledger (file);
CREATE TRIGGER ledger_keeps_rows BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
{KEEPS_TEXT}
"""
SUMMED: Final = {
    "files": "name, number, end, sealed, created, server_version, server_id, checksum, flavour, "
    "first_timestamp, last_timestamp, events, groups, cut, damaged, digest",
    "gtids": "number, before, inside, anonymous",
    "source": "one, flavour, version, server_id, server_uuid",
    "beginning": "one, time, file, after_file, after_offset, flavour, state",
    "ledger": "time, kind, file, offset, text, details",
    "damage": "file, offset, boundary, found, text",
    "places": "number, tier, stored_name, stored_bytes, key_id, digest, plain_bytes, end_digest",
}
"""The tables whose rows have a checksum, with the columns that it covers."""
_SINCE_3: Final = f"{_DAMAGE_SCHEMA} ALTER TABLE ledger ADD COLUMN details TEXT NOT NULL DEFAULT '';"
_SINCE_4: Final = "DROP TRIGGER ledger_keeps_text; CREATE INDEX ledger_of_file ON ledger (file);" + "".join(
    f"ALTER TABLE {table} ADD COLUMN {_SUM};" for table in ("files", "source", "ledger")
)
_GTIDS_SUM: Final = f"ALTER TABLE gtids ADD COLUMN {_SUM};"
_ORIGIN_SUM: Final = f"ALTER TABLE beginning ADD COLUMN {_SUM};"
_DAMAGE_SUM: Final = f"ALTER TABLE damage ADD COLUMN {_SUM};"
EARLIER: Final = {
    1: _GTIDS_SCHEMA + _ORIGIN_SCHEMA + _SINCE_3 + _SINCE_4 + _PLACES_SCHEMA,
    2: _ORIGIN_SCHEMA + _SINCE_3 + _SINCE_4 + _GTIDS_SUM + _PLACES_SCHEMA,
    3: _SINCE_3 + _SINCE_4 + _GTIDS_SUM + _ORIGIN_SUM + _PLACES_SCHEMA,
    4: _SINCE_4 + _GTIDS_SUM + _ORIGIN_SUM + _DAMAGE_SUM + _PLACES_SCHEMA,
    5: _PLACES_SCHEMA,
    6: f"DROP TABLE places; {_PLACES_SCHEMA}",
}
"""The statements that add, by layout, what it does not have. Recovery fills the GTIDs from the files, and the places from
NAME.place."""


def is_newer(layout: int, application: int) -> bool:
    """Return whether a later version of binlog-relay wrote a catalog with this user_version and this application_id."""
    return LAYOUT < layout < 256 and application == APPLICATION + layout
