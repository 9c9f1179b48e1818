"""Random definitions between random changes of rows, and the server's own record of each row."""

import base64
import contextlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pymysql

from deploy.servers import Server

_CHARSETS: Final = ("latin1", "utf8", "utf8mb4", "cp1251", "ucs2", "sjis", "gbk", "utf16", "koi8r", "latin2")
_WORDS: Final = {
    "latin1": "größe ÿ", "utf8": "grün ы漢", "utf8mb4": "ы漢😀", "cp1251": "привет", "ucs2": "ы漢aa", "sjis": "漢字ソ", "gbk": "漢字",
    "utf16": "😀aa", "koi8r": "привет", "latin2": "čšž",
}  # fmt: skip
_TABLES: Final = ("t1", "t2", "T3", "odd `name", "tüb")
_COLUMNS: Final = ("a", "b", "c", "d", "e", "f", "g", "größe", "key", "a b", "x`y")
_TIMES: Final = (
    "DATE", "TIME", "DATETIME", "TIMESTAMP NULL", "TIME(3)", "DATETIME(6)", "TIMESTAMP(2) NULL DEFAULT NULL", "YEAR"
)  # fmt: skip
_OTHERS: Final = (
    "BIT", "BIT(13)", "BOOL", "NATIONAL VARCHAR(9)", "NCHAR(4)", "LONG VARCHAR", "LONG VARBINARY", "VARCHAR(7) ASCII",
    "CHARACTER VARYING(8)",
)  # fmt: skip
NUMBER: Final = "number of "
"""This precedes the name of an ENUM or SET whose texts are unknown: its number is read then."""


def quoted(name: str) -> str:
    """Return a name in backticks."""
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class ServerColumn:
    """A column as the server has it now."""

    name: str
    type: str
    charset: str | None
    extra: str

    @property
    def native(self) -> str:
        """The first word of its type."""
        return self.type.split("(")[0].split(" ")[0]

    @property
    def generated(self) -> bool:
        """True if no value can be given."""
        extra = self.extra.upper().replace("DEFAULT_GENERATED", "")
        return "GENERATED" in extra or "VIRTUAL" in extra or "PERSISTENT" in extra


@dataclass(frozen=True, slots=True)
class ServerTable:
    """A table as the server has it now. `keys`: (name, whether it is unique) to columns."""

    columns: list[ServerColumn]
    keys: dict[tuple[str, bool], list[str]]


@dataclass(slots=True)
class TrueRow:
    """A changed row, as SELECT showed it: texts, or bytes; NULL is None."""

    operation: str
    schema: str
    table: str
    columns: list[ServerColumn]
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    named_by_server: bool = True
    definition: str = ""


