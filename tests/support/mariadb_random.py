"""Random work for a MariaDB, by a seed: that of `random_workload`, with MariaDB's own types and definitions."""

import contextlib
import random
import threading
import uuid
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

from deploy.servers import Server
from tests.support.random_workload import TYPES, RandomWorkload

TOGETHER: Final = "together"
_SHARED_ROWS: Final = 20
_Writer = Callable[[random.Random], str]


def _spelled(letters: str, most: int) -> _Writer:
    """Return a writer of text of these letters that is the same whatever the connection's character set is."""

    def write(chance: random.Random) -> str:
        text = "".join(chance.choices(letters, k=chance.randrange(most)))
        return f"_utf8mb4 0x{text.encode().hex()}" if text else "''"

    return write


def _document(chance: random.Random) -> str:
    return chance.choice(
        ('\'{"a": 1, "b":[1,2.50],"a":2}\'', "'[]'", "'-0'", "'null'", "'1e400'", f"'[{chance.random()}]'")
    )


def _shape(chance: random.Random) -> str:
    x, y = chance.randrange(-(10**6), 10**6), chance.random()
    return chance.choice((f"POINT({x}, {y})", f"ST_GeomFromText('LINESTRING({x} 0,{y} 5)')"))


def _place_on_earth(chance: random.Random) -> str:
    """Return a point; in a statement a MySQL takes its first number for the latitude."""
    return f"ST_GeomFromText('POINT({chance.uniform(-180, 180)} {chance.uniform(-90, 90)})', 4326)"


def _vector(chance: random.Random) -> str:
    return f"VEC_FromText('[{','.join(str(chance.uniform(-9, 9)) for _ in range(4))}]')"


_EVERYWHERE: Final[dict[str, _Writer]] = {
    **TYPES,
    "TINYINT UNSIGNED": lambda chance: str(chance.randrange(256)),
    "MEDIUMINT": lambda chance: str(chance.randrange(-(2**23), 2**23)),
    "INT(9) UNSIGNED ZEROFILL": lambda chance: str(chance.randrange(2**32)),
    "DECIMAL(65,30)": lambda chance: f"{chance.randrange(-(10**34), 10**34)}.{chance.randrange(10**30):030d}",
    "FLOAT": lambda chance: repr(chance.uniform(-1e9, 1e9)),
    "BIT(64)": lambda chance: f"b'{chance.randrange(2**64):b}'",
    "TIME": lambda chance: f"'{chance.randrange(838)}:59:5{chance.randrange(10)}'",
    "DATETIME": lambda chance: f"'{chance.randrange(1000, 9999)}-01-02 03:04:05'",
    "TIMESTAMP(5) NULL": lambda chance: f"'20{chance.randrange(10, 37)}-02-03 04:05:06.{chance.randrange(10**5):05d}'",
    "CHAR(40) CHARACTER SET utf8mb4": _spelled("abc ß€\U0001f433", 40),
    "VARCHAR(90) CHARACTER SET utf16": _spelled("aж中\U0001f40b", 90),
    "CHAR(30) CHARACTER SET utf32": _spelled("aж中\U0001f40b", 30),
    "TEXT CHARACTER SET ucs2": _spelled("aж中€", 200),
    "VARCHAR(60) CHARACTER SET sjis": _spelled("aア日本語", 60),
    "TEXT CHARACTER SET gbk": _spelled("a中文汉", 200),
    "VARCHAR(60) CHARACTER SET cp1251": _spelled("aПривет", 60),
    "VARCHAR(60) COLLATE utf8mb4_unicode_520_ci": _spelled("aAßıI", 60),
    "TINYTEXT CHARACTER SET latin1": _spelled("aäß", 60),
    "BINARY(16)": lambda chance: "0x" + chance.randbytes(chance.randrange(1, 17)).hex(),
    "JSON": _document,
    "GEOMETRY": _shape,
    "VARCHAR(200) COMPRESSED CHARACTER SET latin1": _spelled("aab", 200),
    "TEXT COMPRESSED CHARACTER SET utf8mb4": _spelled("aaaaaé", 3000),
    "LONGBLOB COMPRESSED": lambda chance: "0x" + (chance.randbytes(9) * chance.randrange(1, 300)).hex(),
}
_IN_ROWS: Final[dict[str, _Writer]] = {
    "UUID": lambda chance: f"'{uuid.UUID(bytes=chance.randbytes(16), version=chance.choice((1, 4)))}'",
    "INET6": lambda chance: f"'{IPv6Address(chance.randrange(2**128))}'",
    "POINT": _place_on_earth,
    "INET4": lambda chance: f"'{IPv4Address(chance.randrange(2**32))}'",
}
_IN_ROWS_OF_11_8: Final[dict[str, _Writer]] = {"VECTOR(4)": _vector}


def types_of(server: Server, binlog_format: str) -> dict[str, _Writer]:
    """Return the types of columns that a view keeps in this format. Columns whose type differs on the replica pass in rows alone."""
    found = dict(_EVERYWHERE)
    if binlog_format == "ROW":
        found |= _IN_ROWS
        if server.name == "mariadb118":
            found |= _IN_ROWS_OF_11_8
    return found


