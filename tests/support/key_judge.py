"""A real MySQL 9.7 that is asked for the keys of tables, and which values of a key are equal.

It gets the definitions of a binlog one after the other, and has no rows of it. Equal values are found by a unique index of the column's
own collation: values that the index considers duplicates are equal.
"""

import contextlib
import re
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

import pymysql

from deploy.servers import Server
from tests.support.expression_keys import ExpressionKey, ExpressionKeys, ToldColumn
from tests.support.logged_rows import Row

TableName = tuple[str, str]
"""A schema and a table."""
BINARY: Final = "binary"
_VALUES: Final = "equal_values"
_OWN: Final = f"('mysql', 'sys', 'information_schema', 'performance_schema', '{_VALUES}')"
_LONGEST: Final = 700
_COMPUTED: Final = -1
_DEFINES: Final = re.compile(
    r"\s*(?:/\*.*?\*/\s*)*(CREATE|ALTER|DROP|RENAME|TRUNCATE)\s+"
    r"(?:TEMPORARY\s+|UNIQUE\s+|OR\s+REPLACE\s+)*(TABLES?|DATABASE|SCHEMA|INDEX|\S+)",
    re.IGNORECASE | re.DOTALL,
)
_DEFINED: Final = frozenset(("TABLE", "TABLES", "DATABASE", "SCHEMA", "INDEX"))
_COLUMNS: Final = f"""
    SELECT table_schema, table_name, column_name, data_type, is_nullable, collation_name, character_octet_length, column_type,
           character_set_name, extra
    FROM information_schema.columns WHERE table_schema NOT IN {_OWN} ORDER BY table_schema, table_name, ordinal_position
"""
_UNIQUES: Final = f"""
    SELECT table_schema, table_name, index_name, column_name, sub_part, expression
    FROM information_schema.statistics WHERE non_unique = 0 AND table_schema NOT IN {_OWN}
    ORDER BY table_schema, table_name, index_name <> 'PRIMARY', index_name, seq_in_index
"""
_REFERENCES: Final = f"""
    SELECT k.table_schema, k.table_name, k.constraint_name, k.column_name, k.referenced_table_schema, k.referenced_table_name,
           k.referenced_column_name, r.delete_rule, r.update_rule
    FROM information_schema.key_column_usage k JOIN information_schema.referential_constraints r
      ON r.constraint_schema = k.constraint_schema AND r.constraint_name = k.constraint_name AND r.table_name = k.table_name
    WHERE k.referenced_table_name IS NOT NULL AND k.table_schema NOT IN {_OWN}
    ORDER BY k.table_schema, k.table_name, k.constraint_name, k.ordinal_position
"""


@dataclass(frozen=True, slots=True)
class JudgedColumn:
    """A column. `collation` is "binary" for strings of bytes, "" for what is no string. `width` is that of BINARY(n), else 0."""

    name: str
    is_nullable: bool
    collation: str
    width: int


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column's number, and how many of its characters or bytes count; 0 means all."""

    column: int
    prefix: int


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key: columns of the child, and the parent's columns that they name, by number."""

    name: str
    child: TableName
    columns: tuple[int, ...]
    parent: TableName
    parent_columns: tuple[int, ...]
    on_delete: str
    on_update: str


@dataclass(slots=True)
class JudgedTable:
    """A table's keys. `expressions` are those of `uniques` that are not of columns only, and are not in it. `children` are the foreign
    keys that name its rows. `identity` are the columns that identify a row; () means all."""

    name: TableName
    columns: tuple[JudgedColumn, ...]
    uniques: dict[str, tuple[KeyPart, ...]]
    references: list[Reference]
    children: list[Reference]
    expressions: list[ExpressionKey] = field(default_factory=list)

    @property
    def identity(self) -> tuple[int, ...]:
        """The columns of the primary key, else of the first unique key of whole columns that cannot be NULL."""
        for parts in self.uniques.values():
            if not any(part.prefix or self.columns[part.column].is_nullable for part in parts):
                return tuple(part.column for part in parts)
        return ()

    @property
    def in_order(self) -> bool:
        """True if InnoDB accepts its rows in ascending order only."""
        return any(column.name == "FTS_DOC_ID" for column in self.columns)


