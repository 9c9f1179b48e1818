"""CREATE TABLE is rewritten for MySQL."""

from typing import Final

from protocol.errors import ErrorCode
from protocol.sql.engines import becomes_innodb
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.tables.source_table import TableName
from protocol.sql.tables.table_options import QUERIES
from relay.view.rules.mariadb.statement.defined_elements import TableElements, is_engine, leave_out
from relay.view.rules.mariadb.statement.editable_statement import EditableStatement
from relay.view.rules.mariadb.statement.expression_words import read_expressions
from relay.view.rules.mariadb.statement.known_tables import TablesAtSource
from relay.view.rules.mariadb.statement.option_rewriting import OptionRewriting
from relay.view.stops import definition_stops

ROW_START: Final = "row_start"
ROW_END: Final = "row_end"


class CreateTableRewriting:
    """CREATE TABLE from after its name on. `versioned` and `sequence` are known after `read`."""

    def __init__(self, words: EditableStatement, name: TableName, known: TablesAtSource, *, temporary: bool) -> None:
        self._words = words
        self._name = name
        self._known = known
        self._temporary = temporary
        self.versioned = False
        self.sequence = False

    def read(self) -> None:
        """Rewrite all of it. Raises: UnsupportedSyntax, Untranslatable."""
        words = self._words
        if words.accept("LIKE") or (words.word() == "(" and words.word(1) == "LIKE"):
            bracket = words.accept("(", "LIKE")
            parent = words.table_name()
            if bracket:
                words.expect(")")
            self.versioned = self._known.is_versioned(parent)
            self.sequence = self._known.is_sequence(parent)
            words.expect_end()
            return
        elements = TableElements(words, self._name, self._known)
        ranges: list[tuple[int, int]] = []
        closed = words.at - 1
        if words.word() == "(" and words.word(1) not in QUERIES and words.word(1) != "(":
            words.take()
            while True:
                first = words.at
                elements.read()
                ranges.append((first, words.at))
                if words.accept(")"):
                    break
                words.expect(",")
            closed = words.at - 1
        rewriting = OptionRewriting(words)
        rewriting.options.last = closed
        while rewriting.accept():
            words.accept(",")
        if words.word() == "PARTITION" and words.word(1) == "BY":
            rewriting.partitions(before_query=True)
        options = rewriting.options
        words.expect_known()
        if options.sequence:
            self.sequence = True
            return
        selects = self._query()
        words.expect_end()
        rewriting.finish()
        elements.finish(options.charset, None, engine=options.engine)
        self.versioned = options.versioned
        if any(column.row for column in elements.columns.values()) != any(
            key.kind == "PERIOD" for key, _, _ in elements.keys
        ):
            raise UnsupportedSyntax("a period for the system time without its columns")
        if self.versioned:
            if selects or not ranges:
                raise UnsupportedSyntax("a table with system versioning from a query")
            self._versioning(elements, closed)
        elif any(column.row for column in elements.columns.values()):
            raise UnsupportedSyntax("columns of system versioning without it")
        leave_out(words, ranges, elements.left_out)
        if words.context.rows_follow and not selects and not options.starts_transaction and not self._temporary:
            if options.engine and not becomes_innodb(options.engine) and not is_engine(options.engine, "innodb"):
                raise definition_stops.clause_unknown(
                    words.context.target_title,
                    words.query,
                    f"CREATE … SELECT of the engine {options.engine} in one transaction",
                    ErrorCode.ER_NOT_ALLOWED_WITH_START_TRANSACTION,
                )
            words.after(options.last, " START TRANSACTION")

    def _query(self) -> bool:
        """Rewrite AS SELECT and what follows."""
        words, first = self._words, self._words.at
        words.accept("IGNORE") or words.accept("REPLACE")
        words.accept("AS")
        if words.word() not in QUERIES and words.word() != "(":
            words.at = first
            return False
        read_expressions(words, words.at, words.end)
        words.at = words.end
        return True

    def _versioning(self, elements: TableElements, closed: int) -> None:
        """Add two columns, and the end of a row's life to each key that is unique: history rows share all other values."""
        words = self._words
        start = next((column for column in elements.columns.values() if column.row == "START"), None)
        end = next((column for column in elements.columns.values() if column.row == "END"), None)
        for column in (start, end):
            if column is not None and not column.type.startswith("TIMESTAMP"):
                raise definition_stops.clause_unknown(
                    words.context.target_title, words.query, "system versioning by transactions"
                )
            if column is not None and "NOT NULL" not in column.attributes:
                words.replace(column.type_stop, column.type_stop, " NOT NULL")
        ending = end.name if end is not None else ROW_END
        made = ""
        if start is None and end is None:
            made = "".join(f", `{name}` timestamp(6) NOT NULL INVISIBLE" for name in (ROW_START, ROW_END))
        for column in elements.columns.values():
            if column.type == "SERIAL":
                raise UnsupportedSyntax("a SERIAL column of a table with system versioning")
            for kind in ("PRIMARY KEY", "UNIQUE"):
                place = column.attributes.get(kind)
                if place is None or column.is_blob:
                    continue
                if kind == "PRIMARY KEY" and "NOT NULL" not in column.attributes:
                    words.replace(place.start, place.stop, "NOT NULL")
                else:
                    words.cut_part(place)
                name = column.name.replace("`", "``")
                own = f" `{name}`" if kind == "UNIQUE" else ""
                made += f", {kind.removesuffix(' KEY')} KEY{own} (`{name}`, `{ending}`)"
        for key, _first, _stop in elements.keys:
            if key.kind in ("PRIMARY", "UNIQUE") and ending.lower() not in [part.name.lower() for part in key.parts]:
                words.replace(key.closed, key.closed, f", `{ending}`")
        if made:
            words.before(closed, made)
