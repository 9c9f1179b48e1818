"""Answers SELECTs from tables: the tables that an account may query, their rows, and the SELECT over them, in a thread.

One statement at a time, by turns of accounts, and one of an admin in parallel: each may take a core for two seconds. A table that
servers have and a relay has nothing of is empty, with its columns: so it is in a server without that feature.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from protocol.errors import ErrorCode, StatementRefused
from protocol.position import Position, binlog_number
from protocol.resultset import AnswerColumn, ColumnFlag, Rows, Value
from protocol.sql.tables.source_table import Table
from protocol.statements import EncodedRows, SourceFacts
from protocol.statements.requests import QueryTables
from protocol.statements.session.refusals import (
    no_database,
    no_such_table,
    table_denied,
    unknown_database,
    unknown_table,
)
from protocol.statements.translation.sqlite_text import TableName
from relay.fairness.fair_pool import FairPool
from relay.process.slow_thread import give_way
from relay.schema_history.schema_file import read_schema
from relay.table_queries.bounded_sqlite import BoundedSqlite, FilledTable
from relay.table_queries.described_result import described
from relay.table_queries.recorded_tables import RECORDED, Facts, schemata
from relay.table_queries.server_tables import SCHEMAS, VIEWS_OF_MYSQL_8, server_of, table_definition, table_names

_INFORMATION, _PERFORMANCE = SCHEMAS
_TABLES_A_TURN: Final = 50
_LOOK_S: Final = 0.5
"""The interval in which is checked whether the asker still waits for rows from the loop."""
_VARIABLES: Final = ("global_variables", "session_variables")
_OWN_SCHEMAS: Final = (_INFORMATION, "mysql", _PERFORMANCE)
Answered = TypeVar("Answered")
OwnRows = Mapping[str, Callable[[], Iterable[Facts]]]
"""The running relay's own tables, by name in lower case: functions that return their rows, called on the event loop, and only when
needed."""


@dataclass(frozen=True, slots=True)
class TableAsker:
    """The asker, with its refusal for tables that it may not read. `encode`: rows as it reads them."""

    facts: SourceFacts
    user: str
    host: str
    database: str | None
    encode: Callable[[Rows], EncodedRows]


class TableQueries:
    """The queries of one relay. `close` it after the last one."""

    def __init__(self) -> None:
        self._thread = FairPool(1, "table-queries", kept=1)

    def close(self) -> None:
        """End the thread once its statement has noticed that its result is not wanted any more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def apart(self, run: Callable[[], Answered]) -> Answered:
        """Return what `run` returns or raises, in the same thread. Its work is bounded."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, run)

    async def answer(
        self, request: QueryTables, asker: TableAsker, own: OwnRows, directory: Path, end: Position | None
    ) -> EncodedRows:
        """Return the answer. directory: of the archive's newest generation, where the source's tables are recorded; end: of that
        archive.

        Cancelling it ends the statement within milliseconds. Raises: StatementRefused.
        """
        wanted = {name: make for name, make in own.items() if any(table[1] == name for table in request.tables)}
        gone = threading.Event()
        loop = asyncio.get_running_loop()

        def run() -> EncodedRows:
            # Not before its turn: the rows of hundreds of waiting statements would fill the memory.
            given = _made_on(loop, wanted, gone) if wanted else {}
            return TableQuery(request, asker, given, directory, end, gone).run()

        try:
            return await loop.run_in_executor(self._thread, run)
        finally:
            gone.set()


def _made_on(loop: asyncio.AbstractEventLoop, wanted: OwnRows, gone: threading.Event) -> dict[str, list[Facts]]:
    """Return the rows, which are created on the loop, for a thread. Raises: StatementRefused if the asker does not wait for them any
    more."""
    made: Future[dict[str, list[Facts]]] = Future()

    def make() -> None:
        try:
            made.set_result({name: list(make_rows()) for name, make_rows in wanted.items()})
        except Exception as error:
            made.set_exception(error)

    with contextlib.suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(make)
    while not gone.is_set():
        with contextlib.suppress(TimeoutError):
            return made.result(_LOOK_S)
    raise StatementRefused(ErrorCode.ER_QUERY_INTERRUPTED, "Query execution was interrupted")


def _check_schema(table: TableName, asker: TableAsker) -> None:
    """Check the schema. Raises: StatementRefused for a table that is not of one of the schemas that are shown here."""
    schema, name = table
    if not schema:
        raise no_database()
    if schema in SCHEMAS:
        return
    if schema in ("mysql", "sys"):
        raise table_denied(asker.user, asker.host, name)
    if asker.facts.is_mysql_8 and schema != (asker.database or "").lower():
        raise unknown_database(schema)
    raise no_such_table(schema, name)


class TableQuery:
    """One statement. `run` it once, in a thread. given: the rows of tables that are the running relay's, by name in lower case."""

    def __init__(
        self,
        request: QueryTables,
        asker: TableAsker,
        given: Mapping[str, list[Facts]],
        directory: Path,
        end: Position | None,
        gone: threading.Event,
    ) -> None:
        self._request = request
        self._asker = asker
        self._given = given
        self._directory = directory
        self._end = end
        self._gone = gone
        self._server = server_of(asker.facts)
        self._recorded: dict[TableName, list[Table]] = {}

    def run(self) -> EncodedRows:
        """Run it. Raises: StatementRefused."""
        try:
            return self._run()
        finally:
            self._forget()

    def _run(self) -> EncodedRows:
        tables: dict[TableName, FilledTable] = {}
        defined: dict[str, AnswerColumn] = {}
        for table in self._request.tables:
            columns = self._definition(table)
            tables[table] = FilledTable(columns, self._rows(table, columns))
            defined |= {column.name.lower(): column for column in columns if column.name.lower() not in defined}
        request = self._request
        if request.about is not None:
            self._check_existence(*request.about)
        selected = BoundedSqlite(self._gone).run(request.text, request.parameters, tables, request.not_understood)
        own_names = VIEWS_OF_MYSQL_8 if self._asker.facts.is_mysql_8 else ()
        return self._asker.encode(described(selected, request.columns, defined, own_names))

    def _check_existence(self, schema: str, table: str) -> None:
        """Check that it exists. Raises: StatementRefused (1049, 1146) for a schema or table that neither a server has of itself nor
        is recorded."""
        if any((one.schema.lower(), one.name.lower()) == self._request.named for one in self._tables()):
            return
        self._request = replace(self._request, named=("", ""))
        known = [(one.schema.lower(), one.name.lower()) for one in self._tables()]
        known += [(of, name.lower()) for of in SCHEMAS for name in table_names(self._server, of)]
        schemas = {of for of, _name in known} | set(_OWN_SCHEMAS)
        if schema.lower() not in schemas and (not table or self._asker.facts.is_mysql_8):
            raise unknown_database(schema)
        if table and schema.lower() == "mysql":
            raise table_denied(self._asker.user, self._asker.host, table)
        if table and (schema.lower(), table.lower()) not in known:
            raise no_such_table(schema, table)

    def _definition(self, table: TableName) -> tuple[AnswerColumn, ...]:
        facts = self._asker.facts
        _check_schema(table, self._asker)
        columns = table_definition(self._server, table)
        is_mysql_57 = not facts.is_mariadb and facts.version_numbers >= (5, 7)
        if columns is None and table[0] == _PERFORMANCE and is_mysql_57:
            # 5.7 has 5.6's information_schema, but much of what 8.0 has of performance_schema.
            columns = table_definition("mysql97", table)
        if columns is None:
            raise unknown_table(*table) if table[0] == _INFORMATION else no_such_table(*table)
        return columns

    def _rows(self, table: TableName, columns: tuple[AnswerColumn, ...]) -> Iterator[tuple[Value, ...]]:
        names = [(column.name.upper(), _nothing(column)) for column in columns]
        for facts in self._facts(table):
            yield tuple(facts.get(name, nothing) for name, nothing in names)

    def _facts(self, table: TableName) -> Iterable[Facts]:
        schema, name = table
        if name in self._given:
            return self._given[name]
        if name in _VARIABLES:
            return ({"VARIABLE_NAME": one, "VARIABLE_VALUE": value} for one, value in self._request.variables)
        if schema != _INFORMATION:
            return ()
        if name == "schemata":
            settings = self._asker.facts.settings()
            charset = settings.get("character_set_server", "utf8mb4" if self._asker.facts.is_mysql_8 else "latin1")
            collation = settings.get("collation_server", "utf8mb4_0900_ai_ci" if charset == "utf8mb4" else "")
            return schemata(self._tables(), _OWN_SCHEMAS, charset, collation)
        if name == "tables":
            return (*self._views(), *RECORDED[name](self._tables()))
        if name == "columns":
            return (*self._views_columns(), *RECORDED[name](self._tables()))
        if name in RECORDED:
            return RECORDED[name](self._tables())
        return ()

    def _views(self) -> Iterator[Facts]:
        """Yield the tables of information_schema and performance_schema themselves."""
        for schema in SCHEMAS:
            for name in table_names(self._server, schema):
                yield {
                    "TABLE_CATALOG": "def",
                    "TABLE_SCHEMA": schema,
                    "TABLE_NAME": name,
                    "TABLE_TYPE": "SYSTEM VIEW" if schema == _INFORMATION else "BASE TABLE",
                    "ENGINE": "MEMORY" if schema == _INFORMATION else "PERFORMANCE_SCHEMA",
                    "VERSION": 10,
                    "CREATE_OPTIONS": "",
                    "TABLE_COMMENT": "",
                }

    def _views_columns(self) -> Iterator[Facts]:
        """Yield their columns."""
        for schema in SCHEMAS:
            for name in table_names(self._server, schema):
                for number, column in enumerate(table_definition(self._server, (schema, name.lower())) or (), 1):
                    yield {
                        "TABLE_CATALOG": "def",
                        "TABLE_SCHEMA": schema,
                        "TABLE_NAME": name,
                        "COLUMN_NAME": column.name,
                        "ORDINAL_POSITION": number,
                        "IS_NULLABLE": "NO" if column.flags & ColumnFlag.NOT_NULL else "YES",
                        "DATA_TYPE": "varchar" if column.is_text else "bigint",
                        "COLUMN_TYPE": f"varchar({column.length})" if column.is_text else "bigint(21)",
                        "COLUMN_KEY": "",
                        "EXTRA": "",
                        "PRIVILEGES": "select",
                        "COLUMN_COMMENT": "",
                        "IS_GENERATED": "NEVER",
                    }

    def _tables(self) -> list[Table]:
        """Return the source's tables as they are recorded for the archive's end, at least those that are named; none without a
        record."""
        named = self._request.named
        if named not in self._recorded:
            self._recorded[named] = []
            if self._end is not None:
                place = (binlog_number(self._end.file), self._end.offset)
                with contextlib.suppress(OSError):
                    self._recorded[named] = read_schema(self._directory, named).standing(place)
        return self._recorded[named]

    def _forget(self) -> None:
        """Free the tables a few at a time: many at once would hold the loop up."""
        for tables in self._recorded.values():
            while tables:
                del tables[-_TABLES_A_TURN:]
                give_way()


def _nothing(column: AnswerColumn) -> Value:
    """Return the value for an unknown fact: NULL, or an empty one if the column cannot be NULL."""
    if not column.flags & ColumnFlag.NOT_NULL:
        return None
    return "" if column.is_text else 0
