"""Reads the body of a trigger, a function or a procedure: what its statements are made of."""

from collections.abc import Iterable, Mapping
from typing import Final

from protocol.sql.expressions.constructs import StatementConstructs
from protocol.sql.expressions.readers.column_scope import (
    ColumnScope,
    KnownColumn,
    KnownColumns,
    ScopeTable,
    operands_of,
)
from protocol.sql.expressions.readers.defined_columns import defined_columns
from protocol.sql.expressions.readers.statement_reader import StatementReader
from protocol.sql.lexer import TokenKind, UnsupportedSyntax, is_name
from protocol.sql.statements.statement import SqlStatement
from protocol.sql.tables.source_table import TableName

_CHANGES: Final = ("INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "CALL", "DO", "SELECT", "WITH")
_BLOCKS: Final = ("IF", "CASE", "WHILE", "LOOP", "REPEAT")
_SIMPLE: Final = (
    "LEAVE",
    "ITERATE",
    "OPEN",
    "CLOSE",
    "FETCH",
    "SIGNAL",
    "RESIGNAL",
    "GET",
    "DROP",
    "CREATE",
    "TRUNCATE",
    "COMMIT",
)
_STARTS: Final = frozenset((*_CHANGES, *_BLOCKS, *_SIMPLE, "BEGIN", "SET", "RETURN", "DECLARE"))
_WAYS: Final = ("IN", "OUT", "INOUT")
_RETURNED: Final = "returned"
_ROW_NAMES: Final = ("new", "old")


class ProgramReader(StatementReader):
    """Reads a body. `table` is a trigger's."""

    columns_are_named = False

    def __init__(self, query: SqlStatement, columns: KnownColumns, table: TableName | None) -> None:
        super().__init__(query, query.tokens, {}, columns)
        self._outer = ColumnScope()
        self._row: Mapping[str, KnownColumn] | None = columns.columns_of(table) if table is not None else None
        if table is not None:
            made = operands_of(self._row) if self._row is not None else None
            for name in _ROW_NAMES:
                self._outer.tables.append(ScopeTable(name, made, frozenset((table,))))
        self.sorts_groups = False
        self._returned: Mapping[str, KnownColumn] = {}
        self._locals: dict[str, KnownColumn] = {}
        """The parameters and variables whose types are known."""

    def read_body(self, *, sorts_groups: bool) -> StatementConstructs:
        """Return the constructs of all its statements. Raises: UnsupportedSyntax."""
        self.sorts_groups = sorts_groups
        while self.kind is not TokenKind.END and not self._starts():
            if self.word() == "(" and not self.at:
                self._parameters()
            elif self.accept("RETURNS"):
                self._returns()
            else:
                self.take()
        while self.kind is not TokenKind.END:
            self._statement()
        self.made.orders.clear()  # a body is not rewritten
        return self.finish()

    @property
    def row_columns(self) -> frozenset[str]:
        """The columns of NEW that a trigger reads, in lower case."""
        found = set()
        # The last token is none of the text.
        for at in range(len(self.tokens) - 3):
            before, token, point, name, after = (self.tokens[at + ahead] for ahead in range(-1, 4))
            if token.upper == "NEW" and point.upper == ".":
                is_target = after.upper in ("=", ":") and before.upper in ("SET", ",")
                if not is_target:
                    found.add(self.text_of(name).lower())
        return frozenset(found)

    def _starts(self) -> bool:
        word = self.word()
        if word == "SET" and self.tokens[max(0, self.at - 1)].upper in ("CHARACTER", "CHAR"):
            return False
        return word in _STARTS and self.word(1) not in ("SQL",)

    def _statement(self) -> None:
        self._deeper()
        if is_name(self.peek()) and self.word(1) == ":" and self.word(2) != "=":
            self.at += 2
        word = self.word()
        if word == "BEGIN":
            self._begin()
        elif word in _BLOCKS and not (word in ("REPEAT",) and self.word(1) == "("):
            self._block(word)
        elif word == "DECLARE":
            self._declare()
        elif word == "SET":
            self._fresh()
            self._set_values()
        elif word == "RETURN":
            self.take()
            self._fresh()
            self._store(self._returned, _RETURNED, self.expression(), set())
        elif word in _CHANGES:
            self._change()
        elif word in _SIMPLE:
            self._skip()
        elif word != ";":
            raise UnsupportedSyntax(f"{self.peek().text} in a body")
        if self.kind is not TokenKind.END:
            self.accept(";")
        self._deep -= 1

    def _fresh(self) -> None:
        self.scope = ColumnScope(self._outer)
        self.blocks = []

    def _begin(self) -> None:
        self.take()
        self.accept("NOT", "ATOMIC")
        self._until("END")
        self.expect("END")
        self._label()

    def _label(self) -> None:
        if is_name(self.peek()) and self.word() not in ("UNTIL",):
            self.take()

    def _parameters(self) -> None:
        """Read the parameters of a routine."""
        first, stop = self.at + 1, self.brackets.closing(self.at)
        words = [one.text for one in self.tokens[first:stop]]
        self._know(word for at, word in enumerate(words) if word.upper() not in _WAYS or (at and words[at - 1] != ","))
        self.at = stop

    def _returns(self) -> None:
        """Read the type that a function returns, to which its value is converted as to that of a column."""
        first = self.at
        while self.kind is not TokenKind.END and not self._starts():
            self.take()
        self._returned = defined_columns([_RETURNED, *(one.text for one in self.tokens[first : self.at])])

    def _know(self, words: Iterable[str]) -> None:
        """Note the types of parameters or variables, which are as those of columns."""
        known = defined_columns(list(words))
        self._locals.update(known)
        self._outer.variables.update(operands_of(known))

    def _until(self, *words: str) -> None:
        while self.word() not in words:
            if self.kind is TokenKind.END:
                raise UnsupportedSyntax("a block that does not end")
            self._statement()

    def _condition(self) -> None:
        self._fresh()
        self.expression()

    def _block(self, word: str) -> None:
        self.take()
        if word == "IF":
            self._condition()
            self.expect("THEN")
            self._until("ELSEIF", "ELSE", "END")
            while self.accept("ELSEIF"):
                self._condition()
                self.expect("THEN")
                self._until("ELSEIF", "ELSE", "END")
        elif word == "CASE":
            self._cases()
        elif word == "WHILE":
            self._condition()
            self.expect("DO")
            self._until("END")
        elif word == "LOOP":
            self._until("END")
        else:
            self._until("UNTIL")
            self.expect("UNTIL")
            self._condition()
        if self.accept("ELSE"):
            self._until("END")
        self.expect("END", word)
        self._label()

    def _cases(self) -> None:
        self._fresh()
        subject = self.expression() if self.word() != "WHEN" else None
        while self.accept("WHEN"):
            given = self.expression()
            if subject is not None:
                self.use("=", (subject, given))
            self.expect("THEN")
            self._until("WHEN", "ELSE", "END")

    def _declare(self) -> None:
        self.take()
        words = [self.word(ahead) for ahead in range(2)]
        if "HANDLER" in words:
            while self.word() != "FOR":
                self.take()
            while not self._starts() and self.kind is not TokenKind.END:
                self.take()
            self._statement()
            return
        names = [self.name()]
        while self.accept(","):
            names.append(self.name())
        first = self.at
        while self.kind is not TokenKind.END and self.word() not in (";", "DEFAULT", "CURSOR", "CONDITION"):
            self.take()
        words = [one.text for one in self.tokens[first : self.at]]
        for name in names:
            self._know([name, *words])
        while self.kind is not TokenKind.END and self.word() != ";":
            if self.accept("DEFAULT"):
                self._fresh()
                self._store(self._locals, names[0].lower(), self.expression(), set())
            elif self.word() == "FOR" and self.begins_query(1):
                self.take()
                self._fresh()
                self.feed()
                self.note_order(counts=True, sorts_groups=False)
            else:
                self.take()

    def _set_values(self) -> None:
        self.take()
        while True:
            names: list[str] = []
            if self.kind is TokenKind.VARIABLE:
                self.take()
            else:
                names.append(self.name().lower())
                while self.accept("."):
                    names.append(self.name().lower())
            if not self.accept("="):
                self.expect(":", "=")
            given = self.expression()
            if len(names) > 1 and names[0] == "new" and self._row is not None:
                self._store(self._row, names[1], given, set())
            elif len(names) == 1 and names[0] in self._locals:
                self._store(self._locals, names[0], given, set())
            if not self.accept(","):
                return

    def _change(self) -> None:
        self._fresh()
        self.assigned = {}
        self.assigns = self.unordered_lists = 0
        word = self.word()
        counts = False
        if word == "WITH":
            self.take()
            self._common_tables()
            word = self.word()
        if word in ("INSERT", "REPLACE"):
            counts = self._insert()
        elif word == "UPDATE":
            self._update()
        elif word == "DELETE":
            self._delete()
        elif word == "CALL":
            self._call()
        elif word == "DO":
            self.take()
            self._list()
        elif word == "SELECT":
            self.read_query()
        else:
            raise UnsupportedSyntax(f"{word} in a body")
        self.note_order(counts=counts, sorts_groups=False)

    def _skip(self) -> None:
        while self.kind is not TokenKind.END and self.word() != ";":
            self.take()
