"""The kinds of statements of a binlog, as far as a target's rules differ by them."""

from collections.abc import Iterator
from typing import Final

from relay.view.rules.targets.statement.new_syntax import common_table_at
from relay.view.rules.targets.statement.source_statement import SourceStatement

_TABLE_OBJECTS: Final = frozenset(
    ("TABLE", "TEMPORARY", "DATABASE", "SCHEMA", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL")
)
_DEFINING: Final = frozenset(("CREATE", "ALTER"))

_BEFORE_COLUMNS: Final = frozenset(
    ("ALL", "DISTINCT", "DISTINCTROW", "STRAIGHT_JOIN", "SQL_SMALL_RESULT", "SQL_BIG_RESULT")
)
_BEHIND_COLUMNS: Final = frozenset(
    ("FROM", "UNION", "WHERE", "LIMIT", "ORDER", "GROUP", "HAVING", "INTERSECT", "EXCEPT", ")")
)


def is_plain_definition(statement: SourceStatement) -> bool:
    """Return whether it defines or maintains tables, indexes or databases, so that nothing is compared and no rows are selected."""
    first, second = statement.word(0), statement.word(1)
    if first in ("RENAME", "TRUNCATE", "DROP", "OPTIMIZE", "ANALYZE", "REPAIR", "FLUSH"):
        return True
    return first in _DEFINING and second in _TABLE_OBJECTS and not statement.has("SELECT")


def selects_into_new_table(statement: SourceStatement) -> bool:
    """Return whether it is CREATE TABLE ... SELECT, in any spelling."""
    made = statement.starts("CREATE", "TABLE") or statement.starts("CREATE", "TEMPORARY", "TABLE")
    return made and (statement.has("SELECT") or common_table_at(statement) is not None)


def selects_defined_columns(statement: SourceStatement) -> bool:
    """Return whether a CREATE TABLE ... SELECT defines each column that it selects: then no version chooses a type."""
    select = next(statement.places("SELECT"), None)
    if select is None or common_table_at(statement) is not None:
        return False
    elements = statement.definition.written.elements if statement.definition is not None else []
    defined = {statement.text_at(statement.index_at(one.type_at) - 1) for one in elements if one.type_at >= 0}
    start = select + 1
    while statement.word(start) in _BEFORE_COLUMNS:
        start += 1
    return all(_selected_name(statement, *column) in defined for column in _selected(statement, start))


def _selected(statement: SourceStatement, start: int) -> Iterator[tuple[int, int]]:
    """Yield the selected columns, as ranges of words."""
    depth = 0
    for index in range(start, len(statement.words) + 1):
        symbol = statement.word(index)
        if index == len(statement.words) or (not depth and symbol in _BEHIND_COLUMNS):
            yield start, index
            return
        depth += (symbol == "(") - (symbol == ")")
        if symbol == "," and not depth:
            yield start, index
            start = index + 1


def _selected_name(statement: SourceStatement, start: int, stop: int) -> str:
    """Return the name after AS, or of a plain column; "" for anything else."""
    if stop - start >= 3 and statement.word(stop - 2) == "AS":
        return statement.text_at(stop - 1)
    plain = all((statement.word(index) == ".") == bool((index - start) % 2) for index in range(start, stop))
    return statement.text_at(stop - 1) if plain and (stop - start) % 2 else ""


def only_counts(statement: SourceStatement) -> bool:
    """Return whether it gathers statistics and changes no table: ANALYZE TABLE ... UPDATE HISTOGRAM."""
    return statement.starts("ANALYZE") and statement.has("HISTOGRAM")
