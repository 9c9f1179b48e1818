"""One application on a source, a view of the binlog that it leaves, and a MySQL 9.7 that follows the view."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pymysql
from pymysql.constants import CLIENT

from deploy.servers import Server
from relay.view.stops.view_stop import ViewStopped
from tests.applications.schemas import Application, schema_of
from tests.applications.traffic import traffic_of
from tests.support.judged_run import follow_view
from tests.support.refusal_trial import NothingBefore
from tests.support.view_trial import ViewTrial

MODES: Final = ("", "NO_ENGINE_SUBSTITUTION", "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION")
"""What statements are run under, by turns."""
_SYSTEM: Final = ("mysql", "information_schema", "performance_schema", "sys", "test")
_SHOWN: Final = 200
_LONGEST_S: Final = 600.0


class Followed(NamedTuple):
    """What became of an application. `refused` are errors of the source, `error` is the replica's. `tables` were
    compared, `differing` of them are not equal."""

    statements: int
    refused: list[str]
    stops: list[ViewStopped]
    error: str
    tables: int
    differing: list[str]

    def line(self) -> str:
        """Return the figures as one line."""
        if self.stops:
            result = ", ".join(f"{count} x {name}" for name, count in Counter(self.names()).items())
        else:
            result = "equal" if not self.error and not self.differing else "NOT EQUAL"
        return f"{self.tables} tables, {self.statements} statements, {len(self.refused)} refused: {result}"

    def names(self) -> Iterator[str]:
        """Yield the name of each stop."""
        return (one.stop.reason.name for one in self.stops)

    def details(self) -> Iterator[str]:
        """Yield each kind of what is not as it should be."""
        yield from sorted({f"stop {one.stop.reason.name}: {one.stop.reason.text}" for one in self.stops})
        if self.error:
            yield f"replica: {self.error}"
        yield from (f"differs: {one}" for one in self.differing)
        yield from sorted({f"source: {text}" for text in self.refused})


def follow_application(
    here: ViewTrial, application: Application, binlog_format: str, seed: int, rounds: int
) -> Followed:
    """Make the application's tables at the source, write into them, and have the replica follow a view of all that.

    Raises: ServerUnavailable: the package cannot be had.
    """
    schema = list(schema_of(application))
    # What a script has between two delimiters may be several statements.
    several = here.source.connect(client_flag=CLIENT.MULTI_STATEMENTS)
    with several as connection, connection.cursor() as cursor:
        cursor.execute("SET NAMES utf8mb4")
        cursor.execute(f"SET binlog_format = {binlog_format}, time_zone = '+00:00'")
        cursor.execute(f"CREATE DATABASE {application.database} CHARACTER SET utf8mb4")
        cursor.execute(f"USE {application.database}")
        refused = _run(cursor, schema, "schema")
        cursor.execute("SET foreign_key_checks = 0")
        traffic = traffic_of(here.source, seed, rounds)
        size = max(1, len(traffic) // (rounds * len(MODES)))
        for number, first in enumerate(range(0, len(traffic), size)):
            # Applications write with the checks of foreign keys; the rows that these need are there after the first turn.
            checks = int(number >= len(MODES))
            cursor.execute(f"SET sql_mode = '{MODES[number % len(MODES)]}', foreign_key_checks = {checks}")
            refused += _run(cursor, traffic[first : first + size], "traffic")
    here.source.sql("FLUSH LOGS")
    _path, stops, error = follow_view(here, before=NothingBefore(), timeout_s=_LONGEST_S)
    there, now = (_rows(server) for server in (here.source, here.replica))
    differing = [name for name in there if there[name] != now.get(name)]
    reason = _reason(here.replica) if error else ""
    return Followed(len(schema) + len(traffic), refused, stops, reason, len(there), differing)


def _reason(replica: Server) -> str:
    rows = replica.sql(
        "SELECT LAST_ERROR_MESSAGE FROM performance_schema.replication_applier_status_by_worker WHERE LAST_ERROR_NUMBER"
    )
    return " ".join(str(text) for (text,) in rows) or "it does not receive"


def _run(cursor: Any, statements: Iterable[str], part: str) -> list[str]:
    refused = []
    for statement in statements:
        if not statement.strip():
            continue
        try:
            cursor.execute(statement)
            while cursor.nextset():
                pass
        except pymysql.MySQLError as error:
            if part == "schema":
                refused.append(f"{error.args[0]} {str(error.args[-1])[:_SHOWN]} [{statement[:_SHOWN]}]")
            else:
                refused.append(f"{part}: {error.args[0]}")
    return refused


def _rows(server: Server) -> dict[str, list[str]]:
    """Return the rows of all tables of users, in one order."""
    found = {}
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET NAMES utf8mb4")
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute("SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'")
        for schema, table in cursor.fetchall():
            if schema not in _SYSTEM:
                cursor.execute(f"SELECT * FROM `{schema}`.`{table}`")
                found[f"{schema}.{table}"] = sorted(map(repr, cursor.fetchall()))
    return found


def scratch(directory: Path, application: Application) -> Path:
    """Return the directory of an application's trial."""
    return directory / "".join(one for one in application.name if one.isalnum())
