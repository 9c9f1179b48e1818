"""What a server has of tables: columns and keys, by information_schema."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from protocol.sql.tables.source_table import TableName
from relay.compare.servers.compared_server import ComparedServer
from relay.config.table_patterns import names_table
from relay.upstream.schema.answer_text import answer_text, quoted_name, quoted_text

_OF_THE_SERVER: Final = ("mysql", "information_schema", "performance_schema", "sys", "ndbinfo")
_SEPARATE_TYPE_WORDS: Final = (" ", "(")


@dataclass(frozen=True, slots=True)
class ShapeColumn:
    """A column, in its server's words. `charset` and `collation` are "" where it has none."""

    name: str
    type: str
    nullable: bool
    charset: str
    collation: str
    default: str | None
    extra: str
    comment: str

    @property
    def base(self) -> str:
        """The type's first word, such as varchar."""
        return min((self.type.lower().split(mark)[0] for mark in _SEPARATE_TYPE_WORDS), key=len)

    @property
    def is_generated(self) -> bool:
        """True if its value is computed: no statement may give it one."""
        words = self.extra.upper().split()
        return "GENERATED" in words or "VIRTUAL" in words or "PERSISTENT" in words


@dataclass(frozen=True, slots=True)
class ShapeKey:
    """A key. `parts` are (column, prefix length or None, "A" or "D"); an expression has the column "" and its text as `expression`."""

    name: str
    unique: bool
    kind: str
    parts: tuple[tuple[str, int | None, str], ...]
    expression: str = ""

    def columns(self) -> tuple[str, ...]:
        """Return the names of its columns."""
        return tuple(name for name, _length, _order in self.parts)


@dataclass(slots=True)
class TableShape:
    """A table of one server."""

    key: TableName
    engine: str
    collation: str
    options: str
    comment: str
    rows: int
    size_bytes: int
    columns: dict[str, ShapeColumn] = field(default_factory=dict)
    keys: dict[str, ShapeKey] = field(default_factory=dict)

    @property
    def quoted(self) -> str:
        """Its name for a statement."""
        return f"{quoted_name(self.key[0])}.{quoted_name(self.key[1])}"

    def whole_keys(self) -> list[ShapeKey]:
        """Return the keys by which each row has a place of its own, the primary key first: unique, of whole columns without NULL."""
        found = [
            one
            for one in self.keys.values()
            if one.unique
            and not one.expression
            and one.kind.upper() == "BTREE"
            and all(
                length is None and name in self.columns and not self.columns[name].nullable
                for name, length, _order in one.parts
            )
        ]
        return sorted(found, key=lambda one: one.name != "PRIMARY")


def compared_schemas(server: ComparedServer) -> list[str]:
    """Return the databases of users."""
    return sorted(
        name for row in server.rows("SHOW DATABASES") if (name := answer_text(row[0])).lower() not in _OF_THE_SERVER
    )


@dataclass(frozen=True, slots=True)
class ComparedTables:
    """The tables that are compared, by patterns of SCHEMA.TABLE; without any, all."""

    tables: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def has(self, key: TableName) -> bool:
        """Return whether the table is compared."""
        return (not self.tables or names_table(self.tables, key)) and not names_table(self.exclude, key)

    @property
    def is_all(self) -> bool:
        """True if nothing was left out by name."""
        return not self.tables


def table_shapes(server: ComparedServer, schemas: Iterable[str], wanted: ComparedTables) -> dict[TableName, TableShape]:
    """Return the tables of these databases, without views. Raises: CompareStop."""
    found: dict[TableName, TableShape] = {}
    for schema in schemas:
        text = quoted_text(schema)
        shapes: dict[str, TableShape] = {}
        for row in server.rows(
            "SELECT TABLE_NAME, ENGINE, TABLE_COLLATION, CREATE_OPTIONS, TABLE_COMMENT, TABLE_ROWS, DATA_LENGTH"
            f" FROM information_schema.TABLES WHERE TABLE_SCHEMA = {text} AND TABLE_TYPE = 'BASE TABLE'"
        ):
            name = answer_text(row[0])
            if wanted.has((schema, name)):
                engine, collation, options, comment = map(answer_text, row[1:5])
                size = (int(row[5] or 0), int(row[6] or 0))
                shapes[name] = TableShape((schema, name), engine, collation, options, comment, *size)
        if shapes:
            _add_columns(server, text, shapes)
            _add_keys(server, text, shapes)
        found |= {shape.key: shape for shape in shapes.values()}
    return found


def next_numbers(server: ComparedServer, schemas: Iterable[str], wanted: ComparedTables) -> dict[TableName, int]:
    """Return the AUTO_INCREMENT of each table with such a column; of one without, servers say NULL or 1, by version and engine. Raises:
    CompareStop."""
    return {
        (schema, name): int(row[1])
        for schema in schemas
        for row in server.rows(
            "SELECT TABLE_NAME, AUTO_INCREMENT FROM information_schema.TABLES"
            f" WHERE TABLE_SCHEMA = {quoted_text(schema)} AND AUTO_INCREMENT IS NOT NULL AND TABLE_NAME IN (SELECT TABLE_NAME"
            f" FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {quoted_text(schema)} AND EXTRA LIKE '%auto_increment%')"
        )
        if wanted.has((schema, name := answer_text(row[0])))
    }


def _add_columns(server: ComparedServer, schema: str, shapes: Mapping[str, TableShape]) -> None:
    for row in server.rows(
        "SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, CHARACTER_SET_NAME, COLLATION_NAME, COLUMN_DEFAULT, EXTRA,"
        f" COLUMN_COMMENT FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {schema} ORDER BY TABLE_NAME, ORDINAL_POSITION"
    ):
        table, name, kind, nullable, charset, collation, _default, extra, comment = map(answer_text, row)
        shape = shapes.get(table)
        if shape is not None:
            default = None if row[6] is None else answer_text(row[6])
            shape.columns[name] = ShapeColumn(
                name, kind, nullable == "YES", charset, collation, default, extra, comment
            )


def _add_keys(server: ComparedServer, schema: str, shapes: Mapping[str, TableShape]) -> None:
    expression = "EXPRESSION" if _has_expressions(server) else "NULL"
    parts: dict[tuple[str, str], list[tuple[Any, ...]]] = defaultdict(list)
    for row in server.rows(
        f"SELECT TABLE_NAME, INDEX_NAME, NON_UNIQUE, INDEX_TYPE, COLUMN_NAME, SUB_PART, COLLATION, {expression}"
        f" FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = {schema} ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"
    ):
        parts[answer_text(row[0]), answer_text(row[1])].append(row)
    for (table, name), rows in parts.items():
        if table in shapes:
            shapes[table].keys[name] = ShapeKey(
                name,
                not int(rows[0][2]),
                answer_text(rows[0][3]),
                tuple(
                    (answer_text(row[4]), None if row[5] is None else int(row[5]), answer_text(row[6])) for row in rows
                ),
                ", ".join(answer_text(row[7]) for row in rows if row[7] is not None),
            )


def _has_expressions(server: ComparedServer) -> bool:
    return bool(
        server.rows(
            "SELECT 1 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'information_schema'"
            " AND TABLE_NAME = 'STATISTICS' AND COLUMN_NAME = 'EXPRESSION'"
        )
    )