@dataclass
class DdlHistory:
    """A connection that defines and changes tables in its own schemas, without pauses. `rows` is what it changed, in order."""

    server: Server
    seed: int
    rows: list[TrueRow] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._schemas = [f"h{self.seed}_one", f"h{self.seed}_two"]
        self._mariadb = self.server.flavour == "mariadb"
        self._new = "mysql97" in type(self.server).__module__
        self._tables: list[tuple[str, str]] = []
        self._connection: Any = None
        self._number = 0

    def open(self) -> None:
        """Connect."""
        self._connection = self.server.connect(conv={}, charset="utf8mb4", use_unicode=False)
        self._run("SET SESSION time_zone='+00:00', sql_mode='', binlog_format='ROW'")
        if self._mariadb and self.seed % 2:
            self._run("SET SESSION binlog_alter_two_phase=1")
        if self._new:
            self._run("SET SESSION explicit_defaults_for_timestamp=1")

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()

    def begin(self) -> None:
        """Create the schemas, which are new."""
        for schema in self._schemas:
            charset = self._random.choice((None, *_CHARSETS))
            self._define(f"CREATE DATABASE {schema}" + (f" CHARACTER SET {charset}" if charset else ""))

    def go_on(self, steps: int) -> Iterator[None]:
        """Run statements, one for each step."""
        for _ in range(steps):
            if len(self._tables) < 2 or self._random.random() < 0.45:
                self._define(self._definition())
                self._look_at_tables()
            else:
                self._change_rows()
            yield

    # ---- statements ----

    def _run(self, statement: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def _define(self, statement: str) -> None:
        """Run a definition; one that the server refuses does not count."""
        self.statements.append(statement)
        try:
            for one in statement.split(";;"):
                self._run(one)
        except (pymysql.err.MySQLError, UnicodeError) as error:
            self.statements[-1] += f"  -- {str(error)[:100]}"

    def _look_at_tables(self) -> None:
        found = self._run(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA IN "
            f"('{self._schemas[0]}', '{self._schemas[1]}') ORDER BY 1, 2"
        )
        self._tables = [(text(row[0]), text(row[1])) for row in found]

    def _columns_of(self, schema: str, table: str) -> list[ServerColumn]:
        found = self._run(
            "SELECT COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, EXTRA FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = "
            f"'{schema}' AND TABLE_NAME = '{table.replace(chr(39), chr(39) * 2)}' ORDER BY ORDINAL_POSITION"
        )
        return [
            ServerColumn(text(row[0]), text(row[1]), text(row[2]) if row[2] else None, text(row[3])) for row in found
        ]

    # ---- definitions ----

    def _definition(self) -> str:
        pick = self._random.random()
        if len(self._tables) < 2 or pick < 0.18:
            return self._create()
        schema, table = self._random.choice(self._tables)
        name = f"{schema}.{quoted(table)}"
        if pick < 0.70:
            return self._alter(schema, table)
        if pick < 0.78:
            return self._rename(name, table)
        if pick < 0.83:
            words = self._random.choice(("DROP TABLE", "DROP TABLE IF EXISTS", "drop /* x */ tables"))
            second = f", {self._random.choice(self._schemas)}.nothing" if "EXISTS" in words else ""
            return f"{words} {name}{second}"
        if pick < 0.86:
            return f"TRUNCATE TABLE {name}"
        if pick < 0.90:
            column = quoted(self._random.choice(_COLUMNS))
            return self._random.choice(
                (
                    f"CREATE INDEX i1 ON {name} ({column}(3))",
                    f"DROP INDEX i1 ON {name}",
                    f"CREATE UNIQUE INDEX u1 ON {name} (id)",
                )
            )
        if pick < 0.93:
            return f"ALTER DATABASE {schema} CHARACTER SET {self._random.choice(_CHARSETS)}"
        if pick < 0.96:
            return f"CREATE TEMPORARY TABLE {schema}.tmp (x INT);;ALTER TABLE {schema}.tmp ADD y INT;;DROP TEMPORARY TABLE {schema}.tmp"
        return self._random.choice(
            (
                f"CREATE OR REPLACE VIEW {schema}.v AS SELECT 1",
                f"CREATE TRIGGER {schema}.g{self._random.randrange(999)} BEFORE INSERT ON {name} FOR EACH ROW SET @x = 1",
                f"DROP DATABASE {schema};;CREATE DATABASE {schema}",
                f"CREATE DATABASE IF NOT EXISTS {schema} CHARACTER SET sjis",
                f"USE {schema};;ALTER TABLE {quoted(table)} COMMENT 'it''s; \\'ADD COLUMN z INT'",
                f"OPTIMIZE TABLE {name}",
            )
        )

    def _create(self) -> str:
        schema = self._random.choice(self._schemas)
        name = f"{schema}.{quoted(self._random.choice(_TABLES))}"
        pick = self._random.random()
        if self._tables and pick < 0.15:
            other = self._random.choice(self._tables)
            like = f"LIKE {other[0]}.{quoted(other[1])}"
            return f"CREATE TABLE {name} " + self._random.choice((like, f"({like})"))
        if self._tables and pick < 0.25:
            other = self._random.choice(self._tables)
            return f"CREATE TABLE {name} (PRIMARY KEY (id)) SELECT * FROM {other[0]}.{quoted(other[1])} LIMIT 0"
        words = "CREATE TABLE"
        if self._random.random() < 0.2:
            words += " IF NOT EXISTS"
        elif self._mariadb and self._random.random() < 0.2:
            words = "CREATE OR REPLACE TABLE"
        names = self._random.sample(_COLUMNS, self._random.randint(1, 6))
        parts = ["id INT UNSIGNED NOT NULL AUTO_INCREMENT" + self._random.choice((" PRIMARY KEY", " KEY", ""))]
        parts += [f"{quoted(one)} {self._column()}" for one in names]
        if not parts[0].endswith("KEY"):
            parts.append(
                self._random.choice(
                    ("PRIMARY KEY (id)", "CONSTRAINT pk PRIMARY KEY USING BTREE (`id`)", "UNIQUE KEY u (id)")
                )
            )
        if self._random.random() < 0.3:
            parts.append(f"KEY k ({quoted(names[0])}(2))" if self._random.random() < 0.5 else "KEY (id), CHECK (1 > 0)")
        first = parts.pop(0)
        parts.insert(self._random.randint(0, min(2, len(names))), first)
        options = []
        if self._random.random() < 0.6:
            charset = self._random.choice(_CHARSETS)
            options.append(
                self._random.choice(
                    (f"DEFAULT CHARSET={charset}", f"CHARACTER SET {charset}", f"/*!40101 DEFAULT CHARSET {charset} */")
                )
            )
        options += self._random.sample(
            ("ENGINE=MyISAM", "COMMENT='a (b'", "ROW_FORMAT=DYNAMIC", "AUTO_INCREMENT 7"), self._random.randint(0, 2)
        )
        if self._random.random() < 0.1:
            options.append("PARTITION BY HASH (id) PARTITIONS 3")
        separator = self._random.choice((", ", ",\n  ", " , # a comment, too\n"))
        return f"{words} {name} ({separator.join(parts)}) {' '.join(options)}"

    def _alter(self, schema: str, table: str) -> str:
        columns = [one.name for one in self._columns_of(schema, table)]
        clauses = [self._clause(columns) for _ in range(self._random.choice((1, 1, 1, 2, 2, 3, 4)))]
        if self._mariadb and not (table.isalnum() and table.isascii()):
            # MariaDB 10.11.18 leaves a table with the old name, beside the new one, when ALTER copies and renames it
            clauses = [clause for clause in clauses if not clause.startswith("RENAME") or "COLUMN" in clause] or [
                "FORCE"
            ]
        words = "ALTER TABLE"
        if self._mariadb and self._random.random() < 0.2:
            words = self._random.choice(("ALTER IGNORE TABLE", "ALTER TABLE IF EXISTS"))
        return f"{words} {schema}.{quoted(table)} {', '.join(clauses)}"

    def _clause(self, columns: list[str]) -> str:
        old = quoted(self._random.choice([one for one in columns if one != "id"] or columns))
        new = quoted(self._random.choice(_COLUMNS))
        place = self._random.choice(("", "", " FIRST", f" AFTER {quoted(self._random.choice(columns))}"))
        exists = " IF NOT EXISTS" if self._mariadb and self._random.random() < 0.2 else ""
        gone = " IF EXISTS" if self._mariadb and self._random.random() < 0.2 else ""
        charset = self._random.choice(_CHARSETS)
        pick = self._random.random()
        if pick < 0.28:
            return f"ADD {self._random.choice(('', 'COLUMN'))}{exists} {new} {self._column()}{place}"
        if pick < 0.32:
            return f"ADD COLUMN ({new} {self._column()}, {quoted(self._random.choice(_COLUMNS))} {self._column()})"
        if pick < 0.45:
            return f"DROP {self._random.choice(('', 'COLUMN'))}{gone} {old}"
        if pick < 0.58:
            return f"CHANGE {self._random.choice(('', 'COLUMN'))}{gone} {old} {new} {self._column()}{place}"
        if pick < 0.70:
            return f"MODIFY{gone} {old} {self._column()}{place}"
        if pick < 0.73:
            return f"MODIFY COLUMN id INT UNSIGNED NOT NULL AUTO_INCREMENT{place}"
        if pick < 0.78 and (self._new or self._mariadb):
            return f"RENAME COLUMN {old} TO {new}"
        if pick < 0.83:
            return f"CONVERT TO CHARACTER SET {charset}"
        if pick < 0.87:
            return f"DEFAULT CHARACTER SET = {charset}"
        if pick < 0.90:
            target = f"{self._random.choice(self._schemas)}.{quoted(self._random.choice(_TABLES))}"
            return f"RENAME {self._random.choice(('TO', 'AS', ''))} {target}"
        return self._random.choice(
            (
                "ENGINE=InnoDB", "FORCE", f"ADD INDEX i2 ({old}(4))", "DROP INDEX i2", f"ALTER COLUMN {old} DROP DEFAULT",
                "COMMENT='x, ADD y INT'", f"ADD UNIQUE INDEX u2 (id, {old}(2))", "ORDER BY id", "ALGORITHM=COPY", "CHECKSUM 1",
            )
        )  # fmt: skip

    def _column(self) -> str:
        choose = self._random.choice
        charset = choose(
            (
                "",
                "",
                "",
                f" CHARACTER SET {choose(_CHARSETS)}",
                f" CHARSET {choose(_CHARSETS)}",
                " COLLATE latin1_swedish_ci",
                " BINARY",
            )
        )
        kinds = [
            f"{choose(('TINYINT', 'SMALLINT', 'MEDIUMINT', 'INT', 'BIGINT', 'INTEGER', 'INT8'))}"
            f"{choose(('', '(5)'))}{choose(('', ' UNSIGNED', ' UNSIGNED', ' UNSIGNED ZEROFILL', ' /*!50000 unsigned */'))}",
            f"VARCHAR({choose((5, 40, 100))}){charset}",
            f"CHAR({choose((1, 30))}){charset}",
            f"{choose(('TINYTEXT', 'TEXT', 'MEDIUMTEXT', 'TEXT(50)'))}{charset}",
            choose(("VARBINARY(20)", "BINARY(9)", "BLOB", "TINYBLOB", "CHAR(5) BYTE", "LONGBLOB", "BLOB(10)")),
            f"ENUM('one','tw''o','größe, 3')  CHARACTER SET {choose(('latin1', 'utf8'))}",
            "SET('x','y','z''w')",
            choose(("DECIMAL(20,5)", "NUMERIC(7)", "DEC", "FIXED(5,5) UNSIGNED", "DECIMAL(65,30)")),
            choose(("FLOAT", "DOUBLE PRECISION", "REAL", "FLOAT(30)", "DOUBLE(10,3)")),
            choose(_TIMES),
            choose(_OTHERS),
            f"INT GENERATED ALWAYS AS (id + 1) {choose(('VIRTUAL', 'STORED'))}" if self._new else "INT",
        ]  # fmt: skip
        if self._mariadb:
            kinds += [
                "UUID",
                "INET6",
                "INT AS (id + 1) PERSISTENT",
                f"VARCHAR(30) COMPRESSED{charset}",
                "INT INVISIBLE",
                "JSON",
            ]
        if self._new:
            kinds += ["JSON", "INT INVISIBLE", "POINT SRID 4326"]
        kind = choose(kinds)
        tail = choose(("", "", "", " NULL", " COMMENT 'a, b'", " DEFAULT NULL"))
        return kind if "GENERATED" in kind or " AS (" in kind else kind + ("" if "NULL" in kind else tail)

    def _rename(self, name: str, table: str) -> str:
        schema = name.split(".")[0]
        target = self._random.choice(self._tables)
        other = f"{target[0]}.{quoted(target[1])}"
        if self._random.random() < 0.5 and other != name:
            return f"RENAME TABLE {name} TO {schema}.swap, {other} TO {name}, {schema}.swap TO {other}"
        return f"RENAME TABLE {name} TO {self._random.choice(self._schemas)}.{quoted(self._random.choice(_TABLES))}"

    # ---- rows ----

    def _change_rows(self) -> None:
        schema, table = self._random.choice(self._tables)
        columns = self._columns_of(schema, table)
        name = f"{schema}.{quoted(table)}"
        if "id" not in [one.name for one in columns]:
            return
        for _ in range(self._random.randint(1, 3)):
            pick = self._random.random()
            self._number += 1
            given = {one.name: self._value(one) for one in columns if not one.generated and one.name != "id"}
            try:
                if pick < 0.6:
                    ids = [text(row[0]) for row in self._run(f"SELECT COALESCE(MAX(id), 0) + 1 FROM {name}")]
                    given["id"] = ids[0]
                    self._run(
                        f"INSERT INTO {name} ({', '.join(map(quoted, given))}) VALUES ({', '.join(given.values())})"
                    )
                    after = self._select(name, columns, ids[0])
                    self._changed("insert", schema, table, columns, None, after)
                    continue
                found = self._run(f"SELECT id FROM {name} ORDER BY id LIMIT 1")
                if not found:
                    continue
                number = text(found[0][0])
                before = self._select(name, columns, number)
                if pick < 0.85:
                    self._run(
                        f"UPDATE {name} SET {', '.join(f'{quoted(one)} = {value}' for one, value in given.items())} WHERE id = {number}"
                    )
                    after = self._select(name, columns, number)
                    if after != before:
                        self._changed("update", schema, table, columns, before, after)
                else:
                    self._run(f"DELETE FROM {name} WHERE id = {number}")
                    self._changed("delete", schema, table, columns, before, None)
            except pymysql.err.MySQLError as error:
                self.statements.append(f"-- {operation_error(error)}")
                return

    def _changed(
        self, operation: str, schema: str, table: str, columns: list[ServerColumn], before: Any, after: Any
    ) -> None:
        self.rows.append(
            TrueRow(operation, schema, table, columns, before, after, definition=str(len(self.statements)))
        )
        self.statements.append(f"{operation} {schema}.{table}")

    def _select(self, name: str, columns: list[ServerColumn], number: str) -> dict[str, Any]:
        wanted = ", ".join(
            f"ST_AsBinary({quoted(one.name)}, 'axis-order=long-lat')" if one.native == "point" else quoted(one.name)
            for one in columns
        )
        numbered = [one.name for one in columns if one.native in ("enum", "set")]
        wanted += "".join(f", {quoted(one)} + 0" for one in numbered)
        rows = self._run(f"SELECT {wanted} FROM {name} WHERE id = {number}")
        shown = {one.name: value for one, value in zip(columns, rows[0], strict=False)}
        numbers = rows[0][len(columns) :]
        return shown | {NUMBER + one: value for one, value in zip(numbered, numbers, strict=True)}

    def _value(self, column: ServerColumn) -> str:
        choose = self._random.choice
        native = column.native
        if self._random.random() < 0.1:
            return "NULL"
        if native in ("tinyint", "smallint", "mediumint", "int", "bigint"):
            bits = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}[native]
            if "unsigned" in column.type:
                return str(choose((0, 5, (1 << bits) - 1, 1 << bits - 1)))
            return str(choose((0, -1, -(1 << bits - 1), (1 << bits - 1) - 1)))
        if native in ("char", "varchar", "tinytext", "text", "mediumtext", "longtext"):
            if "json" in column.type or (self._mariadb and native == "longtext"):
                return choose(("'[1, 2]'", "'{\"a\": 1}'"))
            word = _WORDS.get(column.charset or "", "abc")
            return f"'{choose((word, 'abc', '', word[:1], 'aa'))}'"
        if native in ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"):
            return choose(("x'00ff41'", "'abc'", "''", "x'4100'"))
        if native == "enum":
            return choose(("1", "2", "3", "'one'", "'nosuch'"))
        if native == "set":
            return choose(("1", "3", "7", "''", "'x,y'"))
        if native == "decimal":
            return choose(("0.5", "-1.25", "123.456", "0", "99999"))
        if native in ("float", "double"):
            return choose(("0.1", "-1e10", "3.5", "0", "1e-5"))
        if native == "json":
            return choose(("'[1, 2]'", '\'{"a": "ы"}\'', "'1.5'"))
        if native == "point":
            return "ST_GeomFromText('POINT(1 2)', 4326, 'axis-order=long-lat')"
        if native == "bit":
            return choose(("b'0'", "b'1'"))
        if native == "uuid":
            return "'123e4567-e89b-12d3-a456-426655440000'"
        if native == "inet6":
            return choose(("'2001:db8::1'", "'::'"))
        if native == "year":
            return choose(("1999", "2024", "0"))
        return (
            choose(("'2024-02-29 12:34:56.123456'", "'1999-12-31 23:59:59.9'", "'2001-01-01'"))
            if native != "time"
            else choose(("'12:34:56.789'", "'-838:59:59'", "'00:00:01'"))
        )


