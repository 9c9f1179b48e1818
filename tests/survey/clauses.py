"""Statements whose result depends on more than their expressions: order, grouping, user variables, triggers, implicit values.

They are in `clauses.txt`: after a line with a name, statements that are `made` without modes, `changes`, of which the result or the
error is compared, and a query that they are `read` by. A name may have several scripts.
"""

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Final, NamedTuple

from tests.survey.asking import Answer, Side, at_once
from tests.survey.comparing import MODES, Outcome, judge
from tests.survey.expressions import Expression

NO_ORDER: Final = frozenset((
    "derived table order", "GROUP_CONCAT() without ORDER BY", "INSERT … SELECT order", "LIMIT without ORDER BY",
    "SELECT DISTINCT order", "UNION ALL order", "UNION order", "multi-table UPDATE, several matches",
    "user variable assigned in a query",
))  # fmt: skip
"""Where no server promises an order: that some tries were the same proves nothing."""
_TEXT: Final = Path(__file__).with_suffix(".txt")
_WIDTH: Final = 8


class Script(NamedTuple):
    """The statements of a script, by what they are for."""

    name: str
    made: list[str]
    changes: list[str]
    read: list[str]


def clause_names() -> list[str]:
    """Return the names of the clauses that are tried."""
    return sorted({one.name for one in _scripts()})


def outcomes_of_clauses(there: Side, here: Side, name: str, modes: str) -> Iterator[Outcome]:
    """Run every script of this name."""
    for script in _scripts():
        if script.name == name:
            for mode in MODES[modes]:
                answers = at_once(there, here, partial(_result, script=script, mode=mode))
                yield judge(Expression(name, (), "; ".join(script.changes)), *answers)


def _result(side: Side, script: Script, mode: str) -> Answer:
    side.set_modes("")
    for table in ("c1", "c2"):
        side.run(f"DROP TABLE IF EXISTS {table}")
    for statement in script.made:
        side.run(statement)
    side.run("COMMIT")
    side.set_modes(mode)
    for statement in script.changes:
        error, message = side.refuses(statement)
        if error:
            return Answer(None, "error", error, message)
    return side.read(script.read[0])


@cache
def _scripts() -> list[Script]:
    scripts: list[Script] = []
    statements: list[str] = []
    for line in _TEXT.read_text("utf-8").splitlines():
        if line.startswith("== "):
            scripts.append(Script(line.removeprefix("== "), [], [], []))
        elif line[:_WIDTH].strip():
            statements = getattr(scripts[-1], line[:_WIDTH].strip())
            statements.append(line[_WIDTH:])
        else:
            statements[-1] += " " + line[_WIDTH:]
    return scripts
