"""A conversion of a catalog back to the layout that an earlier version wrote."""

import sqlite3
from pathlib import Path
from typing import Final

_LEDGER: Final = (
    "CREATE TABLE older (id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, kind TEXT NOT NULL, "
    "file TEXT NOT NULL, offset INTEGER NOT NULL, text TEXT NOT NULL, details TEXT NOT NULL DEFAULT '') STRICT;"
    "INSERT INTO older SELECT id, time, kind, file, offset, text, details FROM ledger ORDER BY id;"
    "DROP TABLE ledger; ALTER TABLE older RENAME TO ledger;"
    "CREATE TRIGGER ledger_keeps_rows BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'no'); END;"
    "CREATE TRIGGER ledger_keeps_text BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'no'); END;"
)
_BACK_TO: Final = {
    5: "DROP TABLE places;",
    4: _LEDGER
    + "".join(f"ALTER TABLE {table} DROP COLUMN sum;" for table in ("files", "gtids", "source", "beginning", "damage")),
    3: "DROP TABLE damage; DROP TABLE checks; ALTER TABLE ledger DROP COLUMN details;",
    2: "DROP TABLE beginning;",
    1: "DROP TABLE gtids;",
}
"""The parts of the next layout that each layout lacks."""


def take_back(catalog: Path, layout: int) -> None:
    """Convert the catalog, which must not be open, to `layout`."""
    db = sqlite3.connect(catalog)
    try:
        for older in range(5, layout - 1, -1):
            db.executescript(_BACK_TO[older])
        db.execute(f"PRAGMA user_version = {layout}")
    finally:
        db.close()
