"""Random work for a MySQL source, by a seed: tables, keys, transactions, DDL, files and XA.

Each statement has one result whatever the binlog's format: what limits rows orders them by the primary key, and every table has
one. `engines` says what tables are made of; transactions over several are written only where `mixes`, and CREATE TABLE … SELECT
where `selects`. `types`: of columns, and how a value of each is written.
"""

import random
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

import pymysql

from deploy.servers import Server

DATABASE: Final = "haphazard"
_MOST_TABLES: Final = 8
_NOT_IN_MEMORY: Final = ("TEXT", "BLOB", "JSON", "GEOMETRY", "POINT", "VECTOR")
_EXPECTED_ERRORS: Final = {
    1062,  # duplicate key
    1451,  # a child row is in the way
    1452,  # no parent row
}


def _text(chance: random.Random, most: int) -> str:
    return "".join(chance.choices(string.ascii_letters + " äöüß€\U0001f433", k=chance.randrange(most)))


def _moment(chance: random.Random) -> str:
    year, month = chance.randrange(1000, 9999), chance.randrange(1, 10)
    return f"'{year}-0{month}-11 12:13:14.{chance.randrange(10**6):06d}'"


# name: how a value of it is written
TYPES: Final[dict[str, Callable[[random.Random], str]]] = {
    "INT": lambda chance: str(chance.randrange(-(2**31), 2**31)),
    "BIGINT UNSIGNED": lambda chance: str(chance.randrange(2**64)),
    "SMALLINT": lambda chance: str(chance.randrange(-(2**15), 2**15)),
    "DECIMAL(20,6)": lambda chance: f"{chance.randrange(-(10**12), 10**12)}.{chance.randrange(10**6):06d}",
    "DOUBLE": lambda chance: repr(chance.randrange(-(10**9), 10**9) / 1024),
    "VARCHAR(200) CHARACTER SET utf8mb4": lambda chance: "'" + _text(chance, 60) + "'",
    "VARCHAR(80) CHARACTER SET latin1": lambda chance: "'" + "".join(chance.choices(string.ascii_letters, k=20)) + "'",
    "TEXT CHARACTER SET utf8": lambda chance: "'" + "".join(chance.choices("abcäöüß€ ", k=chance.randrange(600))) + "'",
    "VARBINARY(300)": lambda chance: "0x" + chance.randbytes(chance.randrange(1, 300)).hex(),
    "LONGBLOB": lambda chance: "0x" + chance.randbytes(chance.randrange(1, 3000)).hex(),
    "DATETIME(6)": _moment,
    "TIMESTAMP NULL": lambda chance: f"'20{chance.randrange(10, 37)}-02-1{chance.randrange(10)} 01:02:03'",
    "DATE": lambda chance: f"'{chance.randrange(1000, 9999)}-12-2{chance.randrange(10)}'",
    "TIME(3)": lambda chance: f"'-{chance.randrange(838)}:59:58.{chance.randrange(1000):03d}'",
    "YEAR": lambda chance: str(chance.randrange(1901, 2156)),
    "ENUM('one','two','three')": lambda chance: chance.choice(("'one'", "'two'", "'three'")),
    "SET('a','b','c')": lambda chance: chance.choice(("'a,b'", "'c'", "''")),
    "BIT(13)": lambda chance: f"b'{chance.randrange(2**13):b}'",
}


@dataclass(slots=True)
class _Table:
    name: str
    engine: str
    columns: dict[str, str]
    unique: str = ""
    parent: str = ""
    next_id: int = 1
    temporary: bool = False
    children: list[str] = field(default_factory=list)
    cascades: int = 0
    """The number of foreign keys with CASCADE, one after the other, by which a DELETE comes here."""


