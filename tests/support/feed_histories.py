"""Random histories of a schema on a real server, and the content of its tables, for comparison with the feed's tables."""

import contextlib
import datetime
import json
import random
import string
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pymysql

from deploy.servers import Server

_TYPES = (
    "INT", "BIGINT UNSIGNED", "SMALLINT UNSIGNED", "TINYINT", "MEDIUMINT", "INT UNSIGNED", "DECIMAL(12,3)", "DECIMAL(50,5)",
    "FLOAT", "DOUBLE", "VARCHAR(30) CHARACTER SET latin1", "VARCHAR(20) CHARACTER SET utf8mb4", "TEXT CHARACTER SET utf8mb4",
    "VARBINARY(12)", "BINARY(5)", "BLOB", "DATE", "DATETIME(3)", "DATETIME", "TIMESTAMP(2) NULL DEFAULT NULL", "TIME(1)", "YEAR",
    "ENUM('a','b','ü')", "SET('x','y','z')", "BIT(9)", "CHAR(6) CHARACTER SET ucs2",
)  # fmt: skip
_WIDER = {
    "TINYINT": "INT", "INT": "BIGINT", "MEDIUMINT": "BIGINT", "SMALLINT UNSIGNED": "INT UNSIGNED", "FLOAT": "DOUBLE",
    "DECIMAL(12,3)": "DECIMAL(14,4)", "VARCHAR(20) CHARACTER SET utf8mb4": "VARCHAR(40) CHARACTER SET utf8mb4",
    "ENUM('a','b','ü')": "ENUM('new','a','b','ü')", "DATETIME": "DATETIME(6)", "VARBINARY(12)": "VARBINARY(30)",
}  # fmt: skip
_WITH_DEFAULTS = (
    ("INT", "7"), ("VARCHAR(20) CHARACTER SET utf8mb4", "'grün'"), ("DECIMAL(12,3)", "1.5"), ("DOUBLE", "0.1")
)  # fmt: skip
# The key types of the fourth table: a lake compares rows by them, also by files' minimum and maximum.
_KEY_TYPES = (
    "DECIMAL(20,0)", "DECIMAL(38,10)", "DECIMAL(9,3)", "BIGINT UNSIGNED", "DATETIME(6)", "TIMESTAMP(6)", "DATE", "TIME(3)", "YEAR",
    "BINARY(6)", "VARBINARY(12)", "CHAR(20) CHARACTER SET latin1", "VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "DOUBLE",
    "BIT(40)", "TINYINT UNSIGNED", "ENUM('b','a','ü','c','d')", "SET('x','y','z')",
)  # fmt: skip
_WORDS = ("", "a", "grün", "x" * 20, '{"base64": "no"}', "it's", 'q"\\', "\t|", "ÿ")


@dataclass
class HistoryTable:
    """A table. `columns` maps names to types. `key` has its key columns; it is empty if there is none."""

    name: str
    key: tuple[str, ...]
    columns: dict[str, str] = field(default_factory=dict)