class KeyJudge:
    """A judge. `server` is a MySQL 9.7 for it alone. `with` removes what was defined."""

    def __init__(self, server: Server) -> None:
        self._connection = server.connect()
        self._classes: dict[tuple[str, bytes, int], int] = {}
        self._charsets: dict[str, str] = {BINARY: BINARY}
        self._expressions = ExpressionKeys(self._do, _VALUES)
        self._do("SET sql_log_bin = 0, foreign_key_checks = 0, restrict_fk_on_non_standard_key = 0, sql_mode = ''")
        self.forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(pymysql.MySQLError):
            self.forget()
        self._connection.close()

    def forget(self) -> None:
        """Remove all that was defined, as before the first binlog. The equality of values stays known."""
        for (schema,) in self._do(
            f"SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN {_OWN}"
        ):
            self._do(f"DROP DATABASE `{schema}`")
        self._do(f"CREATE DATABASE IF NOT EXISTS {_VALUES}")

    def define(self, schema: str, statement: str) -> bool:
        """Run a statement if it defines tables; return whether it did. Raises: pymysql.MySQLError if the judge cannot."""
        found = _DEFINES.match(statement)
        if found is None or found[2].upper() not in _DEFINED:
            return False
        if schema and self._do(f"SELECT 1 FROM information_schema.schemata WHERE schema_name = '{schema}'"):
            self._connection.select_db(schema)
        try:
            self._do(statement)
        except pymysql.MySQLError:
            # DROP of several tables ends with an error where one is missing, and is logged all the same.
            if found[1].upper() != "DROP":
                raise
        return True

    def tables(self) -> dict[TableName, JudgedTable]:
        """Return all tables that are defined now."""
        found: dict[TableName, JudgedTable] = {}
        told: dict[TableName, list[ToldColumn]] = {}
        for schema, table, name, kind, nullable, collation, octets, sql_type, charset, extra in self._do(_COLUMNS):
            column = ToldColumn(
                name, kind, "unsigned" in sql_type, charset or "", "GENERATED" in extra.split("DEFAULT_")[0]
            )
            told.setdefault((schema, table), []).append(column)
            made = found.setdefault((schema, table), JudgedTable((schema, table), (), {}, [], []))
            own = collation or (BINARY if kind in ("binary", "varbinary") or kind.endswith("blob") else "")
            made.columns += (JudgedColumn(name, nullable == "YES", own, octets if kind == "binary" else 0),)
        places = {name: {column.name: at for at, column in enumerate(table.columns)} for name, table in found.items()}
        computed: dict[tuple[str, str, str], list[str]] = {}
        for schema, table, index, name, prefix, expression in self._do(_UNIQUES):
            uniques = found[schema, table].uniques
            computed.setdefault((schema, table, index), []).append(
                f"`{name}`" if name else expression.replace("\\'", "'")
            )
            part = KeyPart(places[schema, table][name] if name else _COMPUTED, int(prefix or 0))
            uniques[index] = (*uniques.get(index, ()), part)
        for (schema, table, index), parts in computed.items():
            own_table = found[schema, table]
            if all(part.column != _COMPUTED for part in own_table.uniques[index]):
                continue
            del own_table.uniques[index]
            ((_name, text),) = self._do(f"SHOW CREATE TABLE `{schema}`.`{table}`")
            columns_told = tuple(told[schema, table])
            own_table.expressions.append(ExpressionKey(schema, table, index, tuple(parts), columns_told, text))
        columns: dict[tuple[Any, ...], list[tuple[str, str]]] = {}
        for schema, table, name, column, *parent, referenced, on_delete, on_update in self._do(_REFERENCES):
            key = (name, (schema, table), tuple(parent), on_delete, on_update)
            columns.setdefault(key, []).append((referenced, column))
        for (name, child, parent, on_delete, on_update), pairs in columns.items():
            if parent not in found:
                continue  # it was dropped with foreign_key_checks = 0: rows cannot name it
            # In the order of the parent's columns, so that all foreign keys to them give values in one order.
            numbers = sorted((places[parent][referenced], places[child][column]) for referenced, column in pairs)
            theirs, ours = zip(*numbers, strict=True)
            reference = Reference(name, child, ours, parent, theirs, on_delete, on_update)
            found[child].references.append(reference)
            found[parent].children.append(reference)
        return found

    def classes_of_row(self, key: ExpressionKey, row: Row) -> tuple[int, ...]:
        """Return `ExpressionKeys.numbers_of` for the row."""
        return self._expressions.numbers_of(key, row)

    def class_of(self, collation: str, value: bytes, prefix: int = 0) -> int:
        """Return a number that this value shares with those that are equal to it; `prefix` is the number of characters that count, 0
        for all."""
        key = (collation, value, prefix)
        if key not in self._classes:
            self._classes[key] = self._ask(*key)
        return self._classes[key]

    def _ask(self, collation: str, value: bytes, prefix: int) -> int:
        if len(value) > _LONGEST and not prefix:
            raise ValueError(f"a value of {len(value)} bytes is too long for the judge: {value[:40]!r}…")
        table = f"{_VALUES}.`{collation}`"
        if collation not in self._charsets:
            ((charset,),) = self._do(
                f"SELECT character_set_name FROM information_schema.collations WHERE collation_name = '{collation}'"
            )
            self._charsets[collation] = charset
        charset = self._charsets[collation]
        kind = f"VARCHAR({_LONGEST}) CHARACTER SET {charset} COLLATE {collation}"
        if collation == BINARY:
            kind = f"VARBINARY({_LONGEST})"
        self._do(f"CREATE TABLE IF NOT EXISTS {table} (n INT AUTO_INCREMENT PRIMARY KEY, v {kind} NOT NULL UNIQUE)")
        literal = f"_{charset} X'{value.hex()}'"
        if prefix:
            literal = f"LEFT({literal}, {prefix})"
        self._do(f"INSERT IGNORE INTO {table} (v) VALUES ({literal})")
        ((number,),) = self._do(f"SELECT n FROM {table} WHERE v = {literal}")
        return int(number)

    def _do(self, statement: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())
