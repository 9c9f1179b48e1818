"""A survey of a pair of servers."""

import contextlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from deploy.servers import SERVERS
from protocol.sql.survey.survey_row import BOTH, LOOSE, STRICT, VARIADIC
from tests.survey.asking import OPTIONS, Side, values_of
from tests.survey.clauses import NO_ORDER, clause_names, outcomes_of_clauses
from tests.survey.column_types import COLUMN_TYPES
from tests.survey.comparing import Outcome, compare, shown
from tests.survey.compressing import Cells, Results, results_of, rows_of, worst_of
from tests.survey.constructs import Construct, constructs_of
from tests.survey.converts import outcomes_of_conversions
from tests.survey.expressions import Expression, expressions_of
from tests.survey.stores import outcomes_of_stores
from tests.survey.values import values_by_class

SERVERS_BY_SERIES: Final = {
    "mysql-5.6": "mysql56",
    "mysql-9.7": "mysql97",
    "mariadb-10.11": "mariadb",
    "mariadb-11.8": "mariadb118",
}
_NOT_READ: Final = (1064, 1305, 1582, 1128)
"""Errors of a construct that a server does not have, or not with as many arguments: whatever they are."""
_TRIED: Final = 30


@contextlib.contextmanager
def sides(source: str, target: str) -> Iterator[tuple[Side, Side]]:
    """Start both servers. Their tables of values are the same, or it is an error."""
    with contextlib.ExitStack() as started:
        both = []
        for number, series in enumerate((source, target), 1):
            server = started.enter_context(SERVERS[SERVERS_BY_SERIES[series]]())
            both.append(Side(server.start(server_id=number, options=list(OPTIONS))))
            started.callback(both[-1].close)
        both[1].take_settings(both[0])
        for (name, there), (_name, here) in zip(values_of(both[0]), values_of(both[1]), strict=True):
            if there != here:
                raise ValueError(f"the column {name} is {there!r} at {source} and {here!r} at {target}")
        yield both[0], both[1]


def version_of(side: Side) -> str:
    """Return the version as the server says it."""
    text: bytes = side.run("SELECT VERSION()")[0][0]
    return text.decode()


class Asked(NamedTuple):
    """What is asked for. `only` are constructs; none: all. `kinds`: e: expressions, s: stores and conversions, c: clauses. `each`:
    expressions for each combination of two classes."""

    only: tuple[str, ...] = ()
    arities: tuple[int, ...] = (0, 1, 2, 3, 4)
    kinds: str = "esc"
    each: int = 0

    def wants(self, construct: Construct) -> bool:
        """Return whether a construct is asked for."""
        return (not self.only or construct.name in self.only) and construct.arity in self.arities


class Found(NamedTuple):
    """What was found of a construct: how many expressions were asked; lines of the pair's data, and of the source's results."""

    name: str
    asked: int
    rows: list[str]
    results: list[str]


def run(source: str, target: str, asked_for: Asked) -> Iterator[Found]:
    """Survey the pair, one construct after the other."""
    with sides(source, target) as (there, here):
        if "e" in asked_for.kinds:
            for construct in constructs_of(version_of(there)):
                if asked_for.wants(construct):
                    yield _expressions(there, here, construct, asked_for.each)
        if "s" in asked_for.kinds:
            for what, outcomes in (("store", outcomes_of_stores), ("convert", outcomes_of_conversions)):
                for name in COLUMN_TYPES:
                    construct = Construct(f"{what} {name}", 1, ())
                    if asked_for.wants(construct):
                        asked = {modes: outcomes(there, here, name, modes) for modes in (STRICT, LOOSE)}
                        yield _found(construct, asked, 0)
        if "c" in asked_for.kinds:
            for name in clause_names():
                construct = Construct(name, 0, ())
                if asked_for.wants(construct):
                    yield _of_clause(there, here, construct)


def _expressions(there: Side, here: Side, construct: Construct, each: int) -> Found:
    expressions = list(expressions_of(construct, each))
    unknown = _unknown(there, here, expressions)
    if unknown == ():
        return Found(f"{construct.name} of {construct.arity}, which the source does not have", 0, [], [])
    if unknown:
        name = f"{construct.name} of {construct.arity}, which the target does not have"
        return Found(name, _TRIED, [_refused(construct, *unknown)], [])
    outcomes = {modes: compare(there, here, expressions, modes) for modes in (STRICT, LOOSE)}
    return _found(construct, outcomes, len(expressions))


def _of_clause(there: Side, here: Side, construct: Construct) -> Found:
    outcomes = {modes: outcomes_of_clauses(there, here, construct.name, modes) for modes in (STRICT, LOOSE)}
    found = _found(construct, outcomes, 0)
    if construct.name in NO_ORDER:
        return found._replace(rows=[row.replace("\tsame\t", "\tunsurveyed\t") for row in found.rows])
    return found


def _unknown(there: Side, here: Side, expressions: list[Expression]) -> tuple[Expression, str, int] | tuple[()] | None:
    """Return an expression and its results if the target does not read the construct, () if the source does not, otherwise None."""
    tried = expressions[:: max(1, len(expressions) // _TRIED)]
    asked = there.values([one.text for one in tried])
    if all(answer.error in _NOT_READ for answer in asked):
        return ()
    answers = here.values([one.text for one in tried])
    if any(answer.error not in _NOT_READ for answer in answers):
        return None
    for one, own, answer in zip(tried, asked, answers, strict=True):
        if not own.error:
            return one, shown(own), answer.error
    return None


def _refused(construct: Construct, example: Expression, result: str, error: int) -> str:
    arguments = ", ".join("*" * construct.arity) + (VARIADIC if construct.is_variadic else "")
    return "\t".join((construct.name, arguments, BOTH, "refused", str(error), example.text, result, f"error {error}"))


def _found(construct: Construct, outcomes: dict[str, Iterator[Outcome]], asked: int) -> Found:
    by_mode: dict[str, Cells] = {modes: {} for modes in outcomes}
    results: Results = {}
    for modes, found in outcomes.items():
        worst_of(by_mode[modes], results, found)
    rows = rows_of(construct.name, by_mode, values_by_class(), is_variadic=construct.is_variadic)
    lines = results_of(construct.name, results, values_by_class()) if asked else []
    return Found(f"{construct.name} of {construct.arity}", asked, rows, lines)
