"""Reads a statement that changes rows: what it is made of, and what it stores in which columns."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

from protocol.sql.expressions.constructs import (
    ANYTHING,
    LIMIT,
    NULL_IGNORED,
    NULL_STORED,
    SET_BEFORE_READ,
    FiredChange,
    Operand,
    StatementConstructs,
    UsedConstruct,
    joined,
)
from protocol.sql.expressions.hex_literals import HexText, is_text_in, widest_of
from protocol.sql.expressions.readers.column_scope import ColumnScope, KnownColumn, ScopeTable, operands_of
from protocol.sql.expressions.readers.defined_columns import defined_columns
from protocol.sql.expressions.readers.literal_rows import classes_of_rows
from protocol.sql.expressions.readers.query_reader import QueryReader
from protocol.sql.lexer import TokenKind, UnsupportedSyntax, is_name
from protocol.sql.survey.value_class import TEXTS, ValueClass
from protocol.sql.tables.source_table import TableName

_MODIFIERS: Final = ("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "QUICK", "CONCURRENT", "LOCAL")
_ROWS: Final = ("VALUES", "VALUE")
_SELECTS: Final = ("SELECT", "WITH", "(", "TABLE")
_TEXT_COLUMNS: Final = frozenset(("CHAR", "VARCHAR", "TEXT"))
STORED: Final = ("INT", "DECIMAL", "DOUBLE", "VARCHAR", "DATE", "DATETIME", "TIMESTAMP", "TIME", "YEAR")
"""The types into which a literal may be stored where the column's is not known."""