class FeedHistory:
    """One history in the schema `f{seed}`. `sql` has all its statements."""

    def __init__(self, server: Server, seed: int) -> None:
        self.server = server
        self.seed = seed
        self.schema = f"f{seed}"
        self.chance = random.Random(seed)
        self.tables: dict[str, HistoryTable] = {}
        self.sql: list[str] = []
        self._json = server.read_version().startswith(("8.", "9."))
        self._connection = server.connect()
        self._cursor = self._connection.cursor()
        self._next = 1

    def run(self, statement: str) -> bool:
        """Run one statement; return whether the server accepted it."""
        self.sql.append(statement)
        try:
            self._cursor.execute(statement)
            return True
        except pymysql.err.MySQLError as error:
            self.sql[-1] += f"   -- {error.args[0]}"
            return False

    def begin(self) -> None:
        """Create its schema and tables."""
        self.run(f"CREATE DATABASE {self.schema} CHARACTER SET utf8mb4")
        self.run(f"USE {self.schema}")
        self.run("SET time_zone = '+05:30', sql_mode = 'STRICT_TRANS_TABLES'")
        for name, key in (("one", ("id",)), ("two", ("k", "n")), ("none", ()), ("typed", ("w",))):
            self.create(name, key)

    def create(self, name: str, key: tuple[str, ...]) -> None:
        """Create a table with columns of random types."""
        table = HistoryTable(name, key)
        columns = {"id": "BIGINT"}
        if key == ("k", "n"):
            columns = {"k": "VARCHAR(12) CHARACTER SET utf8mb4", "n": "INT UNSIGNED"}
        elif key == ("w",):
            columns = {"w": self.chance.choice(_KEY_TYPES)}
        types = (*_TYPES, "JSON") if self._json else _TYPES
        table.columns = {**columns, **{f"c{n}": self.chance.choice(types) for n in range(self.chance.randint(2, 9))}}
        body = [f"`{one}` {kind}" + (" NOT NULL" if one in key else "") for one, kind in table.columns.items()]
        if key:
            body.append(f"PRIMARY KEY ({', '.join(key)})")
        engine = "MyISAM" if self.chance.random() < 0.1 else "InnoDB"
        if self.run(f"CREATE TABLE `{name}` ({', '.join(body)}) ENGINE={engine}"):
            self.tables[name] = table

    def steps(self, count: int) -> Iterator[int]:
        """Run so many steps, each some statements."""
        for number in range(count):
            self.step()
            yield number

    def step(self) -> None:
        """Run one transaction, or one definition."""
        chance = self.chance
        if chance.random() < 0.08:
            self.run(f"SET binlog_row_image = {chance.choice(('FULL', 'FULL', 'MINIMAL', 'NOBLOB'))}")
        if chance.random() < 0.12:
            self.define()
            return
        plain = chance.random() < 0.5
        if not plain:
            self.run("BEGIN")
        for _ in range(1 if plain else chance.randint(1, 6)):
            if not plain and chance.random() < 0.1:
                self.run("SAVEPOINT s")
                self.change()
                self.run("ROLLBACK TO s")
            self.change()
        if not plain:
            self.run("COMMIT" if chance.random() < 0.8 else "ROLLBACK")

    def change(self) -> None:
        """Run one statement that changes rows."""
        chance = self.chance
        if not self.tables:
            return
        table = chance.choice(list(self.tables.values()))
        verb = chance.choice(("insert", "insert", "insert", "update", "update", "delete", "key", "replace"))
        if verb in ("insert", "replace"):
            word = (
                "REPLACE" if verb == "replace" and table.key else "INSERT IGNORE" if chance.random() < 0.2 else "INSERT"
            )
            names = list(table.columns)
            if chance.random() < 0.3:
                names = [one for one in names if one in table.key or chance.random() < 0.6] or names
            rows = [self.row(table, names) for _ in range(chance.randint(1, 5))]
            if not table.key and chance.random() < 0.5:
                rows += rows
            more = ""
            free = [one for one in names if one not in table.key]
            if word == "INSERT" and table.key and free and chance.random() < 0.3:
                one = chance.choice(free)
                more = f" ON DUPLICATE KEY UPDATE `{one}` = {self.value(table.columns[one])}"
            self.run(
                f"{word} INTO `{table.name}` ({', '.join(f'`{one}`' for one in names)}) VALUES {', '.join(rows)}{more}"
            )
        elif verb == "update":
            names = [one for one in table.columns if one not in table.key]
            if names:
                chosen = chance.sample(names, min(len(names), chance.randint(1, 3)))
                sets = ", ".join(f"`{one}` = {self.value(table.columns[one])}" for one in chosen)
                self.run(f"UPDATE `{table.name}` SET {sets} {self.where(table)}")
        elif verb == "delete":
            self.run(f"DELETE FROM `{table.name}` {self.where(table)}")
        elif table.key == ("w",):
            self.run(
                f"UPDATE `{table.name}` SET `w` = {self.typed_key(table.columns['w'])} {self.where(table)} LIMIT 1"
            )
        elif table.key:
            one = table.key[-1]
            self.run(f"UPDATE `{table.name}` SET `{one}` = `{one}` + {chance.randint(1, 40)} {self.where(table)}")

    def row(self, table: HistoryTable, names: list[str]) -> str:
        """Return values of one row."""
        return (
            "("
            + ", ".join(
                self.key_value(one)
                if one in ("id", "k", "n")
                else self.typed_key(table.columns[one])
                if one == "w"
                else self.value(table.columns[one])
                for one in names
            )
            + ")"
        )

    def key_value(self, name: str) -> str:
        """Return a value of a key."""
        if name == "k":
            return "'" + self.chance.choice(("a", "A", "b", "ß", "x y", "日")) + "'"
        if self.chance.random() < 0.7:
            self._next += 1
            return str(self._next)
        return str(self.chance.randint(1, max(self._next, 2)))

    def typed_key(self, kind: str) -> str:
        """Return one of some forty values of a key's type, in SQL: some differ only in their last digit or byte."""
        n = self.chance.randint(0, 39)
        base = kind.split("(")[0].split(" ")[0]
        if base == "DECIMAL":
            whole, places = (int(one) for one in kind[8:-1].split(","))
            return str(Decimal((n % 4 == 0, (*(9,) * (whole - 2), *divmod(n, 10)), -places)))
        if base in ("BIGINT", "BIT"):
            return str(n if n % 4 == 0 else (1 << 39 if base == "BIT" else (1 << 64) - 50) + n)
        if base == "DOUBLE":
            return f"{'-' * (n % 4 == 1)}{n % 5}.{n}e{(n % 3) * 100}"
        if base in ("DATETIME", "TIMESTAMP"):
            return f"'20{n % 3 + 10}-03-01 00:00:00.0000{n:02}'"
        if base == "DATE":
            return f"'{(1000, 2000, 9999)[n % 3]}-01-{n % 28 + 1:02}'"
        if base == "TIME":
            return f"'{'-' * (n % 2)}{(0, 100, 838)[n % 3]}:00:00.0{n:02}'"
        if base in ("TINYINT", "YEAR"):
            return str(n + (216 if base == "TINYINT" else 2000))
        if base in ("BINARY", "VARBINARY"):
            return f"x'{n % 3 * 127:02x}{n:02x}{'00' * (n % 4)}'"
        if base in ("CHAR", "VARCHAR"):
            return f"'{('a', 'A', 'ÿ', 'z')[n % 4] * 17}{n // 4:02}'"
        return f"'{('b', 'a', 'ü', 'c', 'd')[n % 5]}'" if base == "ENUM" else str(n % 8)

    def where(self, table: HistoryTable) -> str:
        """Return a condition for some rows."""
        if "w" in table.columns:
            kind = table.columns["w"]
            return f"WHERE `w` IN ({', '.join(self.typed_key(kind) for _ in range(self.chance.randint(1, 8)))})"
        last = "id" if "id" in table.columns else "n"
        low = self.chance.randint(0, max(self._next, 1))
        return f"WHERE `{last}` BETWEEN {low} AND {low + self.chance.randint(0, 8)}"

    def define(self) -> None:
        """Run one definition."""
        chance = self.chance
        table = chance.choice(list(self.tables.values())) if self.tables else None
        if table is None:
            return
        free = [one for one in table.columns if one not in (*table.key, "id", "w")]
        verb = chance.choice(
            (
                "add",
                "add",
                "drop",
                "widen",
                "rename",
                "truncate",
                "index",
                "again",
                "default",
                "call",
                "swap",
                "ghost",
                "key",
            )
        )
        name = f"c{len(table.columns) + chance.randint(10, 99)}"
        if verb == "add" and name not in table.columns:
            kind = chance.choice(_TYPES)
            place = " FIRST" if chance.random() < 0.2 else ""
            if self.run(f"ALTER TABLE `{table.name}` ADD COLUMN `{name}` {kind}{place}"):
                table.columns[name] = kind
        elif verb == "default" and name not in table.columns:
            kind, value = chance.choice(
                (
                    ("INT", "7"),
                    ("VARCHAR(20) CHARACTER SET utf8mb4", "'grün'"),
                    ("DECIMAL(12,3)", "1.5"),
                    ("DOUBLE", "0.1"),
                )
            )
            null = chance.choice(("NOT NULL", "NULL"))
            if self.run(f"ALTER TABLE `{table.name}` ADD COLUMN `{name}` {kind} {null} DEFAULT {value}"):
                table.columns[name] = kind
        elif verb == "drop" and free:
            one = chance.choice(free)
            if self.run(f"ALTER TABLE `{table.name}` DROP COLUMN `{one}`"):
                del table.columns[one]
        elif verb == "widen":
            wide = [one for one in free if table.columns[one] in _WIDER]
            if wide:
                one = chance.choice(wide)
                kind = _WIDER[table.columns[one]]
                if self.run(f"ALTER TABLE `{table.name}` MODIFY `{one}` {kind}"):
                    table.columns[one] = kind
        elif verb == "rename" and free and name not in table.columns:
            one = chance.choice(free)
            if self.run(f"ALTER TABLE `{table.name}` CHANGE `{one}` `{name}` {table.columns[one]}"):
                table.columns = {name if old == one else old: kind for old, kind in table.columns.items()}
        elif verb == "truncate":
            self.run(f"TRUNCATE TABLE `{table.name}`")
        elif verb == "index" and free:
            self.run(f"CREATE INDEX i{chance.randint(1, 999)} ON `{table.name}` (`{chance.choice(free)}`)")
        elif verb == "call":
            self.call(table, f"{table.name[:20]}{chance.randint(1, 99)}")
        elif verb == "swap" and len(self.tables) > 1:
            other = chance.choice([one for one in self.tables.values() if one is not table])
            if self.run(
                f"RENAME TABLE `{table.name}` TO `between`, `{other.name}` TO `{table.name}`, `between` TO `{other.name}`"
            ):
                table.name, other.name = other.name, table.name
                self.tables[table.name], self.tables[other.name] = table, other
        elif verb == "ghost":
            self.ghost(table)
        elif verb == "key" and len(table.key) != 2:
            self.key(table)
        elif verb == "again" and self.run(f"DROP TABLE `{table.name}`"):
            del self.tables[table.name]
            self.create(table.name, table.key)

    def call(self, table: HistoryTable, name: str) -> None:
        """Rename the table, perhaps with another column."""
        if name in self.tables:
            return
        column = f"c{len(table.columns) + self.chance.randint(100, 200)}"
        adds = self.chance.random() < 0.3
        if self.run(
            f"ALTER TABLE `{table.name}` ADD `{column}` INT, RENAME TO `{name}`"
            if adds
            else f"RENAME TABLE `{table.name}` TO `{name}`"
        ):
            del self.tables[table.name]
            table.name = name
            self.tables[name] = table
            if adds:
                table.columns[column] = "INT"

    def ghost(self, table: HistoryTable) -> None:
        """Run an online schema change: a table like it gets another column, its rows, and its name."""
        name, column = table.name, f"c{len(table.columns) + self.chance.randint(201, 300)}"
        columns = ", ".join(f"`{one}`" for one in table.columns)
        self.run(f"CREATE TABLE `_{name}_gho` LIKE `{name}`")
        self.run(f"ALTER TABLE `_{name}_gho` ADD COLUMN `{column}` INT NOT NULL DEFAULT 3")
        self.run(f"INSERT INTO `_{name}_gho` ({columns}) SELECT {columns} FROM `{name}`")
        if self.run(f"RENAME TABLE `{name}` TO `_{name}_del`, `_{name}_gho` TO `{name}`"):
            table.columns[column] = "INT"
        self.run(f"DROP TABLE IF EXISTS `_{name}_del`")

    def key(self, table: HistoryTable) -> None:
        """Drop the key, or add it again."""
        if table.key:
            if self.run(f"ALTER TABLE `{table.name}` DROP PRIMARY KEY"):
                table.key = ()
        else:
            column = "w" if "w" in table.columns else "id"
            if self.run(f"ALTER TABLE `{table.name}` ADD PRIMARY KEY ({column})"):
                table.key = (column,)

    def value(self, kind: str) -> str:
        """Return a value of a type, in SQL."""
        chance = self.chance
        if chance.random() < 0.15:
            return "NULL"
        base = kind.split("(")[0].split(" ")[0]
        if base in ("TINYINT", "BIT", "YEAR"):
            return str(chance.randint(2000, 2100) if base == "YEAR" else chance.randint(0, 120))
        if base in ("INT", "SMALLINT", "MEDIUMINT", "BIGINT"):
            if kind == "BIGINT UNSIGNED":
                return chance.choice(("18446744073709551615", "0", "7"))
            return str(chance.randint(0, 60000))
        if base == "DECIMAL":
            return chance.choice(("-1.5", "0", "99999999.125", "3.14159"))
        if base in ("FLOAT", "DOUBLE"):
            return chance.choice(("0.1", "-1.5e10", "3.0000001", "1e-20", "0", "123456.789"))
        if base in ("VARBINARY", "BINARY", "BLOB"):
            return "x'" + "".join(chance.choice("0123456789abcdef") for _ in range(2 * chance.randint(0, 5))) + "'"
        if base == "DATE":
            return chance.choice(("'2020-02-29'", "'1000-01-01'", "'9999-12-31'"))
        if base == "DATETIME":
            return chance.choice(("'2020-02-29 12:34:56.789'", "'1000-01-01 00:00:00'", "'2038-01-20 00:00:00'"))
        if base == "TIMESTAMP":
            return chance.choice(("'2020-02-29 12:34:56.78'", "'1999-12-31 23:59:59'"))
        if base == "TIME":
            return chance.choice(("'-838:59:58.9'", "'12:34:56.7'", "'00:00:00'"))
        if base == "ENUM":
            return chance.choice(("'a'", "'b'", "'ü'"))
        if base == "SET":
            return chance.choice(("'x,z'", "''", "'y'"))
        if base == "JSON":
            return chance.choice(("'{\"a\": [1, null, 2.5]}'", "'null'", "'\"text\"'", "'{\"base64\": 1}'", "'17'"))
        if base == "CHAR":
            return "'" + "".join(chance.choice(string.ascii_letters) for _ in range(chance.randint(0, 6))) + "'"
        return "'" + chance.choice(_WORDS).replace("\\", "\\\\").replace("'", "''") + "'"

    def close(self) -> None:
        """End its connection."""
        self._connection.close()


