"""TIMESTAMP columns of a source with explicit_defaults_for_timestamp, written out for a target whose default is OFF.

5.6.24 with its defaults makes of `TIMESTAMP`, `TIMESTAMP NOT NULL` and `TIMESTAMP PRIMARY KEY`, when first in the table, NOT NULL
DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP; its `TIMESTAMP NULL` is the source's `TIMESTAMP`. A written DEFAULT prevents
these defaults. The zero date as a default needs a sql_mode without NO_ZERO_DATE.
"""

from itertools import pairwise
from typing import Final

from protocol.sql.sql_mode import NO_ZERO_DATE, NO_ZERO_IN_DATE
from relay.view.rules.targets.statement.source_statement import SourceStatement

ZERO_DATE_MODES: Final = NO_ZERO_DATE | NO_ZERO_IN_DATE
_ZERO: Final = " DEFAULT '0000-00-00 00:00:00'"


def write_out_timestamps(statement: SourceStatement) -> None:
    """Add the missing words. The table can then be altered only under a sql_mode without ZERO_DATE_MODES."""
    if statement.definition is None:
        return
    for element in statement.definition.written.elements:
        type_at = statement.index_at(element.type_at)
        if element.type_at >= 0 and statement.word(type_at) == "TIMESTAMP":
            _write_out(statement, range(type_at, statement.index_at(element.stop)))


def _write_out(statement: SourceStatement, places: range) -> None:
    last = places.start
    if statement.word(last + 1) == "(":
        last = statement.brackets.closing(last + 1)
    words = [statement.word(index) for index in range(last + 1, places.stop)]
    pairs = list(pairwise(words))
    nullable = any(
        word == "NULL" and (not at or words[at - 1] not in ("NOT", "DEFAULT")) for at, word in enumerate(words)
    )
    if ("NOT", "NULL") in pairs or ("PRIMARY", "KEY") in pairs:
        if "DEFAULT" not in words:
            statement.after(last, _ZERO)
    elif not nullable:
        statement.after(last, " NULL")
