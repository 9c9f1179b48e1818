"""One of the two servers of a survey: a session as a replica's applier would have it, and many expressions in one statement."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeVar

import pymysql
import pymysql.converters
from pymysql.connections import MySQLResult
from pymysql.constants import COMMAND, FIELD_TYPE

from deploy.servers import Server
from tests.survey.values import columns

OPTIONS: Final = (
    "--max-allowed-packet=1M",
    "--skip-log-bin",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=32M",
)
BATCH: Final = 16
_SETTINGS: Final = (
    "SET NAMES utf8 COLLATE utf8_general_ci",
    "SET character_set_results = NULL",
    "SET time_zone = '+00:00'",
    "SET lc_time_names = 'en_US'",
    "SET timestamp = 1600000000.5",
    "SET rand_seed1 = 12345, rand_seed2 = 67890",
    "SET auto_increment_increment = 1, auto_increment_offset = 1",
    "SET foreign_key_checks = 1, unique_checks = 1, sql_auto_is_null = 0",
)
"""What a Query event brings to a replica, where it is not of the statement itself."""
_TO_END_S: Final = 2.0
_LOST: Final = (2006, 2013)
_KINDS: Final = {
    **dict.fromkeys(
        (FIELD_TYPE.TINY, FIELD_TYPE.SHORT, FIELD_TYPE.LONG, FIELD_TYPE.LONGLONG, FIELD_TYPE.INT24), "integer"
    ),
    **dict.fromkeys((FIELD_TYPE.DECIMAL, FIELD_TYPE.NEWDECIMAL), "decimal"),
    **dict.fromkeys((FIELD_TYPE.FLOAT, FIELD_TYPE.DOUBLE), "double"),
    FIELD_TYPE.NULL: "null",
    FIELD_TYPE.TIMESTAMP: "datetime",
    FIELD_TYPE.DATETIME: "datetime",
    FIELD_TYPE.DATE: "date",
    FIELD_TYPE.NEWDATE: "date",
    FIELD_TYPE.TIME: "time",
    FIELD_TYPE.YEAR: "year",
    FIELD_TYPE.BIT: "bit",
    FIELD_TYPE.JSON: "json",
    FIELD_TYPE.GEOMETRY: "geometry",
}
_BINARY: Final = 63


_OTHER: Final = ThreadPoolExecutor(1)
_T = TypeVar("_T")


class Answer(NamedTuple):
    """What a server gave for an expression: bytes and their type, or an error's number and text."""

    value: bytes | None
    kind: str
    error: int = 0
    message: str = ""


def at_once(source: "Side", target: "Side", ask: Callable[["Side"], _T]) -> tuple[_T, _T]:
    """Ask both at the same time."""
    asked = _OTHER.submit(ask, source)
    here = ask(target)
    return asked.result(), here


