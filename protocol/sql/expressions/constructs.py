"""A construct of a statement, and the operands that it gets."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from protocol.sql.survey.value_class import ANY, ValueClass
from protocol.sql.tables.source_table import TableName

Classes = frozenset[ValueClass]
NO_TABLES: Final[frozenset[TableName]] = frozenset()
GROUP_BY: Final = "GROUP BY without ORDER BY"
ASSIGNED: Final = "user variable assigned in a query"
LIMIT: Final = "LIMIT without ORDER BY"
FEED: Final = "INSERT … SELECT order"
DISTINCT: Final = "DISTINCT without ORDER BY"
NULL_STORED: Final = "NULL into NOT NULL"
NULL_IGNORED: Final = "NULL into NOT NULL with IGNORE"
TRIGGER_INSERT_NULL: Final = "trigger BEFORE INSERT, NULL into NOT NULL"
TRIGGER_UPDATE_NULL: Final = "trigger BEFORE UPDATE, NULL into NOT NULL"
TRIGGER_NO_VALUE: Final = "trigger BEFORE INSERT, implicit default"
SET_BEFORE_READ: Final = "multi-table UPDATE, column set before it is read"
DERIVED_ORDER: Final = "derived table order"
CONDITION: Final = "condition"
"""A value of which only counts whether it is true, as in WHERE, ON and HAVING."""
UNREAD: Final = "unread"
"""What nobody has surveyed, because the reader cannot read it."""


COMPARISONS: Final = frozenset(("=", "<=>", "<>", "<", "<=", ">", ">=", "IN", "NOT IN", "BETWEEN", "NOT BETWEEN"))
BOUNDS: Final = (10**5, 10**9, 1 << 31, 10**13)
"""What literals of whole numbers are distinguished by."""


class Operand(NamedTuple):
    """A value of an expression: the `classes` that it may have. `unknown` are the tables whose columns are in it and are not known.
    `parts` are those of a row, such as (a, b). `unit` is that of an INTERVAL. `is_literal`: its text says everything. `kind` is the
    first word of a column's type, in upper case; empty for what is no column. `below`: a literal whole number, without its sign, is
    below this one of `BOUNDS`; 0: below none, or it is no such literal. `is_zero`: it is a literal such as '0000-00-00'. `is_bytes`:
    it is a binary string, though its classes are those of a text. `made_by` are the constructs that its digits come from, by their
    index.
    """

    classes: Classes
    unknown: frozenset[TableName] = NO_TABLES
    parts: tuple["Operand", ...] = ()
    unit: str = ""
    is_literal: bool = False
    kind: str = ""
    below: int = 0
    is_zero: bool = False
    is_bytes: bool = False
    made_by: frozenset[int] = frozenset()


ANYTHING: Final = Operand(ANY)
NULL: Final = Operand(frozenset((ValueClass.NULL,)), is_literal=True)


class UsedConstruct(NamedTuple):
    """A construct as `Survey.verdict` knows it. `at` is its place in the statement. `unknown` are the tables whose columns are not
    known, and might decide.
    """

    name: str
    arguments: tuple[Classes, ...]
    at: int
    unknown: frozenset[TableName] = NO_TABLES
    is_strict: bool = True
    """False for values that an INSERT IGNORE or the like stores: what cannot be stored is made to fit."""
    cannot_fail: int = 0
    """The error that its literals exclude, such as 1365 for a division by 3."""
    only_number: bool = False
    """True if only the number counts that it gives, and not with how many digits it is written."""


class ImplicitOrder(NamedTuple):
    """A GROUP BY that MySQL before 8.0 sorts by: the text of its list is [start, stop), and ORDER BY may be written at `end`."""

    start: int
    stop: int
    end: int
    is_exact: bool


class FiredChange(NamedTuple):
    """Values that a statement writes into a table. `nulls` are the columns, in lower case, that may be given NULL; `absent` those of
    NOT NULL without a default that an INSERT does not name; `assigned` those that an UPDATE sets. `ignores`: it has IGNORE.
    `upserts`: it updates the rows that INSERT … ON DUPLICATE KEY UPDATE does not insert.
    """

    event: str
    table: TableName
    nulls: frozenset[str]
    absent: frozenset[str] = frozenset()
    assigned: frozenset[str] = frozenset()
    ignores: bool = False
    upserts: bool = False


@dataclass(slots=True)
class StatementConstructs:
    """All constructs of a statement. `calls` are functions that are not the server's, and procedures."""

    used: list[UsedConstruct] = field(default_factory=list)
    orders: list[ImplicitOrder] = field(default_factory=list)
    calls: list[TableName] = field(default_factory=list)
    fired: list[FiredChange] = field(default_factory=list)


def joined(operands: Iterable[Operand]) -> Operand:
    """Return an operand that is any of these."""
    given = list(operands)
    classes: Classes = frozenset().union(*(one.classes for one in given))
    unknown = NO_TABLES.union(*(one.unknown for one in given))
    made_by = frozenset[int]().union(*(one.made_by for one in given))
    return Operand(classes, unknown, is_literal=all(one.is_literal for one in given), made_by=made_by)