def true_rows(server: Server, schema: str, table: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return a table as SELECT shows it: its columns' names and its rows, in terms that `lake_rows` has too, sorted."""
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(
            "SELECT COLUMN_NAME, IF(DATA_TYPE = 'decimal' AND NUMERIC_PRECISION > 38, 'long', DATA_TYPE) "
            "FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s "
            "ORDER BY ORDINAL_POSITION",
            (schema, table),
        )
        columns = list(cursor.fetchall())
        if not columns:
            return [], []
        text = "CAST(`{}` AS CHAR)"
        shown = {"bit": "`{}` + 0", "float": "`{}` + 0e0", "vector": "VECTOR_TO_STRING(`{}`)"}
        shown |= dict.fromkeys(("long", "time", "date", "json", "datetime", "timestamp"), text)
        wanted = ", ".join(shown.get(kind, "`{}`").format(name.replace("`", "``")) for name, kind in columns)
        cursor.execute(f"SELECT {wanted} FROM `{schema}`.`{table}`")
        rows = [
            tuple(_plain(value, kind) for value, (_name, kind) in zip(row, columns, strict=True))
            for row in cursor.fetchall()
        ]
    return [name for name, _kind in columns], sorted(rows, key=repr)


def document_columns(server: Server, schema: str, table: str) -> set[str]:
    """Return which of a table's columns have documents; MariaDB's JSON is a text."""
    found = server.sql(
        "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE DATA_TYPE IN ('json', 'vector') "
        f"AND TABLE_SCHEMA = '{schema}' AND TABLE_NAME = '{table}'"
    )
    return {name for (name,) in found}


def _plain(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind in ("float", "double"):
        return float(value)
    if kind in ("json", "vector"):
        return json.loads(value)
    if isinstance(value, Decimal):
        return _number(value)
    if kind in ("datetime", "timestamp"):
        return datetime.datetime.fromisoformat(value)
    return value


def _number(value: Decimal) -> int | Decimal:
    return int(value) if value == value.to_integral_value() else value.normalize()


def lake_rows(table: Any, names: list[str], documents: set[str] | None = None) -> list[tuple[Any, ...]]:
    """Return the same of a lake's table (Arrow)."""
    found = []
    for row in table.select(names).to_pylist():
        found.append(tuple(_as_shown(row[name], name in (documents or ())) for name in names))
    return sorted(found, key=repr)


def _as_shown(value: Any, document: bool) -> Any:
    if document and isinstance(value, str):
        # A table may have had a document under that name, or have texts now.
        with contextlib.suppress(ValueError):
            return json.loads(value)
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value
