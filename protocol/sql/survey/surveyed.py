"""The reader of the survey: whether a target computes a construct as the source does."""

import itertools
import math
from collections.abc import Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from importlib import resources
from typing import Final, NamedTuple

from protocol.sql.server_version import Version, version_numbers
from protocol.sql.survey.survey_row import ResultRow, SurveyRow, common_count, read_result, read_row, severity_of
from protocol.sql.survey.value_class import ValueClass

PAIRS: Final = (
    ("mysql-5.6", "mysql-9.7"),
    ("mysql-9.7", "mysql-5.6"),
    ("mariadb-10.11", "mysql-9.7"),
    ("mariadb-11.8", "mysql-9.7"),
)
"""The pairs of source and target that were surveyed."""
_NEW_MYSQL: Final = (8, 0)
_LISTS: Final = frozenset(("IN", "NOT IN", "COALESCE()", "CONCAT()", "GREATEST()", "LEAST()", "FIELD()"))
"""Constructs of any number of arguments, which are judged by those that were tried, also where these were fewer."""
_WITH_FIRST: Final = frozenset(("IN", "NOT IN", "FIELD()"))
"""Those of them that compare the first value with each other one."""
_MOST_KEPT: Final = 16
_CLASSES: Final = "# classes: "
_LAST_OF_OLD_MARIADB: Final = (10, 11)


class SurveyKind(IntEnum):
    """What a target does. A larger one is worse."""

    SAME = 0
    UNSURVEYED = 1
    REFUSED = 2
    """It refuses with an error."""
    DIFFERS = 3
    """It gives another result without an error."""


class Verdict(NamedTuple):
    """What the survey says of a construct. `when` is for people: of which arguments it says so.

    `error` is the target's number, 0: none. `only_type`: all values were equal, but of another type. `only_form`: all were the same
    numbers, but some with more digits after the point. `on_paper`: it was seen on other
    series than those of the source and target. `is_like`: the expression may have arguments of other classes that differ alike.
    """

    kind: SurveyKind
    error: int = 0
    when: str = ""
    expression: str = ""
    at_source: str = ""
    at_target: str = ""
    only_type: bool = False
    only_form: bool = False
    on_paper: bool = False
    is_like: bool = False


class Survey:
    """What a target does with the constructs of a source."""

    def __init__(
        self,
        lines: Sequence[str],
        classes: frozenset[ValueClass],
        *,
        results: Sequence[str] = (),
        on_paper: bool = False,
    ) -> None:
        self.classes = classes
        """The classes of values that a source has."""
        self.on_paper = on_paper
        self._lines = _by_construct(lines)
        self._rows: dict[str, tuple[SurveyRow, ...]] = {}
        self._result_lines = _by_construct(results)
        self._results: dict[str, tuple[ResultRow, ...]] = {}

    @property
    def constructs(self) -> frozenset[str]:
        """All that were surveyed."""
        return frozenset(self._lines)

    def rows(self, construct: str) -> tuple[SurveyRow, ...]:
        """Return the rows of a construct; none for one that was not surveyed."""
        rows = self._rows.get(construct)
        if rows is None:
            rows = tuple(read_row(line, self.classes) for line in self._lines.get(construct, ()))
            if rows:
                self._rows[construct] = rows
        return rows

    def results(self, construct: str, arguments: Sequence[frozenset[ValueClass]]) -> frozenset[ValueClass]:
        """Return the classes that its result may have at the source; all, where some of the arguments were not tried."""
        rows = self._results.get(construct)
        if rows is None:
            lines = self._result_lines.get(construct, ())
            rows = self._results[construct] = tuple(read_result(line, self.classes) for line in lines)
        wanted = [self.classes & argument for argument in arguments]
        found: frozenset[ValueClass] = frozenset()
        covered = 0
        for row in rows:
            common = common_count(row.arguments, wanted)
            covered += common
            found |= row.results if common else frozenset()
        return found if covered and covered == math.prod(map(len, wanted)) else self.classes

    def verdict(
        self, construct: str, arguments: Sequence[frozenset[ValueClass]], strict: bool, cannot_fail: int = 0
    ) -> Verdict:
        """Return the worst of all combinations of classes that the arguments may have. For more arguments than were surveyed, all
        selections of them in their order count, the first one always among them. The error `cannot_fail` is not met.
        """
        rows = self.rows(construct)
        if cannot_fail:
            rows = tuple(_without(row, cannot_fail) for row in rows)
        wanted = [self.classes & argument for argument in arguments]
        if not rows or not all(wanted):
            return self._unsurveyed(construct, arguments)
        longest = max(len(row.arguments) for row in rows)
        worst: Verdict | None = None
        takes_more = construct in _LISTS or any(row.is_variadic for row in rows)
        for selection in _selections(wanted, longest if takes_more else len(wanted)):
            found = self._worst(construct, rows, selection, strict)
            if found.kind is SurveyKind.UNSURVEYED and construct in _LISTS and len(selection) > 2:
                found = self._worst_pair(construct, rows, selection, strict)
            if worst is None or _rank(found) > _rank(worst):
                worst = found
        assert worst is not None  # there is one selection at least
        for pair in _selections(wanted, 2) if construct in _LISTS and longest > 2 else ():
            # More values of a pair were tried than of three: a list differs as its pairs do.
            found = self._worst(construct, rows, pair, strict)
            if len(pair) == 2 and _rank(found) > max(_rank(worst), SurveyKind.UNSURVEYED):
                worst = found
        return worst

    def _worst_pair(
        self, construct: str, rows: Sequence[SurveyRow], wanted: Sequence[frozenset[ValueClass]], strict: bool
    ) -> Verdict:
        """Return the worst of each two arguments in their order: of more classes pairs were tried than threes."""
        first = ([wanted[0], one] for one in wanted[1:])
        pairs = first if construct in _WITH_FIRST else map(list, itertools.combinations(wanted, 2))
        return max((self._worst(construct, rows, pair, strict) for pair in pairs), key=_rank)

    def _worst(
        self, construct: str, rows: Sequence[SurveyRow], wanted: Sequence[frozenset[ValueClass]], strict: bool
    ) -> Verdict:
        covered, total = 0, math.prod(map(len, wanted))
        worst: SurveyRow | None = None
        for row in rows:
            common = row.common(wanted, strict)
            covered += common
            if common and (
                worst is None or (row.severity, row.is_within(wanted)) > (worst.severity, worst.is_within(wanted))
            ):
                worst = row
        if worst is None or (covered < total and worst.severity < SurveyKind.UNSURVEYED):
            return self._unsurveyed(construct, wanted)
        return Verdict(
            SurveyKind(worst.kind),
            worst.error,
            worst.when(wanted),
            worst.expression,
            worst.at_source,
            worst.at_target,
            worst.only_type,
            worst.only_form,
            self.on_paper,
            not worst.is_within(wanted),
        )

    def _unsurveyed(self, construct: str, arguments: Sequence[frozenset[ValueClass]]) -> Verdict:
        known = "these arguments" if construct in self._lines else "it"
        return Verdict(SurveyKind.UNSURVEYED, when=f"the survey has no row for {known}", on_paper=self.on_paper)


