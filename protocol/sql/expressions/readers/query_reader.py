"""Reads queries: their columns, tables, conditions, groups and order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from protocol.sql.expressions.constructs import (
    ANYTHING,
    ASSIGNED,
    DERIVED_ORDER,
    DISTINCT,
    GROUP_BY,
    LIMIT,
    NO_TABLES,
    ImplicitOrder,
    Operand,
    joined,
)
from protocol.sql.expressions.readers.column_scope import (
    ColumnScope,
    KnownColumns,
    Rows,
    ScopeTable,
    operands_of,
    rows_of_join,
    table_of_query,
)
from protocol.sql.expressions.readers.expression_reader import ExpressionReader
from protocol.sql.lexer import SqlToken, TokenKind, UnsupportedSyntax, is_name
from protocol.sql.statements.statement import SqlStatement
from protocol.sql.tables.source_table import TableName

_MODIFIERS: Final = (
    "ALL", "HIGH_PRIORITY", "STRAIGHT_JOIN", "SQL_SMALL_RESULT", "SQL_BIG_RESULT", "SQL_BUFFER_RESULT", "SQL_CACHE", "SQL_NO_CACHE",
    "SQL_CALC_FOUND_ROWS",
)  # fmt: skip
_SETS: Final = ("UNION", "EXCEPT", "INTERSECT", "MINUS")
_JOINS: Final = ("JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "NATURAL", "STRAIGHT_JOIN", "FULL")
_BEHIND_TABLE: Final = frozenset((
    *_JOINS, *_SETS, "ON", "USING", "USE", "FORCE", "IGNORE", "SET", "WHERE", "ORDER", "LIMIT", "PARTITION", "GROUP", "HAVING", "FOR",
    "LOCK", "WINDOW", "INTO", "OUTER", "PROCEDURE", "AS", "VALUES", "VALUE", "SELECT", "WITH", "RETURNING", "TABLESAMPLE",
))  # fmt: skip
_BEHIND_ITEM: Final = frozenset((
    "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "INTO", "FOR", "LOCK", "PROCEDURE", "ON",
    "WINDOW",
))  # fmt: skip
_MOST_BLOCKS: Final = 2_000
_MOST_TABLES: Final = 61
"""The most tables of a query that servers join."""
_MOST_ITEMS: Final = 4096
"""The most columns of a query that servers make."""
_MOST_ITEMS_OF_ALL: Final = 100_000
"""The most of all queries of a statement."""
_UNKNOWN: Final[Rows] = (("", ANYTHING._replace(unit="*")),)


@dataclass
class QueryBlock:
    """A SELECT. `feeds`: its rows come in an order that others may see, as those of a query in FROM do."""

    at: int
    feeds: bool
    groups: tuple[int, int] | None = None
    """The tokens of its GROUP BY's list."""
    has_rollup: bool = False
    is_ordered: bool = False
    is_unordered_by_word: bool = False
    """True for ORDER BY NULL."""
    is_limited: bool = False
    is_distinct: bool = False
    has_tables: bool = False
    assigns: bool = False
    sorts_down: bool = False
    order_at: int = 0
    """The token before which its ORDER BY may be written."""
    lists: int = 0
    is_derived: bool = False
    """True for a query in FROM."""


