"""Statements on a real source, through a view's own translation, on a real replica: what each of the three makes of every statement.

A case has a schema of its own, by which the statements of the view are its. They are run by a client with the session that a replica
has, as `mysqlbinlog | mysql` does: a replica would have to be started again after each error.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pymysql

from deploy.servers import Server
from protocol.binlog.layout import MAGIC
from protocol.binlog.status_variables import FLAGS, known_values
from protocol.kernel.codes import EXECUTE_LOAD_QUERY_EVENT, QUERY_EVENT
from protocol.sql.server_version import version_id
from protocol.sql.sql_mode import GONE_MODES
from protocol.sql.tables.source_table import Table, TableName
from relay.view.rules.group_parts import query_of
from relay.view.rules.older_tables import TablesBefore
from relay.view.rules.settings import MARIADB, ViewSettings
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.stops.stop_reason import StopReason
from relay.view.stops.view_stop import ViewStopped
from relay.view.translation import BUFFER_BYTES, FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_rules import rules_of
from tests.support.view_making import marked
from tests.support.view_making import settings as view_settings
from tests.support.view_writer import groups_of

_NO_KEYS: Final = 1 << 26
_NO_UNIQUE: Final = 1 << 27
_MODES_THERE: Final = ~sum(GONE_MODES.values())
"""The modes that the replica has: it passes over the others where an event has them."""


class RefusalCase(NamedTuple):
    """A case: `statements` after `prepared` ones in its schema, of which all that the source takes are logged as statements."""

    statements: tuple[str, ...]
    prepared: tuple[str, ...] = ()
    sql_mode: str = ""
    binlog_format: str = "STATEMENT"


class RefusalOutcome(NamedTuple):
    """What became of a case. `refused` are the source's own errors. `stops` are those of the view, `errors` those of the replica."""

    case: RefusalCase
    refused: tuple[str, ...]
    stops: tuple[StopReason, ...]
    errors: tuple[str, ...]


class NothingBefore:
    """What is known where the server had no tables before its first binlog."""

    def around(self, name: TableName, file: str, offset: int) -> list[Table] | None:
        """Implement `TablesBefore.around`."""
        return None

    def exists(self, name: TableName, file: str, offset: int) -> bool | None:
        """Implement `TablesBefore.exists`."""
        return False


def view_of(path: Path, settings: ViewSettings, before: TablesBefore | None = None) -> tuple[bytes, list[ViewStopped]]:
    """Return the view of a whole binlog, with each transaction at which it stops left out, and these stops."""
    data = marked(path.read_bytes())

    def read_into(view: memoryview, offset: int) -> int:
        piece = data[offset : offset + len(view)]
        view[: len(piece)] = piece
        return len(piece)

    made, skips, stops = bytearray(MAGIC), dict[int, int](), list[ViewStopped]()
    checkpoint = ViewCheckpoint.of_file(1, b"")
    while True:
        translation = FileTranslation(path.name, read_into, settings, rules_of(settings, before), checkpoint, skips)
        try:
            buffer = bytearray(BUFFER_BYTES)
            while stop := translation.fill(buffer, 0, len(data), sealed=True):
                made += buffer[:stop]
            return bytes(made), stops
        except ViewStopped as stopped:
            assert stopped.stop.offset not in skips, stopped
            skips[stopped.stop.offset] = stopped.stop.group_stop
            stops.append(stopped)
            checkpoint = translation.checkpoint()