class StatementReader(QueryReader):
    """Reads one statement. `makes_numbers`: it assigns AUTO_INCREMENT values. `sorts_groups`: its server sorts by GROUP BY."""

    _ignores = False
    """True for what an INSERT IGNORE stores."""
    columns_are_named = True
    """False where a name may be that of a variable."""

    def read(self, *, makes_numbers: bool, sorts_groups: bool) -> StatementConstructs:
        """Return its constructs; none for a definition without a query. Raises: UnsupportedSyntax."""
        counts = makes_numbers
        if self.word() == "WITH":
            self.accept("WITH")
            self._common_tables()
        if self.word() == "SET" and self.word(1) == "STATEMENT" and self.word(2) not in ("=", ":"):
            self._settings_for_one()
        word = self.word()
        if word in ("INSERT", "REPLACE"):
            counts = self._insert() or makes_numbers
        elif word == "UPDATE":
            self._update()
        elif word == "DELETE":
            self._delete()
        elif word == "LOAD":
            self._load()
        elif word == "CREATE":
            counts = self._create()
        elif word in ("SELECT", "(", "TABLE", "VALUES"):
            self.read_query()
        elif word == "CALL":
            self._call()
        elif word == "DO":
            self.take()
            self._list()
        elif word == "SET":
            self._set()
        else:
            return self.finish()
        self.accept(";")
        if self.kind is not TokenKind.END:
            raise UnsupportedSyntax(f"{self.peek().text} where it should end")
        self.note_order(counts=counts, sorts_groups=sorts_groups)
        return self.finish()

    def _list(self) -> list[Operand]:
        given = [self.expression()]
        while self.accept(","):
            given.append(self.expression())
        return given

    # ---- INSERT, REPLACE ----

    def _insert(self) -> bool:
        """Read INSERT or REPLACE; return whether the order of its rows counts."""
        at = self.at
        verb = self.take().upper
        ignores = self._modifiers()
        self.accept("INTO")
        table = self.table_name()
        columns = self.columns.columns_of(table)
        if self.accept("PARTITION"):
            self.skip_brackets()
        if ignores:
            self.is_strict = False
            self._ignores = True
        two = ignores or verb == "REPLACE"
        names: list[str] | None = None
        if self.word() == "(" and not self.begins_query(1) and self.word(1) != "(":
            names = self._names()
        if verb == "REPLACE":
            self.use("REPLACE", (), at)
        rows: list[tuple[str, Operand]] | None = None
        self.scope.tables.append(_target(table, columns))
        nulls: set[str] = set()
        if self.word() in _ROWS:
            self.take()
            self._rows_of_values(columns, names, nulls)
        elif self.accept("SET"):
            names = list(self._assignments(columns, nulls))
        elif self.word() in _SELECTS:
            rows = self._feeding_query(columns, names, nulls)
        absent = _without_value(columns, names)
        if self.accept("AS"):
            alias = self.name().lower()
            self.scope.tables.append(ScopeTable(alias, operands_of(columns) if columns is not None else None))
            if self.word() == "(":
                self.skip_brackets()
        self.made.fired.append(FiredChange(verb, table, frozenset(nulls), absent))
        if self.accept("ON", "DUPLICATE", "KEY", "UPDATE"):
            two = True
            self.use("ON DUPLICATE KEY UPDATE", (), at)
            changed: set[str] = set()
            assigned = frozenset(
                name for name, changes in self._assignments(columns, changed, table[1].lower()).items() if changes
            )
            self.made.fired.append(
                FiredChange("UPDATE", table, frozenset(changed), assigned=assigned, ignores=ignores, upserts=True)
            )
        if self.accept("RETURNING"):
            self._items()
        return two and rows is not None

    def _feeding_query(
        self, columns: Mapping[str, KnownColumn] | None, names: list[str] | None, nulls: set[str]
    ) -> list[tuple[str, Operand]]:
        bracketed = self.word() == "(" and not self.begins_query(1)
        target = self.scope
        self.scope = ColumnScope()
        rows = self.feed()
        self.scope = target
        # Columns of the query may be named after ON DUPLICATE KEY UPDATE.
        self.scope.tables.append(ScopeTable("", {name: one for name, one in rows if name}))
        if not bracketed:
            given = [one for _name, one in rows]
            if not any(one.unit == "*" for one in given):
                self._stored(columns, names, given, nulls)
            else:
                nulls.update(columns or ())
        return rows

    def _modifiers(self) -> bool:
        ignores = False
        while self.word() in _MODIFIERS:
            ignores = self.take().upper == "IGNORE" or ignores
        return ignores

    def _names(self) -> list[str]:
        self.expect("(")
        names: list[str] = []
        while not self.accept(")"):
            name = self.name()
            while self.accept("."):
                name = self.name()
            names.append(name.lower())
            self.accept(",")
        return names

    def _rows_of_values(
        self, columns: Mapping[str, KnownColumn] | None, names: list[str] | None, nulls: set[str]
    ) -> None:
        literals: dict[int, Operand] = {}
        while self.word() == "(" or self.word() == "ROW":
            self.accept("ROW")
            folded = self._folded()
            for at, one in enumerate(self._value_list() if folded is None else folded):
                if _is_default(one):
                    continue  # it may stand among literals of any class
                if not one.is_literal:
                    self._store(columns, _name_at(columns, names, at), one, nulls)
                elif at not in literals or not one.classes <= literals[at].classes:
                    literals[at] = joined((literals[at], one)) if at in literals else one
            if not self.accept(","):
                break
        for at, one in literals.items():
            self._store(columns, _name_at(columns, names, at), one, nulls)

    def _folded(self) -> list[Operand] | None:
        """Return the values of a run of rows that the lexer has folded; None: here is none."""
        stop = self.folded.get(self.peek().start)
        if stop is None:
            return None
        text = self.query.text[self.peek().start : stop]
        self.expect("(")
        self.expect(")")
        made = classes_of_rows(text, self.query.sql_mode)
        return [Operand(one or ANYTHING.classes, is_literal=True) for one in made]

    def _stored(
        self,
        columns: Mapping[str, KnownColumn] | None,
        names: list[str] | None,
        given: Sequence[Operand],
        nulls: set[str],
    ) -> None:
        """Note that values are stored in these columns, or in all of them in their order."""
        for at, one in enumerate(given):
            self._store(columns, _name_at(columns, names, at), one, nulls)

    def _store(self, columns: Mapping[str, KnownColumn] | None, name: str, given: Operand, nulls: set[str]) -> None:
        column = columns.get(name) if columns is not None else None
        if _is_default(given):
            return
        if ValueClass.NULL in given.classes and (column is None or not column.nullable):
            nulls.add(name)
            if column is not None and column.kind == "ENUM":
                # Its implicit default is not the same on all servers.
                self.use(NULL_IGNORED if self._ignores else NULL_STORED, ())
        if column is not None:
            self.use(f"store {column.kind}", (self._as_stored(column, given),))
        elif given.is_literal:
            unknown = frozenset(one.name for one in self.scope.tables[:1] if one.name is not None)
            for kind in STORED if given.classes & TEXTS else ():
                self.made.used.append(
                    UsedConstruct(f"store {kind}", (given.classes,), self.peek().start, unknown, self.is_strict)
                )

    @cached_property
    def _widest_hex(self) -> HexText:
        return widest_of(self.query.text)

    def _as_stored(self, column: KnownColumn, given: Operand) -> Operand:
        """Return what a value is for its column.

        In a column of texts a literal such as 0x41 is text where its character set has the letters. A whole number over 2^63 - 1 is
        like any other in a BIGINT UNSIGNED: it is in the range, while in a BIGINT servers make other numbers of it.
        """
        if (
            column.kind == "BIGINT"
            and ValueClass.UNSIGNED in column.classes & given.classes
            and ANYTHING.classes not in (column.classes, given.classes)
        ):
            return given._replace(classes=given.classes - {ValueClass.UNSIGNED} | {ValueClass.INTEGER})
        if ValueClass.HEX not in given.classes or column.kind not in _TEXT_COLUMNS or given.classes == ANYTHING.classes:
            return given
        is_text = is_text_in(self._widest_hex, column.charset)
        stored = ValueClass.TEXT_OTHER if is_text else ValueClass.BYTES
        return given._replace(classes=given.classes - {ValueClass.HEX} | {stored})

    def _keeps(self, name: str, begin: int, table: str = "") -> bool:
        """Return whether the expression from `begin` on is that column of the table that changes, or LAST_INSERT_ID of it."""
        words = [self.text_of(one).lower() if is_name(one) else one.upper for one in self.tokens[begin : self.at]]
        if words[:2] == ["last_insert_id", "("] and words[-1:] == [")"]:
            words = words[2:-1]
        return words in ([name], [table, ".", name]) and self.columns_are_named

    def _assignments(
        self, columns: Mapping[str, KnownColumn] | None, nulls: set[str], table: str = ""
    ) -> dict[str, bool]:
        """Read a list of assignments; return whether each column may get another value."""
        names: dict[str, bool] = {}
        while True:
            name = self.name()
            while self.accept("."):
                name = self.name()
            if not self.accept("="):
                self.expect(":", "=")
            begin = self.at
            given = self.expression()
            self._store(columns, name.lower(), given, nulls)
            names[name.lower()] = not self._keeps(name.lower(), begin, table)
            if not self.accept(","):
                return names

    # ---- UPDATE, DELETE ----

    def _update(self) -> None:
        at = self.at
        self.take()
        ignores = self._modifiers()
        if ignores:
            self.is_strict = False
        self.table_list()
        self.expect("SET")
        several = len(self.scope.tables) > 1
        if several:
            self.use("multi-table UPDATE", (), at)
        nulls: dict[TableName, set[str]] = {}
        assigned: dict[TableName, set[str]] = {}
        done: set[str] = set()
        while True:
            names = [self.name().lower()]
            while self.accept("."):
                names.append(self.name().lower())
            self.expect("=")
            begin = self.at
            given = self.expression()
            if several and any(
                self.text_of(one).lower() in done for one in self.tokens[begin : self.at] if is_name(one)
            ):
                self.use(SET_BEFORE_READ, (), begin)
            done.add(names[-1])
            for table in self._set_tables(names):
                columns = self.columns.columns_of(table)
                self._store(columns, names[-1], given, nulls.setdefault(table, set()))
                assigned.setdefault(table, set()).update(() if self._keeps(names[-1], begin) else (names[-1],))
            if not self.accept(","):
                break
        if self.accept("WHERE"):
            self.condition()
        self._ordered(at)
        self.made.fired += [
            FiredChange("UPDATE", table, frozenset(found), assigned=frozenset(assigned[table]), ignores=ignores)
            for table, found in nulls.items()
        ]

    def _set_tables(self, names: list[str]) -> list[TableName]:
        """Return the tables that may have the column that is assigned."""
        found = [
            one for one in self.scope.tables if one.name is not None and (len(names) == 1 or one.alias == names[-2])
        ]
        having = [one for one in found if one.columns is None or names[-1] in one.columns]
        return [one.name for one in having or found if one.name is not None]

    def _ordered(self, at: int) -> None:
        """Read ORDER BY and LIMIT of an UPDATE or a DELETE."""
        is_ordered = self.accept("ORDER", "BY")
        if is_ordered:
            self.order_list()
        if self.accept("LIMIT"):
            self._limit()
            if not is_ordered:
                self.use(LIMIT, (), at)

    def _delete(self) -> None:
        at = self.at
        self.take()
        if self._modifiers():
            self.is_strict = False
        targets: list[str] = []
        if not self.accept("FROM"):
            targets = self._targets()
            self.expect("FROM")
            self.table_list()
        else:
            begin = self.at
            self._table(self.scope)
            if self.word() in ("USING", ".", ","):
                self.at = begin
                self.scope.tables.clear()
                targets = self._targets()
                self.expect("USING")
                self.table_list()
        if self.accept("WHERE"):
            self.condition()
        self._ordered(at)
        if self.accept("RETURNING"):
            self._items()
        for one in self.scope.tables:
            if one.name is not None and (not targets or one.alias in targets or one.name[1].lower() in targets):
                self.made.fired.append(FiredChange("DELETE", one.name, frozenset()))

    def _targets(self) -> list[str]:
        found: list[str] = []
        while True:
            name = self.name()
            while self.accept("."):
                if not self.accept("*"):
                    name = self.name()
            found.append(name.lower())
            if not self.accept(","):
                return found

    # ---- other statements ----

    def _load(self) -> None:
        """Read LOAD DATA: texts of the file are stored, or computed with."""
        ignores = False
        while self.word() != "TABLE":
            ignores = self.take().upper in ("IGNORE", "LOCAL") or ignores
        self.expect("TABLE")
        self.is_strict = self.is_strict and not ignores
        table = self.table_name()
        columns = self.columns.columns_of(table)
        self.scope.tables.append(_target(table, columns))
        names: list[str] | None = None
        nulls: set[str] = set()
        while self.kind is not TokenKind.END and self.word() != "SET":
            if self.word() == "(":
                names = self._load_names()
            elif self.take().upper == "CHARACTER":
                self.expect("SET")
        text = Operand(TEXTS | {ValueClass.NULL}, frozenset((table,)) if columns is None else frozenset())
        for name in names if names is not None else list(columns or ()):
            if name.startswith("@"):
                self.assigned[name[1:]] = text
            else:
                self._store(columns, name, text, nulls)
        if self.accept("SET"):
            self._assignments(columns, nulls)
        self.made.fired.append(FiredChange("INSERT", table, frozenset(nulls)))

    def _load_names(self) -> list[str]:
        self.expect("(")
        names: list[str] = []
        while not self.accept(")"):
            token = self.take()
            if token.kind is TokenKind.VARIABLE:
                names.append(token.text.lower())
            elif token.upper != ",":
                names.append(self.text_of(token).lower())
        return names

    def _create(self) -> bool:
        """Read the query of CREATE TABLE … SELECT; return whether the order of its rows counts."""
        self.accept_any("CREATE", "OR", "REPLACE", "TEMPORARY")
        if not self.accept("TABLE"):
            self._skip_rest()
        defined: dict[str, KnownColumn] = {}
        while self.kind is not TokenKind.END:
            if self._begins_rows():
                before = self.tokens[self.at - 1 - (self.tokens[self.at - 1].upper == "AS")].upper
                replaces = before in ("IGNORE", "REPLACE")
                self.is_strict = self.is_strict and not replaces
                for name, one in self.feed():
                    if name in defined:
                        self._store(defined, name, one, set())
                return replaces
            if self.word() == "(" and not defined:
                begin = self.at
                self.skip_brackets()
                defined = defined_columns([one.text for one in self.tokens[begin + 1 : self.at - 1]])
            elif self.word() == "(":
                self.skip_brackets()
            else:
                self.take()
        return False

    def _begins_rows(self) -> bool:
        """Return whether the query of a CREATE TABLE begins here, perhaps in brackets."""
        ahead = 0
        while self.word(ahead) == "(":
            ahead += 1
        is_option = self.word(ahead) == "WITH" and self.word(ahead + 1) == "SYSTEM"
        return self.begins_query(ahead) and not is_option

    def _call(self) -> None:
        self.take()
        name = self.table_name()
        self.made.calls.append(name)
        if self.accept("("):
            while not self.accept(")"):
                self.expression()
                self.accept(",")

    def _settings_for_one(self) -> None:
        """Read MariaDB's SET STATEMENT … FOR before the statement that it is for."""
        while self.kind is not TokenKind.END and self.word() != "FOR":
            self.take()
        self.expect("FOR")

    def _set(self) -> None:
        self.take()
        while True:
            if self.kind is TokenKind.VARIABLE:
                token = self.take()
                if not self.accept("="):
                    self.expect(":", "=")
                self.assigned[token.text[1:].lower()] = self.expression()
            else:
                return self._skip_rest()
            if not self.accept(","):
                return None

    def _skip_rest(self) -> None:
        while self.kind is not TokenKind.END:
            self.take()


def _is_default(given: Operand) -> bool:
    """Return whether the value is DEFAULT: a literal of which nothing is known."""
    return given.is_literal and given.classes == ANYTHING.classes


def _target(name: TableName, columns: Mapping[str, KnownColumn] | None) -> ScopeTable:
    made = operands_of(columns) if columns is not None else None
    return ScopeTable(name[1].lower(), made, frozenset((name,)), name)


def _without_value(columns: Mapping[str, KnownColumn] | None, names: list[str] | None) -> frozenset[str]:
    """Return the columns that get no value of the statement, and have no default."""
    if columns is None or names is None:
        return frozenset()
    return frozenset(name for name, one in columns.items() if not one.has_default and name not in names)


def _name_at(columns: Mapping[str, KnownColumn] | None, names: list[str] | None, at: int) -> str:
    """Return the column that the value at a place of a row is for; "": not known."""
    into = names if names is not None else list(columns or ())
    return into[at] if at < len(into) else ""