class RandomWorkload:
    """Statements by a seed, on one connection at a time. `steps` says what was done, for the message of a failure."""

    MODE: ClassVar[str] = "ANSI_QUOTES,NO_ENGINE_SUBSTITUTION"

    def __init__(
        self,
        server: Server,
        seed: int,
        *,
        binlog_format: str,
        engines: Sequence[str] = ("InnoDB",),
        mixes: bool = True,
        selects: bool = True,
        database: str = DATABASE,
        types: Mapping[str, Callable[[random.Random], str]] = TYPES,
    ) -> None:
        self.steps: list[str] = []
        self._types = types
        self._server = server
        self._chance = random.Random(seed)
        self._format = binlog_format
        self._engines = engines
        self._mixes = mixes
        self._selects = selects
        self._database = database
        self._tables: dict[str, _Table] = {}
        self._names = 0
        self._connection: Any = None
        server.sql(f"CREATE DATABASE {database} DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")

    def run(self, steps: int) -> None:
        """Run that many steps, and close the connection, so that the server drops what is temporary."""
        self._new_session()
        self._create_table()
        actions, weights = zip(*self._kinds(), strict=True)
        for action in self._chance.choices(actions, weights, k=steps):
            self.steps.append(action.__name__)
            action()
        self.close()

    def _kinds(self) -> list[tuple[Callable[[], None], int]]:
        """Return the kinds of steps, and how often each is done compared with the others."""
        return [
            (self._transaction, 50),
            (self._single_statement, 25),
            (self._create_table, 4),
            (self._alter_table, 4),
            (self._load_data, 3),
            (self._temporary_table, 3),
            (self._xa, 3),
            (self._create_select, 2 if self._selects else 0),
            (self._rename_or_drop, 2),
            (self._view_trigger_or_routine, 2),
            (self._rotate, 1),
            (self._new_session, 3),
        ]

    # ---- steps -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the connection, if there is one: the server drops what is temporary."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._tables = {name: table for name, table in self._tables.items() if not table.temporary}

    def _new_session(self) -> None:
        self.close()
        self._connection = self._server.connect(self._database)
        self._do(f"SET SESSION binlog_format = {self._format}")
        if self._chance.random() < 0.3:
            self._do("SET NAMES latin1")
        if self._chance.random() < 0.3:
            self._do(f"SET time_zone = '{self._chance.choice(('+05:30', '-08:00', 'SYSTEM'))}'")
        if self._chance.random() < 0.3:
            self._do(f"SET sql_mode = '{self.MODE}'")

    def _create_table(self) -> None:
        if len(self._tables) >= _MOST_TABLES:
            return
        table = self._new_table("t")
        parents = [one for one in self._tables.values() if one.engine == "InnoDB" and not one.temporary]
        lines = ["id INT NOT NULL", *(f"{name} {kind}" for name, kind in table.columns.items()), "PRIMARY KEY (id)"]
        if self._chance.random() < 0.5:
            table.unique = "u"
            lines[1:1] = ["u INT NULL"]
            lines.append("UNIQUE KEY by_u (u)")
        if table.engine == "InnoDB" and parents and self._chance.random() < 0.4:
            parent = self._chance.choice(parents)
            table.parent = parent.name
            parent.children.append(table.name)
            lines[1:1] = ["p INT NULL"]
            rule = self._chance.choice(("CASCADE", "SET NULL", "RESTRICT"))
            if parent.cascades == 2 and self._format != "ROW":
                rule = "RESTRICT"  # a statement that goes on so far is not for 9.6 and later: a view stops there
            if rule == "CASCADE":
                table.cascades = parent.cascades + 1
            lines.append(f"CONSTRAINT f_{table.name} FOREIGN KEY (p) REFERENCES {parent.name} (id) ON DELETE {rule}")
        self._do(f"CREATE TABLE {table.name} ({', '.join(lines)}) ENGINE={table.engine}")
        self._tables[table.name] = table

    def _temporary_table(self) -> None:
        table = self._new_table("passing")
        table.temporary = True
        table.engine = "InnoDB"
        columns = ", ".join(f"{name} {kind}" for name, kind in table.columns.items())
        self._do(f"CREATE TEMPORARY TABLE {table.name} (id INT NOT NULL PRIMARY KEY, {columns}) ENGINE=InnoDB")
        self._tables[table.name] = table
        self._do(self._insert(table))
        keeper = f"kept_from_{table.name}"
        self._do(f"CREATE TABLE {keeper} (id INT NOT NULL PRIMARY KEY) ENGINE=InnoDB")
        self._do(f"INSERT INTO {keeper} SELECT id FROM {table.name} ORDER BY id")
        if self._chance.random() < 0.5:
            self._do(f"DROP TEMPORARY TABLE {table.name}")
            del self._tables[table.name]

    def _single_statement(self) -> None:
        self._do(self._change(self._pick()))

    def _transaction(self) -> None:
        engine = self._chance.choice(self._engines)
        begin = self._chance.choice(("BEGIN", "START TRANSACTION", "SET autocommit = 0"))
        self._do(begin)
        saved = 0
        for _ in range(self._chance.randrange(1, 8)):
            draw = self._chance.random()
            if draw < 0.12:
                saved += 1
                self._do(f"SAVEPOINT s{saved}")
            elif draw < 0.18 and saved:
                self._do(f"ROLLBACK TO SAVEPOINT s{self._chance.randrange(1, saved + 1)}", may_fail=True)
            elif draw < 0.22 and saved:
                self._do(f"RELEASE SAVEPOINT s{self._chance.randrange(1, saved + 1)}", may_fail=True)
            else:
                table = self._pick(None if self._mixes else engine)
                self._do(self._change(table))
        self._do("ROLLBACK" if self._chance.random() < 0.15 else "COMMIT")
        if begin.startswith("SET"):
            self._do("SET autocommit = 1")

    def _xa(self) -> None:
        name = f"'x{self._chance.randrange(10**9)}', 'branch', {self._chance.randrange(5)}"
        tables = [self._pick("InnoDB", temporary=False) for _ in range(self._chance.randrange(1, 4))]
        self._do(f"XA START {name}")
        for table in tables:
            self._do(self._change_in_xa(table))
        self._do(f"XA END {name}")
        if self._chance.random() < 0.2:
            self._do(f"XA ROLLBACK {name}")
        elif self._chance.random() < 0.5:
            self._do(f"XA COMMIT {name} ONE PHASE")
        else:
            self._do(f"XA PREPARE {name}")
            self._do(f"XA {'COMMIT' if self._chance.random() < 0.8 else 'ROLLBACK'} {name}")

    def _change_in_xa(self, table: _Table) -> str:
        return self._change(table)

    def _load_data(self) -> None:
        table = self._pick(temporary=False)
        rows = []
        for _ in range(self._chance.randrange(1, 300)):
            rows.append(f"{table.next_id}\n")
            table.next_id += 1
        path = Path(self._server.directory) / f"rows{self._chance.randrange(10**9)}.tsv"
        path.write_text("".join(rows))
        path.chmod(0o644)
        words = self._chance.choice(("", "IGNORE", "REPLACE"))
        self._do(f"LOAD DATA INFILE '{path}' {words} INTO TABLE {table.name} (id)")

    def _create_select(self) -> None:
        table = self._pick(temporary=False)
        made = self._new_table("selected")
        made.engine = self._chance.choice(self._engines)
        key = "id INT NOT NULL PRIMARY KEY"
        self._do(
            f"CREATE TABLE {made.name} ({key}) ENGINE={made.engine} SELECT id FROM {table.name} ORDER BY id LIMIT 50"
        )

    def _alter_table(self) -> None:
        table = self._pick(temporary=False)
        name = f"c{self._number()}"
        kind = "INT" if table.engine == "MEMORY" else self._chance.choice(list(self._types))
        draw = self._chance.random()
        if draw < 0.5:
            self._do(f"ALTER TABLE {table.name} ADD COLUMN {name} {kind}")
            table.columns[name] = kind
        elif draw < 0.7 and len(table.columns) > 1:
            gone = self._chance.choice(list(table.columns))
            self._do(f"ALTER TABLE {table.name} DROP COLUMN {gone}")
            del table.columns[gone]
        elif draw < 0.8:
            self._do(f"CREATE INDEX by_{name} ON {table.name} (id)")
        elif not table.children and not table.parent:
            self._do(f"TRUNCATE TABLE {table.name}")

    def _rename_or_drop(self) -> None:
        free = [one for one in self._tables.values() if not one.temporary and not one.children and not one.parent]
        if len(free) < 2:
            return
        table = self._chance.choice(free)
        del self._tables[table.name]
        if self._chance.random() < 0.5:
            new = f"renamed{self._number()}"
            self._do(f"RENAME TABLE {table.name} TO {new}")
            table.name = new
            self._tables[new] = table
        else:
            self._do(f"DROP TABLE {'IF EXISTS nothing, ' if self._chance.random() < 0.3 else ''}{table.name}")

    def _view_trigger_or_routine(self) -> None:
        number, table = self._number(), self._pick(temporary=False)
        draw = self._chance.random()
        if draw < 0.4:
            self._do(f"CREATE VIEW seen{number} AS SELECT id FROM {table.name}")
            self._do(f"DROP VIEW seen{number}")
        elif draw < 0.7:
            log = f"logged{number}"
            self._do(f"CREATE TABLE {log} (id INT NOT NULL PRIMARY KEY) ENGINE={table.engine}")
            self._do(
                f"CREATE TRIGGER on{number} AFTER INSERT ON {table.name} FOR EACH ROW INSERT INTO {log} VALUES (NEW.id)"
            )
            self._do(self._insert(table))
            self._do(f"DROP TRIGGER on{number}")
        else:
            self._do(f"CREATE PROCEDURE called{number} (IN first INT) INSERT INTO {table.name} (id) VALUES (first)")
            self._do(f"CALL called{number}({table.next_id})")
            table.next_id += 1
            self._do(f"DROP PROCEDURE called{number}")

    def _rotate(self) -> None:
        self._do("FLUSH LOGS")

    # ---- statements ------------------------------------------------------------------------------------------------

    def _change(self, table: _Table) -> str:
        draw = self._chance.random()
        if draw < 0.55 or table.next_id == 1:
            return self._insert(table)
        first = self._chance.randrange(1, table.next_id + 1)
        where = f"WHERE id BETWEEN {first} AND {first + self._chance.randrange(10)}"
        if draw < 0.8 and table.columns:
            name = self._chance.choice(list(table.columns))
            return f"UPDATE {table.name} SET {name} = {self._value(table.columns[name])} {where} ORDER BY id"
        if draw < 0.9:
            return f"DELETE FROM {table.name} {where} ORDER BY id LIMIT {self._chance.randrange(1, 5)}"
        # In a statement, REPLACE of a parent row deletes its children on 5.6 (ON DELETE CASCADE), and not on 9.7.
        if draw < 0.95 and table.unique and not (table.children and self._format != "ROW"):
            return f"REPLACE INTO {table.name} (id, u) VALUES ({first}, {self._chance.randrange(50)})"
        return f"INSERT INTO {table.name} (id) VALUES ({first}) ON DUPLICATE KEY UPDATE id = id"

    def _insert(self, table: _Table) -> str:
        rows = []
        for _ in range(self._chance.choice((1, 1, 1, 5, 40))):
            values = [str(table.next_id), *(self._value(kind) for kind in table.columns.values())]
            if table.unique:
                values.append(str(self._chance.randrange(10**6)) if self._chance.random() < 0.9 else "NULL")
            if table.parent:
                parent = self._tables[table.parent]
                values.append(str(self._chance.randrange(1, parent.next_id + 1)) if parent.next_id > 1 else "NULL")
            rows.append(f"({', '.join(values)})")
            table.next_id += 1
        names = ["id", *table.columns, *(["u"] if table.unique else []), *(["p"] if table.parent else [])]
        return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES {', '.join(rows)}"

    def _value(self, kind: str) -> str:
        return "NULL" if self._chance.random() < 0.1 else self._types[kind](self._chance)

    def _pick(self, engine: str | None = None, *, temporary: bool = True) -> _Table:
        some = [
            one for one in self._tables.values() if engine in (None, one.engine) and (temporary or not one.temporary)
        ]
        if not some:
            table = self._new_table("t")
            table.engine = engine or self._engines[0]
            columns = ", ".join(f"{name} {kind}" for name, kind in table.columns.items())
            self._do(f"CREATE TABLE {table.name} (id INT NOT NULL PRIMARY KEY, {columns}) ENGINE={table.engine}")
            self._tables[table.name] = table
            return table
        return self._chance.choice(some)

    def _new_table(self, prefix: str) -> _Table:
        number = self._number()
        kinds = self._chance.sample(list(self._types), self._chance.randrange(1, 7))
        engine = self._chance.choice(self._engines)
        if engine == "MEMORY":
            kinds = [kind for kind in kinds if not any(word in kind for word in _NOT_IN_MEMORY)] or ["INT"]
        columns = {f"c{number}_{place}": kind for place, kind in enumerate(kinds)}
        return _Table(f"{prefix}{number}", engine, columns)

    def _number(self) -> int:
        self._names += 1
        return self._names

    def _do(self, statement: str, *, may_fail: bool = False) -> None:
        with self._connection.cursor() as cursor:
            try:
                cursor.execute(statement)
                while cursor.nextset():
                    pass
            except pymysql.MySQLError as error:
                if not may_fail and error.args[0] not in _EXPECTED_ERRORS:
                    raise AssertionError(f"the workload's own fault: {error} at {statement[:300]}") from error