class Side:
    """A server, and a connection to it. Expressions may name the columns of `values`."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._connection: Any = None
        self._modes = ""
        self._of_view = ""
        self._taken: tuple[str, ...] = ()
        self.crashes = 0
        self._connect()
        self._make_values()

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(pymysql.MySQLError, OSError):
            self._connection.close()

    def set_modes(self, modes: str) -> None:
        """Set the sql_mode of what follows."""
        self._modes = ",".join(filter(None, (modes, self._of_view)))
        self.run(f"SET sql_mode = '{self._modes}'")

    def take_settings(self, source: "Side") -> None:
        """Take what a view writes into the events of a source, where this server can set it: how TIMESTAMP columns are defined, and
        for a MariaDB that surplus fractions of seconds are cut.
        """
        if b"MariaDB" in source.run("SELECT VERSION()")[0][0]:
            self._of_view = "TIME_TRUNCATE_FRACTIONAL"
        value = source.run("SELECT @@explicit_defaults_for_timestamp")[0][0].decode()
        self._taken = (f"SET explicit_defaults_for_timestamp = {value}",)
        for setting in self._taken:
            self.refuses(setting)

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement; return its rows, as bytes. Raises: pymysql.MySQLError."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def refuses(self, statement: str) -> tuple[int, str]:
        """Run a statement; return its error, 0 for none."""
        try:
            self.run(statement)
        except pymysql.MySQLError as error:
            self._recover(error)
            return error.args[0], str(error.args[-1])
        return 0, ""

    def read(self, query: str) -> Answer:
        """Return the one value that a query reads."""
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            rows = cursor.fetchall()
            field = cursor._result.fields[0]
        return Answer(rows[0][0] if len(rows) == 1 else b"%d rows" % len(rows), _kind(field))

    def values(self, expressions: Sequence[str]) -> list[Answer]:
        """Return what each expression is, one row of the table of values given: in one statement, or each in its own if one fails."""
        answers = self._rows([f"SELECT {', '.join(expressions)} FROM v"])[0]
        if len(answers) == len(expressions) and not any(answer.error for answer in answers):
            return answers
        return [answers[0] for answers in self._rows([f"SELECT {one} FROM v" for one in expressions])]

    def changes(self, expressions: Sequence[str], *, where: bool) -> list[int]:
        """Return the error of a change of rows that computes each expression, in a SET or in a WHERE; 0: none."""
        if where:
            together = " OR ".join(f"LENGTH({one}) <=> -1" for one in expressions)
            alone = [f"DELETE FROM v WHERE LENGTH({one}) <=> -1" for one in expressions]
            error = self.refuses(f"DELETE FROM v WHERE {together}")[0]
        else:
            together = ", ".join(f"a{at} = LENGTH({one})" for at, one in enumerate(expressions))
            alone = [f"UPDATE v SET a0 = LENGTH({one})" for one in expressions]
            error = self.refuses(f"UPDATE v SET {together}")[0]
        if not error:
            return [0] * len(expressions)
        return [answers[0].error if answers else 0 for answers in self._rows(alone)]

    def _rows(self, statements: Sequence[str]) -> list[list[Answer]]:
        """Run statements, all sent before the first answer is read; return the row of each, nothing for a change, or its error."""
        connection = self._connection
        found: list[list[Answer]] = []
        try:
            for statement in statements:
                connection._execute_command(COMMAND.COM_QUERY, statement.encode("utf-8", "surrogateescape"))
            for _ in statements:
                connection._next_seq_id = 1
                found.append(_row(connection))
        except pymysql.err.OperationalError as error:
            self._recover(error)
            if len(statements) == 1:
                return [[Answer(None, "error", error.args[0], str(error.args[-1]))]]
            found += [self._rows([statement])[0] for statement in statements[len(found) :]]
        return found

    def _connect(self) -> None:
        self._connection = self.server.connect(
            use_unicode=False, conv=dict(pymysql.converters.encoders), autocommit=False
        )
        self.run("SET sql_mode = ''")
        self.run("CREATE DATABASE IF NOT EXISTS survey CHARACTER SET utf8 COLLATE utf8_general_ci")
        self.run("USE survey")
        for setting in _SETTINGS:
            self.run(setting)
        for setting in self._taken:
            self.refuses(setting)
        self.run(f"SET sql_mode = '{self._modes}'")

    def _make_values(self) -> None:
        places = ", ".join(f"a{at} BIGINT" for at in range(BATCH))
        self.run("DROP TABLE IF EXISTS v")
        self.run(f"CREATE TABLE v ({', '.join(f'{one.name} {one.type}' for one in columns())}, {places}) ENGINE=InnoDB")
        self.run(
            f"INSERT INTO v ({', '.join(one.name for one in columns())}) VALUES ({', '.join(one.filled for one in columns())})"
        )
        self.run("COMMIT")

    def _recover(self, error: pymysql.MySQLError) -> None:
        if error.args[0] in _LOST:
            self.crashes += 1
            self.close()
            time.sleep(_TO_END_S)  # a process that ends closes its connections before it has ended
            if not self.server.running:
                self.server.restart()
            self._connect()


def _row(connection: Any) -> list[Answer]:
    """Read the answer of one statement. Raises: pymysql.err.OperationalError if the connection is lost."""
    result = MySQLResult(connection)
    try:
        result.read()
    except pymysql.MySQLError as error:
        if error.args[0] in _LOST:
            raise
        return [Answer(None, "error", error.args[0], str(error.args[-1]))]
    if result.rows is None:
        return []
    if len(result.rows) != 1:
        return [Answer(None, f"{len(result.rows)} rows")] * len(result.fields)
    return [Answer(value, _kind(field)) for value, field in zip(result.rows[0], result.fields, strict=True)]


def _kind(field: Any) -> str:
    kind = _KINDS.get(field.type_code)
    if kind is not None:
        return kind
    return "bytes" if field.charsetnr == _BINARY else "text"


def values_of(side: Side) -> Iterator[tuple[str, bytes | None]]:
    """Return the table's values, to compare both servers'."""
    for column in columns():
        yield column.name, side.run(f"SELECT {column.name} FROM v")[0][0]
