"""One SELECT in an SQLite of its own, in memory: it can only read the rows that it was given, and ends within bounds.

SQLite's authorizer decides what it may do (reading and functions, nothing else: no files, no PRAGMA, no ATTACH, no recursion). Its
progress handler decides how long it may take: steps, seconds, the memory that the process has gained meanwhile, and whether the asker
still waits. SQLite's limits bound the size of values and the depth of a statement.
"""

import math
import re
import sqlite3
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from protocol.errors import ErrorCode, StatementRefused
from protocol.resultset import AnswerColumn, ColumnType, Value
from protocol.statements.session.refusals import shown
from protocol.statements.translation.sqlite_text import TableName
from relay.process.slow_thread import give_way
from relay.table_queries.query_functions import add_functions

MOST_SECONDS: Final = 2.0
"""The limit for one statement. Another one waits meanwhile."""
MOST_STEPS: Final = 40_000_000
MOST_GAINED_BYTES: Final = 96 << 20
MOST_ROWS: Final = 200_000
MOST_RESULT_BYTES: Final = 32 << 20
# A step may be a comparison of long texts.
_STEPS_A_LOOK: Final = 200
_LOOKS_AT_MEMORY: Final = 100
"""The number of looks after which the system is asked for the memory, which takes longer than the others."""
_ROWS_A_TURN: Final = 500

_LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_LENGTH: 1 << 18,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1 << 19,
    sqlite3.SQLITE_LIMIT_COLUMN: 512,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 250,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 16,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 50_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 64,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 256,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 2048,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_ALLOWED: Final = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION)
_INTEGERS: Final = (ColumnType.LONG, ColumnType.LONGLONG)
_REALS: Final = (ColumnType.DOUBLE, ColumnType.NEWDECIMAL)
_UNKNOWN_COLUMN: Final = re.compile(r"no such column: (.*)")
_STATM: Final = Path("/proc/self/statm")
_PAGE_BYTES: Final = 4096

SqliteValue = str | int | float | None


@dataclass(frozen=True, slots=True)
class FilledTable:
    """A table with its rows, each as long as there are columns."""

    columns: Sequence[AnswerColumn]
    rows: Iterable[Sequence[Value]]


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """The result of a SELECT: the columns' names as SQLite has them, and the rows."""

    names: tuple[str, ...]
    rows: list[tuple[SqliteValue, ...]]


