"""Random statements of all functions, operators and clauses from a real server through a view's translation to a real MySQL 9.7: each
leaves the same rows there, or the view stops before it by name.

    python -m tests.support.judged_run [--source mysql56|mariadb|mariadb118] [--seconds 600] [--seed 1] [--format STATEMENT|MIXED ...]

Where the view stops the statement is left out, as `view skip` does, and its rows are not compared. Exit status 0 means that all rows
were equal and that the replica had no error, 1 that something differed, with the seed and the statement that show it.
"""

import argparse
import contextlib
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pymysql

from deploy.servers import SERVERS, Server
from protocol.binlog.layout import FIRST_EVENT, HEADER
from protocol.kernel.codes import ROTATE_EVENT
from protocol.sql.survey.surveyed import surveyed
from relay.view.rules.older_tables import TablesBefore
from relay.view.stops.view_stop import ViewStopped
from tests.support.refusal_trial import view_of
from tests.support.view_making import settings as view_settings
from tests.support.view_trial import REPLICA_OPTIONS, ViewTrial
from tests.support.view_writer import groups_of
from tests.survey.constructs import Construct, constructs_of
from tests.survey.values import Column, columns, values_by_class

_MODES: Final = (
    "",
    "STRICT_TRANS_TABLES",
    "NO_ENGINE_SUBSTITUTION",
    "STRICT_ALL_TABLES,NO_ZERO_DATE",
    "PIPES_AS_CONCAT",
)
_STATEMENTS: Final = 60
_ORDERS: Final = ("", " ORDER BY g", " ORDER BY g LIMIT 2", " LIMIT 2", " ORDER BY NULL")


class Statements:
    """Random statements of a seed."""

    def __init__(self, seed: int, constructs: Sequence[Construct], first: int = 0) -> None:
        self._first = first
        self._chosen = random.Random(seed)
        self._constructs = constructs
        self._values = [value for values in values_by_class().values() for value in values]

    def all(self) -> list[str]:
        """Return the statements, each with its number in the rows that it leaves."""
        made: list[str] = []
        for number in range(self._first, self._first + _STATEMENTS):
            if not number % 10:
                made.append(f"SET sql_mode = '{self._chosen.choice(_MODES)}'")
            made += self._statement(number)
        return made

    def _expression(self, depth: int) -> str:
        if not depth or self._chosen.random() < 0.3:
            return self._chosen.choice(self._values).text
        made = self._chosen.choice(self._constructs)
        form = self._chosen.choice(made.forms)
        further = dict(made.further)
        arguments = [
            self._chosen.choice(further[place])
            if place in further and self._chosen.random() < 0.4
            else self._expression(depth - 1)
            for place in range(made.arity)
        ]
        return form.format(*arguments)

    def _statement(self, number: int) -> list[str]:
        kind = self._chosen.randrange(9)
        value = self._expression(self._chosen.choice((1, 1, 2)))
        if kind <= 2:
            return [f"INSERT INTO r (n, a) SELECT {number}, {value} FROM v"]
        if kind == 3:
            return [
                f"INSERT INTO r (n, a) VALUES ({number}, 'x')",
                f"UPDATE r, v SET r.a = {value} WHERE r.n = {number}",
            ]
        if kind == 4:
            return [f"INSERT INTO r (n, a) SELECT {number}, 'found' FROM v WHERE {value}"]
        if kind == 5:
            return [
                f"INSERT INTO r (n, a) VALUES ({number}, 'x'), ({number}, 'y')",
                f"DELETE r FROM r, v WHERE r.n = {number} AND ({value})",
            ]
        order = self._chosen.choice(_ORDERS)
        if kind == 6:
            return [f"INSERT INTO r (n, a) SELECT {number}, CONCAT(g, ':', COUNT(*)) FROM g GROUP BY g{order}"]
        if kind == 7:
            inner = f"(SELECT g FROM g GROUP BY g{order}) x"
            return ["SET @n := 0", f"INSERT INTO r (n, a) SELECT {number}, CONCAT(g, ':', @n := @n + 1) FROM {inner}"]
        literal = self._chosen.choice([one.text for one in self._values if not one.is_column])
        column = self._chosen.choice(("i", "d", "t", "s", "c"))
        return [f"INSERT INTO k (n, {column}) VALUES ({number}, {literal})"]


_TABLES: Final = (
    "CREATE TABLE r (id INT AUTO_INCREMENT PRIMARY KEY, n INT, a VARCHAR(200) CHARACTER SET utf8)",
    "CREATE TABLE g (g INT, id INT AUTO_INCREMENT PRIMARY KEY)",
    "INSERT INTO g (g) VALUES (3), (1), (2), (3), (1)",
    "CREATE TABLE k (id INT AUTO_INCREMENT PRIMARY KEY, n INT, i INT, d DATE, t DATETIME, s VARCHAR(50), c DECIMAL(8,2))",
)


def _filled(every: Sequence[Column]) -> list[str]:
    """Return the statements that make the tables; they are logged as rows, which a view does not judge."""
    defined = ", ".join(f"{one.name} {one.type}" for one in every)
    return [
        "CREATE DATABASE d",
        "USE d",
        "SET NAMES utf8",
        "SET sql_mode = ''",
        f"CREATE TABLE v ({defined})",
        f"INSERT INTO v VALUES ({', '.join(one.filled for one in every)})",
        *_TABLES,
    ]