class RefusalTrial:
    """Trials with one source and one replica, which run already."""

    def __init__(self, source: Server, replica: Server, directory: Path, **changed: object) -> None:
        self._source, self._replica, self._directory = source, replica, directory
        directory.mkdir(parents=True, exist_ok=True)
        flavour = source.flavour
        self.settings = view_settings(flavour=flavour, **changed)

    def run(self, cases: Sequence[RefusalCase]) -> list[RefusalOutcome]:
        """Return what became of each case."""
        self._reset()
        refused = [self._write(number, case) for number, case in enumerate(cases)]
        self._source.sql("FLUSH LOGS")
        path = self._source.binlogs()[-2]
        data, stops = view_of(path, self.settings)
        schemas = [_schema_of(group) for group in groups_of(path.name, path.read_bytes())]
        starts = [group.start for group in groups_of(path.name, path.read_bytes())]
        by_offset = dict(zip(starts, schemas, strict=True))
        served = self._directory / "view"
        served.mkdir(exist_ok=True)
        (served / path.name).write_bytes(data)
        errors = self._apply(served / path.name)
        found = []
        for number, case in enumerate(cases):
            schema = f"c{number}"
            of_case = tuple(one.stop.reason for one in stops if by_offset.get(one.stop.offset) == schema)
            failed = tuple(text for name, text in errors if name == schema)
            found.append(RefusalOutcome(case, tuple(refused[number]), of_case, failed))
        return found

    def _reset(self) -> None:
        for server in (self._source, self._replica):
            names = [name for (name,) in server.sql("SHOW DATABASES")]
            for name in names:
                if name not in ("mysql", "information_schema", "performance_schema", "sys", "test"):
                    server.execute_many(["SET foreign_key_checks = 0", f"DROP DATABASE `{name}`"])
        ((version,),) = self._source.sql("SELECT VERSION()")
        is_old = str(version) < "8" or self._source.flavour == MARIADB
        self._source.sql("RESET MASTER" if is_old else "RESET BINARY LOGS AND GTIDS")
        self._replica.stop_replica()
        self._replica.execute_many(["RESET REPLICA ALL", "RESET BINARY LOGS AND GTIDS"])

    def _write(self, number: int, case: RefusalCase) -> list[str]:
        refused = []
        with self._source.connect() as connection, connection.cursor() as cursor:
            schema = f"c{number}"
            cursor.execute(f"SET binlog_format = {case.binlog_format}, sql_mode = '{case.sql_mode}'")
            cursor.execute(f"CREATE DATABASE {schema} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
            cursor.execute(f"USE {schema}")
            for statement in (*case.prepared, *case.statements):
                try:
                    cursor.execute(statement)
                    cursor.fetchall()
                except pymysql.MySQLError as error:
                    refused.append(
                        f"{error.args[0]}: {error.args[1] if len(error.args) > 1 else ''} [{statement[:60]}]"
                    )
        return refused

    def _apply(self, made: Path) -> list[tuple[str, str]]:
        """Run the statements of the view as its replicas do; return the schema and the text of each error."""
        errors: list[tuple[str, str]] = []
        connection = self._replica.connect(autocommit=True)
        with connection, connection.cursor() as cursor:
            cursor.execute("SET restrict_fk_on_non_standard_key = OFF")  # replicas take such keys
            for group in groups_of(made.name, made.read_bytes()):
                for event in group.events:
                    if event.type != QUERY_EVENT:
                        continue
                    query = query_of(group, event)
                    try:
                        self._run(cursor, query)
                    except pymysql.MySQLError as error:
                        errors.append(
                            (_schema_of(group), f"{error.args[0]}: {str(error.args[-1])[:200]} | {query.raw[:200]!r}")
                        )
        return errors

    @staticmethod
    def _run(cursor: Any, query: LoggedQuery) -> None:
        status = known_values(query.status)
        flags = int.from_bytes(status.get(FLAGS, b""), "little")
        mode = query.sql_mode & _MODES_THERE
        cursor.execute(
            f"SET sql_mode = {mode}, foreign_key_checks = {int(not flags & _NO_KEYS)}, unique_checks = {int(not flags & _NO_UNIQUE)},"
            f" original_server_version = {version_id(query.server_version)}"
        )
        if query.schema and not query.raw.startswith(b"CREATE DATABASE"):
            cursor.execute(f"USE `{query.schema}`")
        cursor._query(query.raw)
        cursor.fetchall()


def _schema_of(group: object) -> str:
    for event in group.events:  # type: ignore[attr-defined]
        if event.type in (QUERY_EVENT, EXECUTE_LOAD_QUERY_EVENT):
            query = query_of(group, event)  # type: ignore[arg-type]
            if query.schema:
                return query.schema
            words = query.raw.split()
            if words[:1] in ([b"CREATE"], [b"DROP"]) and words[1:2] == [b"DATABASE"]:
                return words[2].strip(b"`").decode()
    return ""