class QueryReader(ExpressionReader):
    """Reads queries. `columns` are those of the tables that are known."""

    def __init__(
        self,
        query: SqlStatement,
        tokens: Sequence[SqlToken],
        variables: Mapping[str, Operand],
        columns: KnownColumns,
    ) -> None:
        super().__init__(query, tokens, variables)
        self.columns = columns
        self.blocks: list[QueryBlock] = []
        self._derives = False
        """True while a query in FROM is read."""
        self._feeding = False
        """True while a query is read whose rows come in an order that counts for others."""
        self._common: dict[str, Rows] = {}
        self._known: dict[TableName, dict[str, Operand] | None] = {}
        self._read_items = 0

    # ---- queries ----

    def read_query(self) -> Operand:
        """Implement `ExpressionReader.read_query`: a value."""
        before, self._feeding, self._derives = (self._feeding, self._derives), False, False
        rows = self.rows()
        self._feeding, self._derives = before
        return _as_value(rows)

    def feed(self) -> list[tuple[str, Operand]]:
        """Read a query whose rows others get in their order."""
        before, self._feeding = self._feeding, True
        rows = self.rows()
        self._feeding = before
        return rows

    def rows(self) -> list[tuple[str, Operand]]:
        """Read a query with its unions; return its columns by name."""
        self._deeper()
        made = self._unions()
        self._deep -= 1
        return made

    def _unions(self) -> list[tuple[str, Operand]]:
        if self.accept("WITH"):
            self._common_tables()
        made = self._part()
        first = self.blocks[-1] if self.blocks else None
        while self.word() in _SETS:
            name = self.take().upper
            self.accept_any("ALL", "DISTINCT")
            other = self._part()
            self.use(name, ())
            stars = [one.unknown for _name, one in (*made, *other) if one.unit == "*"]
            if stars:
                made = [("", ANYTHING._replace(unknown=NO_TABLES.union(*stars), unit="*"))]
            elif len(other) == len(made):
                made = [(one[0], joined((one[1], two[1]))) for one, two in zip(made, other, strict=True)]
            first = None
        if first is None and self.word() in ("ORDER", "LIMIT"):
            self._order_and_limit(QueryBlock(self.at, self._feeding))
        self._locks()
        return made

    def _part(self) -> list[tuple[str, Operand]]:
        if self.accept("("):
            made = self.rows()
            self.expect(")")
            if self.word() in ("ORDER", "LIMIT"):
                self._order_and_limit(QueryBlock(self.at, self._feeding))
            return made
        if self.accept("TABLE"):
            scope = self._inner_scope()
            self._table(scope)
            return self._all_of(scope.tables)
        if self.accept("VALUES"):
            made = []
            while self.accept("ROW"):
                row = self._value_list()
                made = [(f"column_{number}", one) for number, one in enumerate(row)]
                self.accept(",")
            return made
        return self._select()

    def _value_list(self) -> list[Operand]:
        self.expect("(")
        given: list[Operand] = []
        while not self.accept(")"):
            given.append(self.expression())
            self.accept(",")
        return given

    def _common_tables(self) -> None:
        recursive = self.accept("RECURSIVE")
        while True:
            name = self.name().lower()
            names = self._column_names() if self.word() == "(" else []
            self.expect("AS", "(")
            if recursive:
                self._common[name] = _UNKNOWN
            outer = self.scope
            rows = self.feed()
            self.scope = outer
            self.expect(")")
            made = [(names[at] if at < len(names) else one[0], one[1]) for at, one in enumerate(rows)]
            self._common[name] = _UNKNOWN if recursive else made
            if not self.accept(","):
                return

    def _inner_scope(self) -> ColumnScope:
        return ColumnScope(self.scope)

    def _select(self) -> list[tuple[str, Operand]]:
        block = QueryBlock(self.at, self._feeding, is_derived=self._derives)
        if len(self.blocks) >= _MOST_BLOCKS:
            raise UnsupportedSyntax("too many queries")
        self.expect("SELECT")
        while True:
            if self.accept("DISTINCT") or self.accept("DISTINCTROW"):
                block.is_distinct = True
            elif not self.accept_any(*_MODIFIERS):
                break
        begin = self.at
        outer, self.scope = self.scope, self._inner_scope()
        # The tables come after the items that need them.
        self._skip_items()
        if self.accept("INTO"):
            self._skip_into()
        if self.accept("FROM"):
            block.has_tables = not self.accept("DUAL")
            if block.has_tables:
                self.table_list()
        after = self.at
        self.at = begin
        assigned, lists = self.assigns, self.unordered_lists
        rows = self._items()
        if block.is_distinct:
            self.use("DISTINCT", [one for _name, one in rows], begin)
        self.at = after
        self._conditions(block, {name: one for name, one in rows if name})
        block.assigns = self.assigns > assigned and block.has_tables
        block.lists = self.unordered_lists - lists
        self.blocks.append(block)
        self.scope = outer
        return rows

    def _skip_items(self) -> None:
        while self.kind is not TokenKind.END:
            word = self.word()
            if word == "(":
                self.skip_brackets()
            elif word in (")", ";") or (word in _BEHIND_ITEM and self.tokens[self.at - 1].upper not in (".",)):
                return
            else:
                self.take()

    def _skip_into(self) -> None:
        while self.kind is not TokenKind.END and self.word() not in ("FROM", "WHERE", ")", "FOR", "LOCK", ";"):
            self.take()

    def _items(self) -> list[tuple[str, Operand]]:
        rows: list[tuple[str, Operand]] = []
        while True:
            if self.accept("*"):
                if not self.scope.has_star:
                    raise UnsupportedSyntax("the order of the columns of a join")
                rows += self.scope.star or self._all_of(self.scope.tables)
            elif is_name(self.peek()) and self._is_star():
                name = self.take()
                while self.accept("."):
                    if self.accept("*"):
                        break
                    name = self.take()
                alias = self.text_of(name).lower()
                rows += self._all_of([one for one in self.scope.tables if one.alias == alias])
            else:
                token = self.peek()
                made = self.expression()
                rows.append((self._item_name(token), made))
            if len(rows) > _MOST_ITEMS:
                raise UnsupportedSyntax("too many columns of a query")
            if not self.accept(","):
                self._read_items += len(rows)
                if self._read_items > _MOST_ITEMS_OF_ALL:
                    raise UnsupportedSyntax("too many columns")
                return rows

    def _is_star(self) -> bool:
        at = 1
        while self.word(at) == ".":
            if self.word(at + 1) == "*":
                return True
            at += 2
        return False

    def _item_name(self, first: SqlToken) -> str:
        last = self.tokens[self.at - 1]
        if self.accept("AS") or (
            self.kind in (TokenKind.NAME, TokenKind.STRING)
            or (self.kind is TokenKind.WORD and self.word() not in _BEHIND_ITEM)
        ):
            return self.name_or_string().lower()
        return self.text_of(last).lower() if is_name(first) and is_name(last) else ""

    def _all_of(self, tables: Sequence[ScopeTable]) -> list[tuple[str, Operand]]:
        return [one for table in tables for one in table.all] or list(_UNKNOWN)

    # ---- tables ----

    def table_list(self) -> Rows:
        """Read the tables of a query, with the conditions of their joins, into its scope; return what `*` is of them."""
        made: list[tuple[str, Operand]] = []
        left: Rows = ()
        right = self._table(self.scope)
        words: tuple[str, ...] = ()
        while True:
            if self.accept(","):
                made += (*left, *right)
                left, right, words = (), self._table(self.scope), ()
            elif self.word() in _JOINS:
                begin = self.at
                self.accept_any(*_JOINS, "OUTER")
                words = tuple(one.upper for one in self.tokens[begin : self.at])
                left, right = (*left, *right), self._table(self.scope)
                if "NATURAL" in words:
                    left, right = self._joined(words, left, right, None), ()
            elif self.word() == "ON" and self.word(1) != "DUPLICATE":
                self.take()
                self.condition()
            elif self.accept("USING"):
                left, right = self._joined(words, left, right, self._column_names()), ()
            else:
                made += (*left, *right)
                self.scope.star = made
                return made

    def _joined(self, words: Sequence[str], left: Rows, right: Rows, names: Sequence[str] | None) -> Rows:
        if "RIGHT" in words or not right:
            self.scope.has_star = False
        return rows_of_join(left, right, names)

    def _column_names(self) -> list[str]:
        """Read a list of names in brackets."""
        names: list[str] = []
        self.expect("(")
        while not self.accept(")"):
            names.append(self.name().lower())
            self.accept(",")
        return names

    def _table(self, scope: ColumnScope) -> Rows:
        self.accept("LATERAL")
        if self.word() == "(":
            self._deeper()
            if self.begins_query(1) or (self.word(1) == "(" and self._opens_query()):
                self._derived(scope)
                made = scope.tables[-1].all
            else:
                self.expect("(")
                made = self.table_list()
                self.expect(")")
            self._deep -= 1
            return made
        if len(scope.tables) >= _MOST_TABLES:
            raise UnsupportedSyntax("too many tables of a query")
        if self.word() == "JSON_TABLE":
            raise UnsupportedSyntax("JSON_TABLE")
        name = self.table_name()
        if self.accept("PARTITION"):
            self.skip_brackets()
        if self.word() == "FOR" and self.word(1) == "SYSTEM_TIME":
            raise UnsupportedSyntax("FOR SYSTEM_TIME")
        alias = self._alias() or name[1]
        common = self._common.get(name[1].lower()) if name[0] == self.schema else None
        if common is not None:
            scope.tables.append(table_of_query(alias.lower(), common))
        else:
            scope.tables.append(ScopeTable(alias.lower(), self._columns_of(name), frozenset((name,)), name))
        while self.word() in ("USE", "FORCE", "IGNORE") and self.word(1) in ("INDEX", "KEY"):
            self.at += 2
            if self.accept("FOR"):
                self.accept_any("JOIN", "ORDER", "GROUP", "BY")
            self.skip_brackets()
            self.accept(",")
        return scope.tables[-1].all

    def _columns_of(self, name: TableName) -> dict[str, Operand] | None:
        if name not in self._known:
            columns = self.columns.columns_of(name)
            self._known[name] = operands_of(columns) if columns is not None else None
        return self._known[name]

    def _alias(self) -> str:
        if self.accept("AS"):
            return self.name_or_string()
        if self.kind is TokenKind.NAME or (self.kind is TokenKind.WORD and self.word() not in _BEHIND_TABLE):
            return self.name()
        return ""

    def _derived(self, scope: ColumnScope) -> None:
        self.expect("(")
        inner, self.scope = self.scope, ColumnScope(self.scope._outer)
        outer, self._derives = self._derives, True
        rows = self.feed()
        self.scope, self._derives = inner, outer
        self.expect(")")
        alias = self._alias()
        if self.word() == "(":
            rows = [(name, one[1]) for name, one in zip(self._column_names(), rows, strict=False)]
        scope.tables.append(table_of_query(alias.lower(), rows))

    # ---- conditions and order ----

    def _conditions(self, block: QueryBlock, items: dict[str, Operand]) -> None:
        if self.accept("WHERE"):
            self.condition()
        block.order_at = self.at
        # Names of items are columns too, from GROUP BY on.
        self.scope.tables.append(ScopeTable("", items))
        if self.accept("GROUP", "BY"):
            begin = self.at
            while True:
                self.expression()
                block.sorts_down = block.sorts_down or self.word() in ("ASC", "DESC")
                self.accept_any("ASC", "DESC")
                if not self.accept(","):
                    break
            block.groups = (begin, self.at)
            block.has_rollup = self.accept("WITH", "ROLLUP")
        if self.accept("HAVING"):
            self.condition()
        if self.accept("WINDOW"):
            raise UnsupportedSyntax("WINDOW")
        self._order_and_limit(block)
        if self.accept("PROCEDURE"):
            raise UnsupportedSyntax("PROCEDURE")
        if self.accept("INTO"):
            self._skip_into()
        self._locks()

    def _order_and_limit(self, block: QueryBlock) -> None:
        block.order_at = self.at
        if self.accept("ORDER", "BY"):
            if self.word() == "NULL" and self.word(1) != ",":
                self.take()
                block.is_unordered_by_word = True
            else:
                self.order_list()
                block.is_ordered = True
        if self.accept("LIMIT"):
            block.is_limited = True
            self._limit()
        if self.accept("ROWS", "EXAMINED"):
            self.take()

    def _limit(self) -> None:
        self.take()
        while self.accept(",") or self.accept("OFFSET"):
            self.take()

    def _locks(self) -> None:
        if self.accept("FOR") or self.accept("LOCK"):
            self.accept_any("UPDATE", "SHARE", "IN", "MODE", "NOWAIT", "SKIP", "LOCKED")
            if self.accept("OF"):
                self.table_name()
                self.accept_any("NOWAIT", "SKIP", "LOCKED")
            if self.accept("INTO"):
                self._skip_into()

    # ---- the order of rows ----

    def note_order(self, *, counts: bool, sorts_groups: bool) -> None:
        """Note what the order of rows decides. `counts`: what gets the rows depends on it. `sorts_groups`: the source sorts by
        GROUP BY.

        A query in FROM without an order of its own matters where one around it takes some of its rows, or numbers them.
        """
        if not self.blocks:
            return
        counts = counts or any(
            block.assigns or block.lists or (block.is_limited and not block.is_ordered and not block.groups)
            for block in self.blocks
        )
        for block in self.blocks:
            if block.assigns and (block.is_ordered or block.groups is not None or block.is_distinct):
                self.use(ASSIGNED, (), block.at)
            if block.groups is not None and not block.is_ordered:
                if not (block.is_limited or block.assigns or (counts and block.feeds)):
                    continue
                begin, stop = block.groups
                exact = sorts_groups and not (
                    block.has_rollup or block.is_unordered_by_word or block.sorts_down or block.assigns
                )
                if sorts_groups and not block.is_unordered_by_word:
                    end = self.tokens[block.order_at - 1].stop
                    span = self.tokens[begin].start, self.tokens[stop - 1].stop
                    self.made.orders.append(ImplicitOrder(*span, end, exact))
                if not exact:
                    self.use(GROUP_BY, (), block.at)
            elif block.is_derived and block.is_ordered and counts and not block.is_limited:
                self.use(DERIVED_ORDER, (), block.at)
            elif block.is_limited and not block.is_ordered and block.has_tables:
                self.use(LIMIT, (), block.at)
            elif block.is_distinct and counts and block.feeds and not block.is_ordered:
                self.use(DISTINCT, (), block.at)


def _as_value(rows: list[tuple[str, Operand]]) -> Operand:
    operands = [one._replace(is_literal=False, unit="") for _name, one in rows]
    if len(operands) == 1:
        return operands[0]
    return joined(operands)._replace(parts=tuple(operands)) if operands else ANYTHING
