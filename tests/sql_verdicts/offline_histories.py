"""The tests' generators of work without a server: the statements that they would run, by fixed seeds."""

import random
from collections.abc import Iterable, Iterator
from typing import Any

from tests.support.ddl_histories import DdlHistory, ServerColumn
from tests.support.feed_histories import FeedHistory
from tests.support.key_histories import KeyHistory
from tests.support.key_workload import works
from tests.support.mariadb_random import MariadbRandomWorkload
from tests.support.random_workload import RandomWorkload

_TYPES = (
    "int(10) unsigned",
    "varchar(40)",
    "text",
    "decimal(20,5)",
    "datetime(6)",
    "enum('one','two')",
    "blob",
    "bigint(20)",
)


class _Silent:
    """A connection and its cursor: takes statements, and answers none."""

    def __init__(self, taken: list[str]) -> None:
        self._taken = taken

    def cursor(self) -> "_Silent":
        return self

    def execute(self, statement: str) -> None:
        self._taken.append(statement)

    def nextset(self) -> bool:
        return False

    def fetchall(self) -> list[Any]:
        return []

    def close(self) -> None:
        pass

    def __enter__(self) -> "_Silent":
        return self

    def __exit__(self, *_: object) -> None:
        pass


class _Server:
    """Stands in for a server: no connection is made."""

    directory = "/nowhere"

    def __init__(self, name: str) -> None:
        self.name = name
        self.flavour = "mariadb" if name.startswith("mariadb") else "mysql"
        self.taken: list[str] = []

    def read_version(self) -> str:
        return {"mysql56": "5.6.24", "mysql97": "9.7.4", "mariadb": "10.11.19", "mariadb118": "11.8.9"}[self.name]

    def sql(self, statement: str, database: str | None = None) -> list[Any]:
        self.taken.append(statement)
        return []

    def connect(self, database: str | None = None, **_options: Any) -> Any:
        return _Silent(self.taken)


class _Definitions(DdlHistory):
    """Tables and columns are drawn, since no server has any."""

    def _run(self, statement: str) -> list[tuple[Any, ...]]:
        if statement.startswith("SELECT"):
            return [(b"7",)] if " id" in statement or "(id)" in statement else []
        self.server.sql(statement)
        return []

    def _look_at_tables(self) -> None:
        names = ("t1", "t2", "T3", "odd `name", "tüb", "k1", "odd `key")
        every = [(schema, name) for schema in self._schemas for name in names]
        self._tables = self._random.sample(every, 5)

    def _columns_of(self, schema: str, table: str) -> list[ServerColumn]:
        drawn = random.Random(f"{schema} {table} {len(self.statements)}")
        names = drawn.sample(("a", "b", "c", "größe", "a b", "x`y", "s", "r1", "key"), 5)
        return [ServerColumn("id", "int(10) unsigned", None, ""), *(
            ServerColumn(one, drawn.choice(_TYPES), "latin1", "") for one in names
        )]  # fmt: skip

    def _select(self, name: str, columns: list[ServerColumn], number: str) -> dict[str, Any]:
        return {"id": number}


class _Keys(KeyHistory, _Definitions):
    """The same of keys."""


def _history(kind: type[DdlHistory], name: str, seed: int, steps: int) -> list[str]:
    server: Any = _Server(name)
    history = kind(server, seed)
    history._new = name == "mysql97"
    history.open()
    history.begin()
    for _ in history.go_on(steps):
        pass
    return list(server.taken)


def _work(name: str, seed: int, steps: int) -> list[str]:
    server: Any = _Server(name)
    workload: RandomWorkload
    if server.flavour == "mariadb":
        workload = MariadbRandomWorkload(server, seed, binlog_format="ROW", database="haphazard")
    else:
        workload = RandomWorkload(server, seed, binlog_format="MIXED", engines=("InnoDB", "MyISAM"))
    workload._load_data = lambda: None  # type: ignore[method-assign]
    workload.run(steps)
    return list(server.taken)


def _feed(name: str, seed: int, steps: int) -> list[str]:
    server: Any = _Server(name)
    history = FeedHistory(server, seed)
    history.begin()
    for _ in history.steps(steps):
        pass
    return list(server.taken)


def _keyed(seed: int, steps: int) -> Iterator[str]:
    for connection in (0, 1, 2):
        made = works(seed, connection)
        for _ in range(steps):
            yield from next(made).statements


def generated() -> Iterator[tuple[str, Iterable[str]]]:
    """(origin, statements in order) of all generators."""
    for name in ("mysql56", "mysql97", "mariadb", "mariadb118"):
        yield f"ddl_histories {name}", _history(_Definitions, name, 1, 900)
        yield f"key_histories {name}", _history(_Keys, name, 2, 500)
        yield f"random_workload {name}", _work(name, 3, 250)
        yield f"feed_histories {name}", _feed(name, 4, 200)
    yield "key_workload", _keyed(5, 250)