@lru_cache(maxsize=_MOST_KEPT)
def surveyed(source_version: str, target_version: str) -> Survey:
    """Return the survey of servers of these versions, or of the nearest ones; one without rows if there is none."""
    source, target = _series(source_version, is_source=True), _series(target_version, is_source=False)
    if (source[0], target[0]) not in PAIRS:
        return Survey((), frozenset(), on_paper=True)
    return read_survey(source[0], target[0], on_paper=not (source[1] and target[1]))


@lru_cache(maxsize=_MOST_KEPT)
def read_survey(source: str, target: str, *, on_paper: bool = False) -> Survey:
    """Return the survey of a pair of series such as `mysql-5.6` and `mysql-9.7`."""
    lines = _lines_of(f"{source}_{target}.txt")
    classes = next(line for line in lines if line.startswith(_CLASSES)).removeprefix(_CLASSES)
    return Survey(
        lines,
        frozenset(ValueClass(one) for one in classes.split("|")),
        results=_lines_of(f"{source}_results.txt"),
        on_paper=on_paper,
    )


def _lines_of(name: str) -> list[str]:
    return (resources.files(__package__) / "data" / name).read_text("utf-8").split("\n")


def _by_construct(lines: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in lines:
        construct, tab, _rest = line.partition("\t")
        if tab:
            found.setdefault(construct, []).append(line)
    return found


def _series(version: str, *, is_source: bool) -> tuple[str, bool]:
    """Return the surveyed series that is nearest to a version, and whether it is of that series."""
    series: Version = version_numbers(version)[:2]
    if "mariadb" in version.lower():
        if series <= _LAST_OF_OLD_MARIADB:
            return "mariadb-10.11", series == _LAST_OF_OLD_MARIADB
        return "mariadb-11.8", series == (11, 8)
    if series < _NEW_MYSQL:
        return "mysql-5.6", series == (5, 6)
    return "mysql-9.7", series == (9, 7)


def _without(row: SurveyRow, error: int) -> SurveyRow:
    """Return the row for arguments with which this error cannot be met."""
    is_met = row.kind == SurveyKind.REFUSED and row.error == error
    return row._replace(kind=SurveyKind.SAME, error=0) if is_met else row


def _rank(verdict: Verdict) -> float:
    """Return how bad a verdict is, see `severity_of`."""
    return severity_of(verdict.kind, only_type=verdict.only_type, only_form=verdict.only_form)


def _selections(wanted: list[frozenset[ValueClass]], length: int) -> Iterator[list[frozenset[ValueClass]]]:
    if len(wanted) <= length or length < 2:
        yield wanted
        return
    rest = wanted[1:]
    # of equal ones the first and the last: each order of two is still among them
    kept = sorted({at for one in set(rest) for at in (rest.index(one), len(rest) - 1 - rest[::-1].index(one))})
    for selected in itertools.combinations(kept, min(length - 1, len(kept))):
        yield [wanted[0], *(rest[at] for at in selected)]
