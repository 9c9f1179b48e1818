"""The names by which a DBA accepts constructs: those of the survey in lower case, without brackets."""

from typing import Final

from protocol.sql.expressions.constructs import (
    ASSIGNED,
    CONDITION,
    DERIVED_ORDER,
    DISTINCT,
    FEED,
    GROUP_BY,
    LIMIT,
    NULL_IGNORED,
    NULL_STORED,
    SET_BEFORE_READ,
    TRIGGER_INSERT_NULL,
    TRIGGER_NO_VALUE,
    TRIGGER_UPDATE_NULL,
    UNREAD,
)
from protocol.sql.server_functions import SERVER_FUNCTIONS

_OPERATORS: Final = (
    "=", "<=>", "<", ">", "<=", ">=", "<>", "+", "-", "*", "/", "%", "|", "&", "^", "~", "<<", ">>", "!", "->", "->>", "like", "regexp",
    "in",
    "between", "not", "and", "or", "xor", "div", "case", "binary", "collate",
)  # fmt: skip
_PHRASES: Final = (
    "not like", "not regexp", "not in", "not between", "sounds like", "member of", "case value", "convert using", "match against",
    "is null", "is not null", "is true", "is false", "is unknown", "unary -", "interval +", "interval -", "adddate interval",
    "subdate interval",
    "collate, compared", "date literal", "time literal", "timestamp literal", "distinct", "union", "except",
    "intersect", "minus", "over", "replace",
    "on duplicate key update", "multi-table update", GROUP_BY.lower(), ASSIGNED, LIMIT.lower(),
    CONDITION, FEED.lower(), DISTINCT, UNREAD, NULL_IGNORED, NULL_STORED, SET_BEFORE_READ, DERIVED_ORDER,
    TRIGGER_INSERT_NULL, TRIGGER_NO_VALUE, TRIGGER_UPDATE_NULL, "create table … select",
)  # fmt: skip
_CASTS: Final = (
    "signed",
    "unsigned",
    "char",
    "nchar",
    "binary",
    "date",
    "datetime",
    "time",
    "decimal",
    "year",
    "double",
    "float",
    "real",
    "json",
)  # fmt: skip
_TYPES: Final = (
    "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "bit", "char", "varchar", "tinytext", "text",
    "mediumtext", "longtext", "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "date", "datetime", "timestamp",
    "time", "year", "enum", "set", "json", "geometry",
)  # fmt: skip


ZERO_DATES: Final = "zero_dates"
LARGE_UNSIGNED: Final = "large_unsigned"


def accepted_name(construct: str) -> str:
    """Return the name by which a view's `accept` names a construct."""
    return ("extract" if construct.startswith("EXTRACT(") else construct.replace("()", "")).lower()


ACCEPTED_NAMES: Final = frozenset(
    (
        *_OPERATORS,
        *(phrase.lower() for phrase in _PHRASES),
        *(f"cast as {kind}" for kind in _CASTS),
        *(f"{verb} {kind}" for kind in _TYPES for verb in ("store", "convert")),
        *(name.lower() for name in SERVER_FUNCTIONS),
        "row_size",
        ZERO_DATES,
        LARGE_UNSIGNED,
    )
)
"""All names. `row_size`: rows longer than half a page, where the replicas have innodb_strict_mode = OFF. `zero_dates`: what differs
only for dates with zeros as their month or day, where no column has any. `large_unsigned`: what differs only for numbers of BIGINT
UNSIGNED from 2^63 on, where there are none.
"""