class BoundedSqlite:
    """One statement. `run` it once, in a thread. `gone`: set when the asker does not wait any more."""

    def __init__(self, gone: threading.Event) -> None:
        self._gone = gone
        self._why = ""
        self._steps = 0
        self._until = math.inf
        self._memory = 0

    def run(
        self, text: str, parameters: Sequence[Value], tables: Mapping[TableName, FilledTable], other: StatementRefused
    ) -> SelectedRows:
        """Run the SELECT over the tables. other: the error for a text that is not understood.

        Raises: StatementRefused (`other`, 1054, 1052, 1104 beyond the bounds, 1317 if the asker does not wait any more).
        """
        connection = sqlite3.connect(":memory:", isolation_level=None)
        try:
            for schema in {schema for schema, _name in tables}:
                connection.execute(f"ATTACH ':memory:' AS {_quoted(schema)}")
            add_functions(connection, self._check)
            for (schema, name), table in tables.items():
                self._fill(connection, f"{_quoted(schema)}.{_quoted(name)}", table)
            return self._select(connection, text, parameters)
        except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError) as error:
            raise self._refusal(error, other) from error
        finally:
            connection.close()

    def _fill(self, connection: sqlite3.Connection, name: str, table: FilledTable) -> None:
        columns = ", ".join(f"{_quoted(column.name)} {_affinity(column)}" for column in table.columns)
        connection.execute(f"CREATE TABLE {name} ({columns})")
        places = ", ".join("?" * len(table.columns))
        connection.execute("BEGIN")
        connection.executemany(f"INSERT INTO {name} VALUES ({places})", self._turns(table.rows))  # noqa: S608
        connection.execute("COMMIT")

    def _turns(self, rows: Iterable[Sequence[Value]]) -> Iterable[Sequence[Value]]:
        for number, row in enumerate(rows):
            if not number % _ROWS_A_TURN:
                if self._gone.is_set():
                    raise sqlite3.OperationalError("nobody waits")
                give_way()
            yield row

    def _select(self, connection: sqlite3.Connection, text: str, parameters: Sequence[Value]) -> SelectedRows:
        for limit, most in _LIMITS.items():
            connection.setlimit(limit, most)
        self._until = time.monotonic() + MOST_SECONDS
        self._memory = _resident_bytes()
        connection.set_progress_handler(self._look, _STEPS_A_LOOK)
        connection.set_authorizer(_authorize)
        cursor = connection.execute(text, tuple(parameters))
        names = tuple(str(column[0]) for column in cursor.description or ())
        rows: list[tuple[SqliteValue, ...]] = []
        size = 0
        for row in cursor:
            rows.append(row)
            size += sum(_sent_bytes(value) for value in row)
            if len(rows) > MOST_ROWS or size > MOST_RESULT_BYTES:
                self._why = f"its result has more than {MOST_ROWS} rows, or {MOST_RESULT_BYTES >> 20} MiB"
                raise sqlite3.OperationalError("too large")
        return SelectedRows(names, rows)

    def _look(self) -> int:
        """Check the bounds. SQLite calls it every so many steps; anything but 0 ends the statement."""
        self._steps += _STEPS_A_LOOK
        if self._gone.is_set():
            self._why = "nobody waits"
        elif self._steps > MOST_STEPS:
            self._why = f"it takes more than {MOST_STEPS} steps"
        elif time.monotonic() > self._until:
            self._why = f"it takes longer than {MOST_SECONDS:g} s"
        elif self._gains_too_much():
            self._why = f"it takes more than {MOST_GAINED_BYTES >> 20} MiB of memory"
        return bool(self._why)

    def _gains_too_much(self) -> bool:
        if self._steps % (_STEPS_A_LOOK * _LOOKS_AT_MEMORY):
            return False
        return _resident_bytes() - self._memory > MOST_GAINED_BYTES

    def _check(self) -> None:
        """Check the bounds before each function of the relay's own. Raises: TimeoutError."""
        if self._gone.is_set() or time.monotonic() > self._until:
            raise TimeoutError

    def _refusal(self, error: Exception, other: StatementRefused) -> StatementRefused:
        if self._gone.is_set():
            return StatementRefused(ErrorCode.ER_QUERY_INTERRUPTED, "Query execution was interrupted")
        text = str(error)
        if not self._why and time.monotonic() > self._until:
            self._why = f"it takes longer than {MOST_SECONDS:g} s"
        if self._why or "too big" in text or isinstance(error, MemoryError):
            why = self._why or text
            return StatementRefused(ErrorCode.ER_TOO_BIG_SELECT, f"binlog-relay does not go on with this SELECT: {why}")
        if (column := _UNKNOWN_COLUMN.match(text)) is not None:
            name = shown(column[1].replace("`", ""), 64)
            return StatementRefused(ErrorCode.ER_BAD_FIELD_ERROR, f"Unknown column '{name}' in 'field list'")
        if text.startswith("ambiguous column name"):
            name = shown(text.rpartition(" ")[2].replace("`", ""), 64)
            return StatementRefused(ErrorCode.ER_NON_UNIQ_ERROR, f"Column '{name}' in field list is ambiguous")
        if text.startswith("wrong number of arguments"):
            return StatementRefused(
                ErrorCode.ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT,
                "Incorrect parameter count in the call to a native function",
            )
        return other


def _authorize(action: int, first: str | None, _second: str | None, _schema: str | None, _by: str | None) -> int:
    """Allow reading of tables that were created here, and functions; SQLite asks before it runs anything."""
    if action not in _ALLOWED or (first or "").lower().startswith(("sqlite_", "pragma_")):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _sent_bytes(value: SqliteValue) -> int:
    """Return about how many bytes a value takes in an answer."""
    if not isinstance(value, str):
        return 8
    return len(value) if value.isascii() else len(value.encode(errors="replace"))


def _affinity(column: AnswerColumn) -> str:
    if column.kind in _INTEGERS:
        return "INTEGER"
    return "REAL" if column.kind in _REALS else "TEXT COLLATE NOCASE"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _resident_bytes() -> int:
    """Return the bytes that the process has in memory; 0 if the system does not report them."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return 0
