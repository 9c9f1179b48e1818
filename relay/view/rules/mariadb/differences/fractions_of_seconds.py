"""Generated columns that lose fractions of seconds: MariaDB cuts them, MySQL rounds them unless the session that reads or writes the
row says otherwise; for rows that come through replication none does."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from relay.view.rules.mariadb.differences.read_words import ReadWords

TIMES: Final = frozenset(("TIME", "DATETIME", "TIMESTAMP"))
_WHOLE: Final = frozenset(
    ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER", "BIGINT", "YEAR", "BIT", "BOOL", "BOOLEAN")
)
_LOOKS_AT_PARTS: Final = frozenset((
    "DATE", "DATEDIFF", "DATE_FORMAT", "DAY", "DAYNAME", "DAYOFMONTH", "DAYOFWEEK", "DAYOFYEAR", "EXTRACT", "HOUR", "LAST_DAY",
    "MICROSECOND", "MINUTE", "MONTH", "MONTHNAME", "QUARTER", "SECOND", "TIMESTAMPDIFF", "TO_DAYS", "TO_SECONDS", "WEEK", "WEEKDAY",
    "WEEKOFYEAR", "YEAR", "YEARWEEK",
))  # fmt: skip
"""Functions that read a time as it is."""
_MAKES_TIMES: Final = frozenset(("FROM_UNIXTIME", "MAKETIME", "SEC_TO_TIME", "TIME", "TIMESTAMP"))
_COMPARES: Final = frozenset(("<", ">", "=", "<=", ">=", "<>", "!=", "<=>", "IS", "IN", "BETWEEN", "LIKE"))
_MOST_DIGITS: Final = 6


class ColumnDigits(NamedTuple):
    """The type of a column: `type` is its first word, in upper case; `digits` are those after the second, if the type has them."""

    type: str
    digits: int

    @property
    def is_time(self) -> bool:
        """True if it may have fractions of seconds."""
        return self.type in TIMES


def loses_fractions(
    words: ReadWords, first: int, stop: int, column: ColumnDigits, known: Callable[[str], ColumnDigits | None]
) -> str:
    """Return the column whose fractions are lost in the expression [first, stop), or where its value becomes that of the generated
    `column`; "": none. `known` returns columns of the table by name; None: there is none, or it is not known."""
    converts = _converts(words, first, stop)
    compares = any(words.at_word(index) in _COMPARES for index in range(first, stop))
    for index, read in _columns(words, first, stop, known):
        if _is_read_in_parts(words, index, first):
            continue
        if read.is_time and read.digits:
            lost = column.is_time and column.digits < read.digits
            lost = lost or column.type == "DATE" or (column.type in _WHOLE and not compares)
        elif read.is_time or read.type in ("DATE", *_WHOLE):
            continue
        else:  # a text or a number may have any fraction
            lost = column.is_time and column.digits < _MOST_DIGITS
        if lost or converts:
            return words.tokens[index].text
    return ""


def _columns(
    words: ReadWords, first: int, stop: int, known: Callable[[str], ColumnDigits | None]
) -> Iterator[tuple[int, ColumnDigits]]:
    for index in range(first, stop):
        if words.at_word(index + 1) != "(" and words.at_word(index + 1) != ".":
            read = known(words.tokens[index].text)
            if read is not None:
                yield index, read


def _is_read_in_parts(words: ReadWords, index: int, first: int) -> bool:
    """Return whether the column is an argument of a function that reads it as it is, or of CAST(… AS DATE)."""
    opened = words.brackets.opening(index)
    if opened < first:
        return False
    function = words.at_word(opened - 1)
    if function == "CAST":
        return words.at_word(index + 1) == "AS" and words.at_word(index + 2) == "DATE"
    return function in _LOOKS_AT_PARTS


def _converts(words: ReadWords, first: int, stop: int) -> bool:
    """Return whether times of fewer digits are made inside."""
    for index in range(first, stop):
        word, following = words.at_word(index), words.at_word(index + 1)
        if word in _MAKES_TIMES and following == "(" and words.at_word(index - 1) not in ("AS", ","):
            return True
        if word in ("AS", ",") and following in TIMES and words.at_word(index + 2) in (")", "("):
            return words.at_word(index + 2) == ")" or words.tokens[index + 3].text != str(_MOST_DIGITS)
    return False
