"""What is stored when a value is assigned to a column: `store TYPE`."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from tests.survey.asking import Answer, Side, at_once
from tests.survey.column_types import COLUMN_TYPES, has_letters
from tests.survey.comparing import MODES, Outcome, judge
from tests.survey.expressions import Expression
from tests.survey.values import Value, values_by_class

_OF_LITERALS: Final = (
    "INSERT INTO s (c) VALUES ({0})",
    "INSERT IGNORE INTO s (c) VALUES ({0})",
    "UPDATE s SET c = {0}",
)
_OF_COLUMNS: Final = (
    "INSERT INTO s (c) SELECT {0} FROM v",
    "INSERT IGNORE INTO s (c) SELECT {0} FROM v",
    "UPDATE s, v SET s.c = v.{0}",
    "UPDATE IGNORE s, v SET s.c = v.{0}",
)
_FEWER: Final = 3
"""Every third value is stored under the second sql_mode of each kind."""


def outcomes_of_stores(there: Side, here: Side, name: str, modes: str) -> Iterator[Outcome]:
    """Store every value to columns of each type of this name."""
    for column_type in COLUMN_TYPES[name]:
        for side in (there, here):
            side.set_modes("")
            side.run("DROP TABLE IF EXISTS s")
            side.run(f"CREATE TABLE s (id INT, c {column_type}) ENGINE=InnoDB")
        for number, mode in enumerate(MODES[modes]):
            there.set_modes(mode)
            here.set_modes(mode)
            for value in [value for values in values_by_class().values() for value in values][
                :: _FEWER if number else 1
            ]:
                if not has_letters(name, column_type, value.text):
                    continue
                for form in _OF_COLUMNS if value.is_column else _OF_LITERALS:
                    statement = form.format(value.text)
                    shown = f"{statement} -- c {column_type}"
                    expression = Expression(f"store {name}", (value.kind,), shown)
                    yield judge(expression, *at_once(there, here, partial(_stored, statement=statement)))
    for side in (there, here):
        side.run("DROP TABLE s")


def count_of_stores(name: str) -> int:
    """Return how many statements are tried."""
    values: Sequence[Value] = [value for values in values_by_class().values() for value in values]
    return len(COLUMN_TYPES[name]) * sum(len(_OF_COLUMNS if value.is_column else _OF_LITERALS) for value in values)


def _stored(side: Side, statement: str) -> Answer:
    if "INSERT" not in statement:
        side.run("INSERT INTO s (id) VALUES (1)")
    error, message = side.refuses(statement)
    answer = Answer(None, "error", error, message) if error else side.read("SELECT c FROM s")
    side.run("ROLLBACK")
    return answer