def operation_error(error: Exception) -> str:
    """Return an error of the server, shortened."""
    return str(error)[:120].replace("\n", " ")


def text(value: Any) -> str:
    """Return a value of information_schema."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes | bytearray) else str(value)


def true_tables(server: Server, prefix: str) -> dict[tuple[str, str], ServerTable]:
    """Return the tables of schemas whose names begin so, as information_schema has them now."""
    where = f"WHERE TABLE_SCHEMA LIKE '{prefix.replace('_', chr(92) + '_')}%'"
    with contextlib.closing(server.connect(conv={}, use_unicode=False)) as connection, connection.cursor() as cursor:

        def ask(statement: str) -> list[list[str]]:
            cursor.execute(statement)
            return [["" if value is None else text(value) for value in row] for row in cursor.fetchall()]

        names = ask(
            f"SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES {where} AND TABLE_TYPE = 'BASE TABLE'"
        )
        found = {(schema, table): ServerTable([], {}) for schema, table in names}
        for schema, table, *described in ask(
            "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, EXTRA FROM "
            f"information_schema.COLUMNS {where} ORDER BY 1, 2, ORDINAL_POSITION"
        ):
            if (schema, table) in found:
                found[schema, table].columns.append(ServerColumn(*described))
        for schema, table, index, unique, column in ask(
            "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, 1 - NON_UNIQUE, COLUMN_NAME FROM information_schema.STATISTICS "
            f"{where} ORDER BY 1, 2, 3, SEQ_IN_INDEX"
        ):
            if (schema, table) in found:
                found[schema, table].keys.setdefault((index, unique == "1"), []).append(column)
    return found


# ---- comparing -------------------------------------------------------------------------------------------------------


def differences(true: TrueRow, row: dict[str, Any]) -> list[str]:
    """Return how a row of level `rows` differs from what the server showed."""
    found = []
    for name in ("operation", "schema", "table"):
        if row[name] != getattr(true, name):
            found.append(f"{name} is {row[name]!r}, not {getattr(true, name)!r}")
    if found:
        return found
    for image in ("before", "after"):
        shown = getattr(true, image)
        read = json.loads(row[image]) if row[image] is not None else None
        if (shown is None) != (read is None):
            found.append(f"{image} is {read!r}, not {shown!r}")
        elif shown is not None and read is not None:
            found += [f"{image}: {one}" for one in _image_differences(true.columns, shown, read)]
    return found


def _image_differences(columns: list[ServerColumn], shown: dict[str, Any], read: dict[str, Any]) -> Iterator[str]:
    for column in columns:
        if column.name not in read:
            if not column.generated:
                yield f"{column.name} is missing; there are {list(read)}"
        elif isinstance(read[column.name], int) and column.native in ("enum", "set"):
            if float(text(shown[NUMBER + column.name])) != read[column.name]:
                yield f"{column.name} {column.type}: {read[column.name]!r}, not {shown[NUMBER + column.name]!r}"
        elif not same_value(column, shown[column.name], read[column.name]):
            yield f"{column.name} {column.type} {column.charset}: {read[column.name]!r}, not {shown[column.name]!r}"
    for name in read:
        if name not in shown:
            yield f"{name} is too many"


def same_value(column: ServerColumn, shown: Any, read: Any) -> bool:
    """Return whether a value of a row's image is what SELECT showed."""
    if shown is None or read is None:
        return shown is None and read is None
    native = column.native
    if native == "bit":
        return bool(int.from_bytes(shown, "big") == read)
    if native == "point":
        return isinstance(read, dict) and base64.b64decode(read["wkb"]) == shown
    if native in ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"):
        return isinstance(read, dict) and base64.b64decode(read["base64"]) == shown
    shown = text(shown)
    if native in ("float", "double"):
        if native == "float":
            return abs(float(shown) - float(read)) <= abs(float(shown)) * 1e-5
        return float(shown) == float(read) or abs(float(shown) - float(read)) <= abs(float(shown)) * 1e-12
    if native == "json":
        return bool(json.loads(shown) == read)
    if native in ("tinyint", "smallint", "mediumint", "int", "bigint", "year"):
        return isinstance(read, int) and int(shown) == read
    return isinstance(read, str) and shown == read
