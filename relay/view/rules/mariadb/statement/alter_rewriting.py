"""ALTER TABLE is rewritten for MySQL."""

from typing import Final

from protocol.sql.lexer import TokenKind, UnsupportedSyntax
from protocol.sql.tables.altered_parts import AlteredPart, read_altered_key, read_dropped, read_renamed
from protocol.sql.tables.ddl_statement import WrittenKey
from protocol.sql.tables.source_table import Table, TableName
from protocol.sql.tables.table_actions import PARTITION_VERBS
from protocol.sql.tables.table_elements import if_exists, if_not_exists
from relay.view.rules.mariadb.differences.stored_order import partitions_differ
from relay.view.rules.mariadb.statement.altered_table import BYTES_BECOME, AlteredTable
from relay.view.rules.mariadb.statement.collate_clauses import CharsetClauses
from relay.view.rules.mariadb.statement.column_rewriting import DefinedColumn
from relay.view.rules.mariadb.statement.defined_elements import TableElements, leave_out
from relay.view.rules.mariadb.statement.editable_statement import EditableStatement
from relay.view.rules.mariadb.statement.expression_words import read_expressions
from relay.view.rules.mariadb.statement.key_rewriting import name_in_schema
from relay.view.rules.mariadb.statement.known_tables import TablesAtSource
from relay.view.rules.mariadb.statement.option_rewriting import OptionRewriting
from relay.view.stops import definition_stops

_ROWS_OF_PARTITIONS: Final = frozenset(("DROP", "TRUNCATE", "EXCHANGE"))
"""The operations on all rows of a partition."""


