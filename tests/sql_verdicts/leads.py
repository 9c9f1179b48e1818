"""What stands before a statement's first word, and which readers of that word see through it."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from relay.view.rules.group_parts import PartKind
from tests.sql_verdicts.readers import READERS
from tests.sql_verdicts.setting import Setting

FILE: Final = Path(__file__).with_name("lead_differences.toml")
_INSERT: Final = b"INSERT INTO t VALUES (1)"
_CREATE: Final = b"CREATE TABLE t (a INT)"
_SAVEPOINT: Final = b"SAVEPOINT s"


@dataclass(frozen=True, slots=True)
class Question:
    """A statement, whom it is shown to, and whether the verdict is the right one."""

    statement: bytes
    reader: str
    is_right: Callable[[Any], bool]

    def is_answered(self, lead: str) -> bool:
        """Whether it is with this before the statement."""
        verdict = READERS[self.reader].verdict(lead.encode("latin-1") + self.statement, Setting("mysql97", ""))
        return not (isinstance(verdict, dict) and "stop" in verdict) and self.is_right(verdict)


QUESTIONS: Final = {
    "kernel: definition": Question(_CREATE, "kind: kernel", lambda said: bool(said["defines"])),
    "kernel: control": Question(_SAVEPOINT, "kind: kernel", lambda said: said["kind"] != 0),
    "kernel: rows": Question(_INSERT, "kind: kernel", lambda said: bool(said["rows"])),
    "kernel: change": Question(_INSERT, "kind: kernel", lambda said: bool(said["change"])),
    "views: control": Question(_SAVEPOINT, "kind: control", lambda said: said[0] is PartKind.SAVEPOINT),
    "views: accounts": Question(b"GRANT ALL ON *.* TO u", "kind: accounts", lambda said: bool(said[0])),
    "views: first word": Question(_INSERT, "kind: first word", lambda said: said["view"] == "INSERT"),
    "views: definition": Question(_CREATE, "kind: first word", lambda said: bool(said["view defines"])),
    "views: whole definition": Question(_CREATE, "definition: tolerant", lambda said: said is not None),
    "archive: definition": Question(_CREATE, "kind: first word", lambda said: bool(said["archive defines"])),
    "schema history: ALTER": Question(b"ALTER TABLE t ADD b INT", "kind: in passing", lambda said: bool(said["alters"])),
    "dependencies: DROP TEMPORARY": Question(
        b"DROP TEMPORARY TABLE t", "kind: in passing", lambda said: bool(said["drops temporary"])
    ),
    "MariaDB: rows": Question(_INSERT, "kind: first word", lambda said: bool(said["mariadb dml"])),
    "MariaDB: control": Question(_SAVEPOINT, "kind: in passing", lambda said: bool(said["control of MariaDB"])),
    "MariaDB: database": Question(b"CREATE DATABASE d", "kind: in passing", lambda said: bool(said["makes database"])),
    "MariaDB: no REPLACE": Question(_INSERT, "kind: in passing", lambda said: not said["replaces"]),
    "older targets: control": Question(_SAVEPOINT, "kind: older targets", lambda said: bool(said["control"])),
    "readiness: verb": Question(_INSERT, "kind: first word", lambda said: said["readiness"][0] == "INSERT"),
    "export: control": Question(_SAVEPOINT, "kind: control", lambda said: bool(said[2])),
    "export: XA": Question(b"XA END 'a'", "kind: control", lambda said: said[3] is not None),
    "export: tables": Question(_CREATE, "tables: export", lambda said: said["shop.t"] is True),
    "feed: XA": Question(b"XA END 'a'", "kind: in passing", lambda said: said["xa"][0] == "END"),
    "feed: REPLACE": Question(b"REPLACE INTO t VALUES (1)", "tables: export", lambda said: said["replaces"].name == "REPLACED"),
    "feed: definition": Question(b"TRUNCATE t", "feed", lambda said: bool(said[0])),
    "audits: change": Question(_INSERT, "tables: audits", lambda said: said.changes_rows),
    "audits: definition": Question(_CREATE, "tables: audits", lambda said: said.defines),
}  # fmt: skip


def blind(lead: str) -> list[str]:
    """The questions that are not answered rightly after it."""
    return [name for name, question in QUESTIONS.items() if not question.is_answered(lead)]


def listed_leads() -> list[tuple[str, list[str]]]:
    """Each text of the file with the questions that are not answered rightly after it."""
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["lead"]
    return [(text, row["blind"]) for row in rows for text in row["texts"]]
