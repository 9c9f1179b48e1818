"""Statements that give the new server the source's definitions."""

from collections.abc import Iterator
from typing import Final

from protocol.sql.tables.source_table import TableName
from relay.compare.definitions.definition_facts import Facts, ObjectName
from relay.compare.definitions.program_facts import PROGRAMS, created
from relay.compare.rows.table_shape import TableShape
from relay.compare.servers.compared_server import ComparedServer
from relay.upstream.schema.answer_text import answer_text, quoted_name, quoted_text

_DELIMITER: Final = "$$repaired$$"
_HEADS: Final = {
    "column": ("",),
    "key": ("KEY", "UNIQUE KEY", "FULLTEXT KEY", "SPATIAL KEY"),
    "foreign key": ("CONSTRAINT",),
}


class DefinitionRepair:
    """Asks the source for its definitions, as it writes them."""

    def __init__(self, source: ComparedServer) -> None:
        self._source = source
        self._created: dict[TableName, list[str]] = {}

    def statements(self, of: ObjectName, table: TableName, source: Facts | None, target: Facts | None) -> Iterator[str]:
        """Yield statements for an object that differs; a comment where there is none. `table` has it."""
        kind, name = of
        quoted = ".".join(map(quoted_name, table))
        own = name[len(".".join(table)) + 1 :]
        if kind in PROGRAMS:
            yield from self._program(kind, table, source, target)
        elif kind == "table":
            yield from self._table(table, quoted, source, target)
        elif kind in _HEADS:
            yield from self._part(kind, table, own, source, target)
        else:
            yield f"-- {kind} {name}: compare SHOW CREATE TABLE of both servers, and ALTER TABLE {quoted} by hand."

    def auto_increment(self, shape: TableShape, number: int) -> str:
        """Return the statement that sets the table's next number."""
        return f"ALTER TABLE {shape.quoted} AUTO_INCREMENT = {number};"

    def _program(self, kind: str, name: TableName, source: Facts | None, target: Facts | None) -> Iterator[str]:
        quoted = ".".join(map(quoted_name, name))
        if target is not None:
            yield f"DROP {kind.upper()} {quoted};"
        if source is None:
            return
        text = created(self._source, kind, name)
        if text is None:
            yield f"-- {kind} {quoted}: the source does not show its text to this account."
            return
        yield f"SET SESSION sql_mode = {quoted_text(str(source.get('sql_mode', '')))};"
        yield f"USE {quoted_name(name[0])};"
        yield f"DELIMITER {_DELIMITER}\n{text}\n{_DELIMITER}\nDELIMITER ;"
        yield "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO';"

    def _table(self, name: TableName, quoted: str, source: Facts | None, target: Facts | None) -> Iterator[str]:
        if source is None:
            yield f"DROP TABLE {quoted};"
        elif target is None:
            yield f"CREATE DATABASE IF NOT EXISTS {quoted_name(name[0])};"
            yield f"USE {quoted_name(name[0])};"
            yield "\n".join(self._lines(name)) + ";"
            yield f"-- Its rows: run 'binlog-relay compare' again after this script, for --table {'.'.join(name)}."
        else:
            if source["collation"] != target["collation"]:
                yield f"ALTER TABLE {quoted} DEFAULT COLLATE {source['collation']};"
            if source["comment"] != target["comment"]:
                yield f"ALTER TABLE {quoted} COMMENT {quoted_text(source['comment'])};"
            if source["engine"] != target["engine"]:
                yield f"ALTER TABLE {quoted} ENGINE = {source['engine']};"

    def _part(self, kind: str, table: TableName, own: str, source: Facts | None, target: Facts | None) -> Iterator[str]:
        quoted = ".".join(map(quoted_name, table))
        line = self._line(kind, table, own)
        drop = {"column": "DROP COLUMN", "key": "DROP INDEX", "foreign key": "DROP FOREIGN KEY"}[kind]
        dropped = f"ALTER TABLE {quoted} {drop} {quoted_name(own)}"
        if source is None:
            yield f"{dropped};"
        elif line is None:
            yield f"-- {kind} {quoted_name(own)} of {quoted}: SHOW CREATE TABLE of the source has it in another form."
        elif kind == "column":
            yield f"ALTER TABLE {quoted} {'ADD' if target is None else 'MODIFY'} COLUMN {line};"
        elif own == "PRIMARY":
            yield f"ALTER TABLE {quoted} {'' if target is None else 'DROP PRIMARY KEY, '}ADD {line};"
        else:
            if target is not None:
                yield f"{dropped};"
            yield f"ALTER TABLE {quoted} ADD {line};"

    def _line(self, kind: str, table: TableName, own: str) -> str | None:
        """Return the line of SHOW CREATE TABLE that defines a part."""
        heads = ["PRIMARY KEY"] if own == "PRIMARY" else [f"{head} {quoted_name(own)}".strip() for head in _HEADS[kind]]
        for line in self._lines(table):
            text = line.strip().removesuffix(",")
            if any(text.startswith(f"{head} ") for head in heads):
                return text
        return None

    def _lines(self, table: TableName) -> list[str]:
        if table not in self._created:
            row = self._source.named_row(f"SHOW CREATE TABLE {'.'.join(map(quoted_name, table))}") or {}
            self._created[table] = answer_text(row.get("Create Table")).split("\n")
        return self._created[table]
