"""Rows of the survey's data from what was tried: classes with the same outcome are one row.

Rows never overlap, and what was not tried is in none.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from protocol.sql.survey.survey_row import ANOTHER_FORM, ANOTHER_TYPE, BOTH, LOOSE, STRICT
from protocol.sql.survey.value_class import ValueClass
from tests.survey.comparing import Outcome

_WORSE = ("same", ANOTHER_TYPE, ANOTHER_FORM, "refused", "differs")


class Cell(NamedTuple):
    """The worst outcome of a combination of classes."""

    kind: str
    error: str
    example: tuple[str, str, str]

    @property
    def verdict(self) -> tuple[str, str]:
        """What makes rows of their own."""
        return self.kind, self.error


Cells = dict[tuple[ValueClass, ...], Cell]
Results = dict[tuple[ValueClass, ...], set[ValueClass]]
"""The classes of results by those of the arguments."""


def worst_of(cells: Cells, results: Results, outcomes: Iterable[Outcome]) -> None:
    """Take outcomes into the cells, and the classes of their results."""
    for outcome in outcomes:
        results.setdefault(outcome.expression.classes, set()).update(outcome.results)
        known = cells.get(outcome.expression.classes)
        if known is None or _rank(outcome.kind, outcome.error) > _rank(known.kind, known.error):
            example = (outcome.expression.text, outcome.at_source, outcome.at_target)
            cells[outcome.expression.classes] = Cell(outcome.kind, outcome.error, example)


def results_of(construct: str, outcomes: Results, every: Iterable[ValueClass]) -> list[str]:
    """Return the lines of the classes that the results of a construct have."""
    classes = tuple(every)
    cells = {
        at: Cell(_classes_text(frozenset(results), classes), "", ("", "", ""))
        for at, results in outcomes.items()
        if results
    }
    if not cells:
        return []
    lines = []
    for box in _shortest(cells):
        arguments = ", ".join(_classes_text(sides, classes) for sides in box)
        lines.append(f"{construct}\t{arguments}\t{_inside(cells, box)[0].kind}")
    return sorted(lines)


def rows_of(
    construct: str, by_mode: Mapping[str, Cells], every: Iterable[ValueClass], *, is_variadic: bool
) -> list[str]:
    """Return the lines of a construct with one number of arguments."""
    strict, loose = by_mode[STRICT], by_mode[LOOSE]
    common = {
        classes: cell for classes, cell in strict.items() if classes in loose and loose[classes].verdict == cell.verdict
    }
    classes = tuple(every)
    rows = [
        *_mode_rows(construct, common, BOTH, classes, is_variadic),
        *_mode_rows(
            construct, {at: cell for at, cell in strict.items() if at not in common}, STRICT, classes, is_variadic
        ),
        *_mode_rows(
            construct, {at: cell for at, cell in loose.items() if at not in common}, LOOSE, classes, is_variadic
        ),
    ]
    return sorted(rows)


def _mode_rows(construct: str, cells: Cells, modes: str, every: tuple[ValueClass, ...], is_variadic: bool) -> list[str]:
    if not cells:
        return []
    lines = []
    for box in _shortest(cells):
        first = min(_inside(cells, box), key=lambda cell: (len(cell.example[0]), cell.example))
        arguments = ", ".join(_classes_text(sides, every) for sides in box) + (", …" if is_variadic else "")
        kind, error = first.verdict
        example = ("", "", "") if kind == "same" else first.example
        lines.append("\t".join((construct, arguments, modes, kind, error, *(_one_line(part) for part in example))))
    return lines


def _shortest(cells: Cells) -> list[tuple[frozenset[ValueClass], ...]]:
    arity = len(next(iter(cells)))
    return min((_boxes(cells, order) for order in (list(range(arity)), list(range(arity))[::-1])), key=len)


def _boxes(cells: Cells, order: list[int]) -> list[tuple[frozenset[ValueClass], ...]]:
    """Return disjoint boxes, each a set of classes an argument, that have one verdict and contain each cell once."""
    if not order:
        return [()]
    arity = len(order)

    def split(
        part: Mapping[tuple[ValueClass, ...], tuple[str, str]], depth: int
    ) -> frozenset[tuple[tuple[frozenset[ValueClass], ...], tuple[str, str]]]:
        if depth == arity:
            (verdict,) = part.values()
            return frozenset({((), verdict)})
        by_class: dict[ValueClass, dict[tuple[ValueClass, ...], tuple[str, str]]] = {}
        for at, verdict in part.items():
            by_class.setdefault(at[depth], {})[at] = verdict
        # classes with the same box of further arguments are one
        merged: dict[tuple[tuple[frozenset[ValueClass], ...], tuple[str, str]], set[ValueClass]] = {}
        for one, rest in by_class.items():
            for box in split(rest, depth + 1):
                merged.setdefault(box, set()).add(one)
        return frozenset(((frozenset(sides), *box), verdict) for (box, verdict), sides in merged.items())

    turned = {tuple(at[place] for place in order): cell.verdict for at, cell in cells.items()}
    back = [order.index(place) for place in range(arity)]
    return [tuple(box[place] for place in back) for box, _verdict in split(turned, 0)]


def _inside(cells: Cells, box: tuple[frozenset[ValueClass], ...]) -> list[Cell]:
    return [cell for at, cell in cells.items() if all(one in sides for one, sides in zip(at, box, strict=True))]


def _classes_text(sides: frozenset[ValueClass], every: tuple[ValueClass, ...]) -> str:
    if sides == frozenset(every):
        return "*"
    if len(sides) > len(every) // 2:
        return "not " + "|".join(one for one in every if one not in sides)
    return "|".join(one for one in every if one in sides)


def _rank(kind: str, error: str) -> int:
    return _WORSE.index(error if error in (ANOTHER_TYPE, ANOTHER_FORM) else kind)


def _one_line(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")