class MariadbRandomWorkload(RandomWorkload):
    """The workload with, in addition, definitions that only MariaDB understands, row images, sequences, and ALTER in two phases."""

    def __init__(
        self, server: Server, seed: int, *, binlog_format: str, database: str, engines: Sequence[str] = ()
    ) -> None:
        in_rows = binlog_format == "ROW"
        # A transaction that changes both kinds of tables as statements: 1785.
        engines = engines or (("InnoDB", "InnoDB", "MyISAM", "MEMORY") if in_rows else ("InnoDB",))
        super().__init__(
            server,
            seed,
            binlog_format=binlog_format,
            engines=engines,
            mixes=in_rows,
            database=database,
            types=types_of(server, binlog_format),
        )

    def _kinds(self) -> list[tuple[Callable[[], None], int]]:
        return [
            *super()._kinds(),
            (self._replaced_table, 2),
            (self._conditional_definition, 3),
            (self._in_two_phases, 1),
            (self._executable_comment, 1),
            (self._sequence, 1 if self._format == "ROW" else 0),
            (self._row_image, 2),
        ]

    def _create_select(self) -> None:
        """Create tables with transactions: for others, in ROW format, no MySQL makes table and rows in one (a named stop)."""
        engines, self._engines = self._engines, ("InnoDB",)
        super()._create_select()
        self._engines = engines

    def _change_in_xa(self, table: Any) -> str:
        """Return a statement that changes something: a MySQL refuses a prepared transaction without changes, which MariaDB logs."""
        return self._insert(table)

    def _replaced_table(self) -> None:
        number = self._number()
        for column in ("a INT, t TEXT", "t TEXT, u VARCHAR(9)"):
            self._do(f"CREATE OR REPLACE TABLE replaced{number} (id INT NOT NULL PRIMARY KEY, {column})")
            self._do(f"INSERT INTO replaced{number} (id, t) VALUES (1, 'x')")

    def _conditional_definition(self) -> None:
        table, number = self._pick(temporary=False), self._number()
        self._do(f"ALTER TABLE {table.name} ADD COLUMN IF NOT EXISTS c{number} INT")
        table.columns[f"c{number}"] = "INT"
        self._do(f"ALTER TABLE {table.name} ADD COLUMN IF NOT EXISTS c{number} TEXT, DROP COLUMN IF EXISTS never")
        self._do(f"CREATE INDEX IF NOT EXISTS by_c{number} ON {table.name} (c{number})")
        self._do(f"CREATE INDEX IF NOT EXISTS by_c{number} ON {table.name} (id)")

    def _in_two_phases(self) -> None:
        table, number = self._pick(temporary=False), self._number()
        self._do("SET binlog_alter_two_phase = ON")
        self._do(f"ALTER TABLE {table.name} ADD COLUMN c{number} INT DEFAULT 5")
        self._do("SET binlog_alter_two_phase = OFF")
        table.columns[f"c{number}"] = "INT"

    def _executable_comment(self) -> None:
        name = f"commented{self._number()}"
        self._do(f"CREATE TABLE {name} (a INT PRIMARY KEY, /*M! b INT, */ c INT /*!100000 , d INT DEFAULT 4 */, e INT)")
        self._do(f"INSERT INTO {name} (a, b, c, d, e) VALUES (1, 2, 3, 4, 5), (2, 3, 4, 5, 6)")

    def _sequence(self) -> None:
        number, first = self._number(), self._chance.randrange(10**6)
        self._do(f"CREATE SEQUENCE s{number} START WITH {first}")
        self._do(f"CREATE TABLE by_s{number} (id BIGINT NOT NULL DEFAULT nextval(s{number}) PRIMARY KEY, n INT)")
        self._do(f"INSERT INTO by_s{number} (n) VALUES (1), (2), (3)")

    def _change(self, table: Any) -> str:
        """Return REPLACE with whole rows only, as with others a MariaDB's own replicas differ from it (a named stop)."""
        text = super()._change(table)
        if text.startswith("REPLACE"):
            self._do("SET @image = @@binlog_row_image, binlog_row_image = FULL")
            self._do(text)
            text = "SET binlog_row_image = @image"
        return text

    def _row_image(self) -> None:
        images = ["MINIMAL", "NOBLOB", "FULL"] + (["FULL_NODUP"] if self._server.name == "mariadb118" else [])
        self._do(f"SET binlog_row_image = {self._chance.choice(images)}")


def at_once(server: Server, seed: int, formats: Sequence[str], steps: int, *, sessions: int = 6) -> list[str]:
    """Run sessions that work at the same time, each in its own database and all on the rows of one table; return the databases."""
    server.execute_many(
        [
            f"CREATE DATABASE {TOGETHER}",
            f"CREATE TABLE {TOGETHER}.counted (id INT PRIMARY KEY, n BIGINT NOT NULL)",
            *(f"INSERT INTO {TOGETHER}.counted VALUES ({row}, {row})" for row in range(1, _SHARED_ROWS + 1)),
        ]
    )
    databases = [f"session{number}" for number in range(sessions)]
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            run = MariadbRandomWorkload(
                server, seed + number, binlog_format=formats[number % len(formats)], database=databases[number]
            )
            with contextlib.closing(run):
                for _ in range(10):
                    run.run(steps // 10)
                    _change_shared_rows(server, seed + number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,), name=f"session {number}") for number in range(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return [TOGETHER, *databases]


def _change_shared_rows(server: Server, seed: int) -> None:
    """Change rows whose content depends on the order of all changes."""
    chance = random.Random(seed)
    with contextlib.closing(server.connect(TOGETHER)) as connection, connection.cursor() as cursor:
        for _ in range(20):
            row, change = chance.randrange(1, _SHARED_ROWS + 1), chance.randrange(1000)
            cursor.execute(f"UPDATE counted SET n = (n * 31 + {change}) % 1000000007 WHERE id = {row}")