class Judged(NamedTuple):
    """What a run of random statements has shown. `stops` are counted by their names."""

    differences: list[str]
    stops: Counter[str]
    passed_on: int


def run_seeds(here: ViewTrial, seeds: Sequence[int], binlog_format: str, accept: tuple[str, ...] = ()) -> Judged:
    """Run the statements of these seeds in one binlog, and compare what they leave."""
    ((version,),) = here.source.sql("SELECT VERSION()")
    known = surveyed(str(version), "9.7.0").constructs
    constructs = [one for one in constructs_of(str(version)) if one.name in known]
    statements = [one for at, seed in enumerate(seeds) for one in Statements(seed, constructs, at * _STATEMENTS).all()]
    ran = _write(here, statements, binlog_format)
    path, stops, error = follow_view(here, accept)
    left_out = {one.stop.offset for one in stops}
    texts = [
        group.body(event)
        for group in groups_of(path.name, path.read_bytes())
        if group.start in left_out
        for event in group.events
    ]
    names = Counter(one.stop.reason.name for one in stops)
    if error:
        workers = here.replica.sql(
            "SELECT LAST_ERROR_MESSAGE FROM performance_schema.replication_applier_status_by_worker WHERE LAST_ERROR_NUMBER"
        )
        return Judged([f"the replica stopped: {workers}"], names, ran - len(stops))
    return Judged(_differences(here, statements, b"\n".join(texts)), names, ran - len(stops))


def follow_view(
    here: ViewTrial, accept: tuple[str, ...] = (), before: TablesBefore | None = None, *, timeout_s: float = 30.0
) -> tuple[Path, list[ViewStopped], int]:
    """Have the replica follow a view of the binlog before the source's newest one, without the transactions at which it stops. Return
    the binlog, the stops, and the replica's error. `before`: the tables from before that binlog; None: they are not known."""
    path = here.source.binlogs()[-2]
    data, stops = view_of(path, view_settings(flavour=here.source.flavour, accept=accept), before)
    view = here.directory / "view"
    view.mkdir()
    (view / path.name).write_bytes(_without_rotate(data))
    return path, stops, here.follow(view, path.name, timeout_s=timeout_s)


def _write(here: ViewTrial, statements: Sequence[str], binlog_format: str) -> int:
    """Run the statements at the source, and return how many it took."""
    ran = 0
    with here.source.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET binlog_format = ROW")
        for statement in _filled(list(columns())):
            cursor.execute(statement)
        cursor.execute(f"SET binlog_format = {binlog_format}")
        for statement in statements:
            with contextlib.suppress(pymysql.MySQLError):
                cursor.execute(statement)
                ran += statement[:3] in ("INS", "UPD", "DEL")
    here.source.sql("FLUSH LOGS")
    return ran


def _without_rotate(data: bytes) -> bytes:
    """Return a file without the Rotate event that ends it, as a replica has no position after that."""
    at = last = FIRST_EVENT
    while at < len(data):
        last, at = at, at + HEADER.unpack_from(data, at)[3]
    return data[:last] if HEADER.unpack_from(data, last)[1] == ROTATE_EVENT else data


def _differences(here: ViewTrial, statements: Sequence[str], left_out: bytes) -> list[str]:
    found = []
    for table, names in (("r", "a"), ("k", "i, d, t, s, c")):
        there, now = (_rows(server, table, names) for server in (here.source, here.replica))
        for number in sorted({*there, *now}):
            if there.get(number) == now.get(number):
                continue
            mine = [one for one in statements if f" {number}," in one or f"({number}," in one or f"n = {number}" in one]
            if any(one.encode() in left_out for one in mine):
                continue
            found.append(f"{mine}: {there.get(number)} at the source, {now.get(number)} at the replica")
    return found


def _rows(server: Server, table: str, names: str) -> dict[int, list[object]]:
    found: dict[int, list[object]] = {}
    for number, *rest in server.sql(f"SELECT n, {names} FROM d.{table} ORDER BY id"):
        found.setdefault(number, []).append(rest)
    return found


def campaign(source: Server, replica: Server, seeds: range, formats: Sequence[str], until: float, scratch: Path) -> int:
    """Run seeds until the time is over; return how many showed a difference."""
    stops: Counter[str] = Counter()
    differing = done = passed = 0
    for seed in seeds:
        for binlog_format in formats:
            if time.monotonic() > until:
                break
            here = ViewTrial(source, replica, scratch / f"{seed}{binlog_format}")
            found, stopped, kept = run_seeds(here, [seed], binlog_format)
            stops += stopped
            passed += kept
            done += 1
            differing += bool(found)
            for text in found:
                print(f"seed {seed} {binlog_format}: {text}", flush=True)
    print(f"{done} seeds, {passed} statements passed on, stops {dict(stops)}, {differing} seeds with differences")
    return differing


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", choices=("mysql56", "mariadb", "mariadb118"), default="mysql56")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--format", nargs="+", default=["STATEMENT", "MIXED"])
    given = parser.parse_args()
    until = time.monotonic() + given.seconds
    with SERVERS[given.source]() as old, SERVERS["mysql97"]() as new, tempfile.TemporaryDirectory() as scratch:
        source, replica = old.start(server_id=1), new.start(server_id=2, options=list(REPLICA_OPTIONS))
        seeds = range(given.seed, given.seed + given.seeds)
        return min(1, campaign(source, replica, seeds, given.format, until, Path(scratch)))


if __name__ == "__main__":
    sys.exit(main())
