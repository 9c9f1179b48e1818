"""The storage engines of MySQL and MariaDB: what each does with transactions, keys and rows.

A new engine is a row of `_ROWS`. Sources: SHOW ENGINES and statements tried on MySQL 5.6, 5.7, 9.7, MariaDB 10.11 and 11.8; for engines
that these builds do not have, the manuals: MySQL 5.0 to 5.6, MariaDB's knowledge base.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from protocol.sql.server_version import version_numbers

_INNODB_IS_DEFAULT_SINCE: Final = (5, 5, 5)


@dataclass(frozen=True, slots=True)
class StorageEngine:
    """One engine, by its name in lower case, with other names that servers take for it."""

    name: str
    aliases: tuple[str, ...] = ()
    transactions: bool | None = False
    """True if ROLLBACK undoes changes of its tables, according to the binlog; None: it depends."""
    foreign_keys: bool | None = False
    """True if it keeps the foreign keys of a definition; others read and forget them. None: not tried."""
    in_mysql: bool = False
    """True if MySQL 9.7 has it by default."""
    in_mariadb: bool = False
    """True if MariaDB 11.8 has it, built in or as a documented plugin."""
    may_be_innodb: bool = False
    """True if its tables can use InnoDB instead: it has rows of its own, and no other features that InnoDB lacks."""
    rows_elsewhere: bool = False
    """True if a table shows other rows than were written to it: those of other tables or servers, or none."""
    only_keys_connect_rows: bool = False
    """True if two changes of rows with other keys may be done in any order."""
    as_inserted: bool = False
    """True if rows are stored where there is room, whatever their keys."""
    partitions: bool = False
    """True if it has partitions of its own, which MySQL 8.0 and newer require."""


def _rows() -> Iterable[StorageEngine]:
    yield StorageEngine(
        "innodb",
        ("innobase",),
        transactions=True,
        foreign_keys=True,
        in_mysql=True,
        in_mariadb=True,
        only_keys_connect_rows=True,
        partitions=True,
    )
    for name, aliases in (("myisam", ()), ("memory", ("heap",))):
        yield StorageEngine(
            name,
            aliases,
            in_mysql=True,
            in_mariadb=True,
            may_be_innodb=True,
            only_keys_connect_rows=True,
            as_inserted=True,
        )
    yield StorageEngine("csv", in_mysql=True, in_mariadb=True, may_be_innodb=True, only_keys_connect_rows=True)
    # It accepts numbers of an AUTO_INCREMENT column in ascending order only.
    yield StorageEngine("archive", in_mysql=True, in_mariadb=True, may_be_innodb=True)
    yield StorageEngine("mrg_myisam", ("merge",), in_mysql=True, in_mariadb=True, rows_elsewhere=True)
    # The binlog contains its statements as it does InnoDB's: rolled back with the transaction, closed with it.
    yield StorageEngine(
        "blackhole", transactions=True, in_mysql=True, in_mariadb=True, rows_elsewhere=True, only_keys_connect_rows=True
    )
    yield StorageEngine("performance_schema", in_mysql=True, in_mariadb=True)
    # MySQL has it compiled in and disabled: 1286, or, without NO_ENGINE_SUBSTITUTION, an InnoDB table without the remote rows.
    yield StorageEngine("federated", ("federatedx",), rows_elsewhere=True)
    yield StorageEngine("ndbcluster", ("ndb",), transactions=True, foreign_keys=True, partitions=True)
    yield StorageEngine("isam", may_be_innodb=True)
    yield StorageEngine("bdb", ("berkeleydb",), transactions=True, foreign_keys=None)
    yield StorageEngine("falcon", transactions=True, foreign_keys=None)
    yield StorageEngine("aria", ("maria",), in_mariadb=True, may_be_innodb=True)
    yield StorageEngine("xtradb", transactions=True, foreign_keys=True, may_be_innodb=True)
    yield StorageEngine("tokudb", transactions=True, foreign_keys=None, may_be_innodb=True)
    yield StorageEngine("rocksdb", transactions=True, foreign_keys=None, in_mariadb=True, may_be_innodb=True)
    yield StorageEngine("sequence", in_mariadb=True)
    for name in ("connect", "spider"):
        yield StorageEngine(name, foreign_keys=None, in_mariadb=True, rows_elsewhere=True)
    for name in ("columnstore", "mroonga", "s3"):
        yield StorageEngine(name, foreign_keys=None, in_mariadb=True)
    for name in ("example", "oqgraph", "sphinx"):
        yield StorageEngine(name, foreign_keys=None)
    for name in ("brighthouse", "cassandra", "gemini", "infinidb", "mrg_isam", "pbxt", "sphinxse"):
        yield StorageEngine(name, transactions=None, foreign_keys=None)


_ENGINES: Final = tuple(_rows())
_BY_NAME: Final = {name: engine for engine in _ENGINES for name in (engine.name, *engine.aliases)}


def engine_of(name: str) -> StorageEngine | None:
    """Return the engine with this name in a statement or a server, in any case; None: it is unknown."""
    return _BY_NAME.get(name.lower())


def names_of_engines(which: Callable[[StorageEngine], object] = lambda _engine: True) -> frozenset[str]:
    """Return the names, aliases too, in lower case, of the engines for which `which` is true."""
    return frozenset(name for name, engine in _BY_NAME.items() if which(engine))


def has_transactions(name: str) -> bool | None:
    """Return whether ROLLBACK undoes changes of tables of this engine; None: not known."""
    engine = engine_of(name)
    return engine.transactions if engine is not None else None


def takes_foreign_keys(name: str) -> bool:
    """Return whether tables of this engine may have foreign keys; those of an engine that is not named, or unknown, may."""
    engine = engine_of(name)
    return engine is None or engine.foreign_keys is not False


def becomes_innodb(name: str) -> bool:
    """Return whether tables of this engine become InnoDB's on MySQL, which has no such engine."""
    engine = engine_of(name)
    return engine is not None and engine.may_be_innodb and not engine.in_mysql


def default_engine(server_version: str) -> str:
    """Return the engine of a table whose statement names none, in a default configuration; "" for a text that is no version."""
    numbers = version_numbers(server_version)
    return "" if numbers == (0, 0, 0) else "InnoDB" if numbers >= _INNODB_IS_DEFAULT_SINCE else "MyISAM"