class AlterTableRewriting:
    """ALTER TABLE from after its name on."""

    def __init__(self, words: EditableStatement, name: TableName, known: TablesAtSource) -> None:
        self._words = words
        self._name = name
        self._known = known
        self._before = AlteredTable(words, name, known)
        self._table = self._before.table
        self._elements = TableElements(words, name, known)
        self._added: set[str] = set()
        words.alters = True

    def read(self) -> bool:
        """Rewrite all of it; return False if it did nothing, so that nothing is left. Raises: UnsupportedSyntax, Untranslatable."""
        words = self._words
        if self._known.is_versioned(self._name):
            raise definition_stops.definition_differs(
                words.context.target_title, words.query, "changes of a table with system versioning"
            )
        rewriting = OptionRewriting(words)
        ranges: list[tuple[int, int]] = []
        gone: set[int] = set()
        words.cut_waits()
        while not words.ended:
            first = words.at
            if words.word() == "PARTITION" and words.word(1) == "BY":
                rewriting.partitions(before_query=False)
                break
            kept = self._action(rewriting)
            while not words.ended and words.word() != "," and rewriting.accept():
                pass
            ranges.append((first, words.at))
            if not kept:
                gone.add(first)
            if (
                words.accept(",")
                or words.ended
                or words.word() == "PARTITION"
                or words.accept("REMOVE", "PARTITIONING")
            ):
                continue
            raise UnsupportedSyntax(f"{words.peek().text} in ALTER TABLE")
        table = self._table
        rewriting.finish(table.engine if table else "", _charset(table))
        engine = rewriting.options.engine or (table.engine.upper() if table else "")
        self._elements.finish(rewriting.options.charset or _charset(table), table, engine=engine)
        for first, stop in ranges:
            if any(first <= at < stop for at in self._elements.left_out):
                gone.add(first)
        if not ranges or rewriting.options.partitioned:
            leave_out(words, ranges, gone)
            return True
        return leave_out(words, ranges, gone)

    def _action(self, rewriting: OptionRewriting) -> bool:
        """Rewrite one action between commas; return False if it is removed."""
        words, word, following = self._words, self._words.word(), self._words.word(1)
        if word == "ADD":
            return self._add()
        if word in ("CHANGE", "MODIFY"):
            return self._change(word)
        if word == "DROP":
            return self._drop()
        if word == "RENAME":
            return self._rename()
        if word == "ALTER":
            return self._alter()
        if word == "CONVERT":
            words.take()
            if not words.accept("TO"):
                raise definition_stops.clause_unknown(words.context.target_title, words.query, "CONVERT of partitions")
            clauses = CharsetClauses(words)
            while clauses.accept():
                pass
            clauses.done()
        elif word in ("ALGORITHM", "LOCK"):
            words.take()
            words.accept("=")
            return words.take().upper in ("COPY", "DEFAULT", "EXCLUSIVE")
        elif word == "ORDER" and following == "BY":
            words.at += 2
            while True:
                words.name()
                words.accept("ASC") or words.accept("DESC")
                if words.word() != ",":
                    break
                words.take()
        elif word in ("ENABLE", "DISABLE") and following == "KEYS":
            words.at += 2
        elif word == "FORCE":
            words.take()
        elif word == "REMOVE" and following == "PARTITIONING":
            words.at += 2
        elif word in PARTITION_VERBS and following == "PARTITION":
            self._partition_action(rewriting)
        elif not rewriting.accept():
            raise UnsupportedSyntax(f"{words.peek().text} in ALTER TABLE")
        return True

    def _partition_action(self, rewriting: OptionRewriting) -> None:
        words = self._words
        verb = words.word() if words.word() != "PARTITION" else "DROP"
        if verb in _ROWS_OF_PARTITIONS:
            self._before.check_place(f"{verb} PARTITION", partitions_differ)
        for index in range(words.at, words.end):
            if words.at_word(index) == "IF" and words.at_word(index + 1) in ("EXISTS", "NOT"):
                raise definition_stops.condition_unknown(words.query, self._name, "IF [NOT] EXISTS of a partition")
        partitioned = rewriting.options.partitioned
        rewriting.partitions(before_query=False)
        rewriting.options.partitioned = partitioned

    def _add(self) -> bool:
        words = self._words
        words.take()
        if words.word() == "PARTITION":
            self._partition_action(OptionRewriting(words))
            return True
        if words.word() == "SYSTEM" and words.word(1) == "VERSIONING":
            raise definition_stops.definition_differs(words.context.target_title, words.query, "ADD SYSTEM VERSIONING")
        if words.word() == "PERIOD" and words.word(1) == "FOR":
            raise definition_stops.clause_unknown(words.context.target_title, words.query, "PERIOD FOR")
        is_column = words.accept("COLUMN")
        exists = if_not_exists(words)
        if words.word() == "(":
            if exists is not None:
                raise UnsupportedSyntax("IF NOT EXISTS of several columns in brackets")
            words.take()
            ranges = []
            while True:
                first = words.at
                added = self._elements.read()
                if isinstance(added, DefinedColumn):
                    self._before.check_added(added)
                ranges.append((first, words.at))
                if words.accept(")"):
                    return True
                words.expect(",")
        if is_column or exists is not None:
            made: WrittenKey | DefinedColumn = self._elements.read_column(words.name())
        else:
            made = self._elements.read()
        if isinstance(made, WrittenKey):
            return self._added_key(made)
        if exists is None:
            self._before.check_added(made)
            return True
        words.cut_part(exists)
        there = self._before.has_column(made.name, "ADD COLUMN IF NOT EXISTS") or made.name.lower() in self._added
        self._added.add(made.name.lower())
        if not there:
            self._before.check_added(made)
        return not there

    def _added_key(self, key: WrittenKey) -> bool:
        if key.exists is None:
            return True
        needed = "IF NOT EXISTS of a key"
        if not key.name or key.kind == "CHECK":
            raise definition_stops.condition_unknown(self._words.query, self._name, needed)
        self._words.cut_part(key.exists)
        return not self._before.has_key(key.name, needed, foreign=key.kind == "FOREIGN")

    def _change(self, verb: str) -> bool:
        words = self._words
        words.take()
        words.accept("COLUMN")
        exists = if_exists(words)
        old = words.name()
        column = self._elements.read_column(words.name() if verb == "CHANGE" else old)
        self._before.check_conversion(old, column)
        if exists is None:
            return True
        words.cut_part(exists)
        return self._before.has_column(old, f"{verb} COLUMN IF EXISTS")

    def _drop(self) -> bool:
        words = self._words
        words.take()
        word = words.word()
        if word == "PARTITION":
            self._partition_action(OptionRewriting(words))
            return True
        if word in ("SYSTEM", "PERIOD") and words.word(1) in ("VERSIONING", "FOR"):
            raise definition_stops.definition_differs(
                words.context.target_title, words.query, "DROP of system versioning"
            )
        part = read_dropped(words)
        if part.kind in ("CONSTRAINT", "CHECK"):
            name_in_schema(words, words.index_at(part.named), self._name[1])
        if part.exists is not None:
            words.cut_part(part.exists)
            if not self._is_there(part, "DROP"):
                return False
        return part.kind in ("COLUMN", "FOREIGN", "PRIMARY") or not self._before.is_left_out(part.name)

    def _is_there(self, part: AlteredPart, verb: str) -> bool:
        """Return whether the table has a part that an action names with IF EXISTS. Raises: Untranslatable."""
        needed = f"{verb} {'FOREIGN KEY' if part.kind == 'FOREIGN' else part.kind} IF EXISTS"
        if part.kind == "COLUMN":
            return self._before.has_column(part.name, needed)
        if self._before.has_key(part.name, needed, foreign=part.kind == "FOREIGN"):
            return True
        if part.kind not in ("CONSTRAINT", "CHECK"):
            return False
        if not self._before.has_key(part.name, needed, foreign=True):  # it may be a CHECK, of which nothing is known
            raise definition_stops.condition_unknown(self._words.query, self._name, needed)
        return True

    def _rename(self) -> bool:
        words = self._words
        words.take()
        if words.word() not in ("COLUMN", "INDEX", "KEY"):
            words.accept("TO") or words.accept("AS") or words.accept("=")
            words.table_name()
            return True
        part = read_renamed(words)
        if part.exists is not None:
            words.cut_part(part.exists)
            if not self._is_there(part, "RENAME"):
                return False
        return part.kind == "COLUMN" or not self._before.is_left_out(part.name)

    def _alter(self) -> bool:
        words = self._words
        words.take()
        if words.word() in ("INDEX", "KEY"):
            part = read_altered_key(words)
            if part.kind == "KEY":
                words.put(words.index_at(part.said), "INDEX")
            if part.state is not None and part.state.name.endswith("IGNORED"):
                words.replace(
                    part.state.start, part.state.stop, "VISIBLE" if part.state.name == "NOT IGNORED" else "INVISIBLE"
                )
            if part.exists is not None:
                words.cut_part(part.exists)
                if not self._before.has_key(part.name, "ALTER INDEX IF EXISTS"):
                    return False
            return not self._before.is_left_out(part.name)
        words.accept("COLUMN")
        exists = if_exists(words)
        name = words.name()
        if words.accept("DROP"):
            words.expect("DEFAULT")
        else:
            words.expect("SET", "DEFAULT")
            start = words.at
            if words.word() == "(":
                words.skip_brackets()
                read_expressions(words, start, words.at)
            else:
                self._set_default(name, start)
        if exists is None:
            return True
        words.cut_part(exists)
        return self._before.has_column(name, "ALTER COLUMN IF EXISTS")

    def _set_default(self, name: str, start: int) -> None:
        words = self._words
        if words.word() in ("+", "-"):
            words.take()
        token = words.take()
        literal = token.kind in (TokenKind.STRING, TokenKind.NUMBER) or token.upper in ("NULL", "TRUE", "FALSE")
        if literal and token.upper != "NULL":
            column = (
                None
                if self._table is None
                else next((one for one in self._table.columns if one.name.lower() == name.lower()), None)
            )
            if column is None:
                return  # a replica refuses a literal of a BLOB (1101), and accepts any other
            if column.type.upper() in BYTES_BECOME:
                raise UnsupportedSyntax(f"the default of the column {name} of type {column.type}")
            literal = not column.type.partition("(")[0].endswith(("text", "blob"))
        if not literal:
            if words.word() == "(":
                words.skip_brackets()
            read_expressions(words, start, words.at)
            # a literal in brackets is one all the same here (1101)
            words.before(start, "(" if words.tokens[start].kind is TokenKind.WORD else "(concat(")
            words.after(words.at - 1, ")" if words.tokens[start].kind is TokenKind.WORD else "))")


def _charset(table: Table | None) -> str:
    if table is None or not table.charset:
        return ""
    return "utf8mb3" if table.charset == "utf8" else table.charset
