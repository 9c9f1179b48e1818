"""What a definition makes of the values of a column that gets another type: `convert TYPE`."""

from collections.abc import Iterator, Sequence
from functools import partial

from tests.survey.asking import Answer, Side, at_once
from tests.survey.column_types import COLUMN_TYPES, has_letters
from tests.survey.comparing import MODES, Outcome, judge
from tests.survey.expressions import Expression
from tests.survey.values import Column, columns


def outcomes_of_conversions(there: Side, here: Side, name: str, modes: str) -> Iterator[Outcome]:
    """Convert every column of the table of values to each type of this name."""
    for column_type in COLUMN_TYPES[name]:
        for mode in MODES[modes]:
            answers = at_once(there, here, partial(_converted, every=columns(), column_type=column_type, mode=mode))
            for column, one, other in zip(columns(), *answers, strict=True):
                if not has_letters(name, column_type, column.name):
                    continue
                text = f"ALTER TABLE t MODIFY {column.name} {column_type} -- of {column.type} with {column.filled}"
                yield judge(Expression(f"convert {name}", (column.kind,), text), one, other)


def _converted(side: Side, every: Sequence[Column], column_type: str, mode: str) -> list[Answer]:
    side.set_modes("")
    side.run("DROP TABLE IF EXISTS k")
    names = ", ".join(one.name for one in every)
    defined = ", ".join(f"{one.name} {one.type}" for one in every)
    side.run(f"CREATE TABLE k ({defined}) ENGINE=InnoDB")
    side.run(f"INSERT INTO k SELECT {names} FROM v")
    side.run("COMMIT")
    side.set_modes(mode)
    error, message = side.refuses("ALTER TABLE k " + ", ".join(f"MODIFY {one.name} {column_type}" for one in every))
    if not error:
        answers = [side.read(f"SELECT {one.name} FROM k") for one in every]
    elif len(every) == 1:
        answers = [Answer(None, "error", error, message)]
    else:
        half = len(every) // 2
        answers = _converted(side, every[:half], column_type, mode) + _converted(side, every[half:], column_type, mode)
    return answers
