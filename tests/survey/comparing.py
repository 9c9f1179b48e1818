"""What the target does with expressions, compared with the source."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from protocol.sql.survey.survey_row import ANOTHER_FORM, ANOTHER_TYPE
from protocol.sql.survey.value_class import ValueClass
from tests.survey.asking import BATCH, Answer, Side, at_once
from tests.survey.expressions import Expression
from tests.survey.result_classes import result_classes

MODES = {
    "loose": ("", "NO_ZERO_DATE,NO_ZERO_IN_DATE"),
    "strict": ("STRICT_TRANS_TABLES", "STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO"),
}
"""The values of sql_mode that the survey asks under, by what a row says of them."""
_OVER_PACKET: Final = 1301
"""A result over max_allowed_packet, which is a setting of the server."""
_MANY, _FEWER = 300, 3
"""Of more expressions than that, every third is asked under the second value."""
_NUMBERS: Final = frozenset(("integer", "decimal", "double"))
_LONG, _ALL = 60, 1 << 20
"""How much of a result a row has; and all of it."""


class Outcome(NamedTuple):
    """What the target did with an expression: the first two fields are those of a row."""

    expression: Expression
    kind: str
    error: str
    at_source: str
    at_target: str
    results: frozenset[ValueClass] = frozenset()
    """The classes that the source's result may have."""


def compare(
    source: Side, target: Side, expressions: Sequence[Expression], modes: str, values: int = 2
) -> Iterator[Outcome]:
    """Compare under each sql_mode of these modes, or the first `values` of them."""
    every = expressions
    for number, mode in enumerate(MODES[modes][:values]):
        expressions = every[:: _FEWER if number and len(every) > _MANY else 1]
        source.set_modes(mode)
        target.set_modes(mode)
        for start in range(0, len(expressions), BATCH):
            batch = expressions[start : start + BATCH]
            texts = [one.text for one in batch]
            answers = at_once(source, target, lambda side: side.values(texts))  # noqa: B023
            outcomes = [judge(one, *both) for one, *both in zip(batch, *answers, strict=True)]
            yield from _strictly(source, target, outcomes) if modes == "strict" else outcomes


def judge(expression: Expression, source: Answer, target: Answer) -> Outcome:
    """Return what it is that the target did. What the source refused was never logged."""
    if source.error:
        return Outcome(expression, "same", "", shown(source), shown(target))
    results = result_classes(source)
    if target.error:
        return Outcome(expression, "refused", str(target.error), shown(source), shown(target), results)
    if source.value != target.value and not _are_zero(source, target):
        form = ANOTHER_FORM if _are_one_number(source, target) else ""
        return Outcome(expression, "differs", form, *_apart(shown(source, _ALL), shown(target, _ALL)), results)
    if source.value is not None and source.kind != target.kind:
        value = shown(source)
        return Outcome(expression, "differs", ANOTHER_TYPE, f"{source.kind} {value}", f"{target.kind} {value}", results)
    return Outcome(expression, "same", "", shown(source), shown(target), results)


def _are_one_number(one: Answer, other: Answer) -> bool:
    """Return whether both are the same number, written with more or fewer digits: 2.50 and 2.5."""
    if one.value is None or other.value is None or not {one.kind, other.kind} <= _NUMBERS:
        return False
    try:
        return Decimal(one.value.decode()) == Decimal(other.value.decode())
    except (ArithmeticError, ValueError):  # a MariaDB sends some bits as an integer's
        return False


def _are_zero(one: Answer, other: Answer) -> bool:
    """Return whether both are the number 0, but for its sign: that of `-1 * 0e0` is not the same everywhere, and 0 = -0."""
    if one.value is None or other.value is None or not {one.kind, other.kind} <= _NUMBERS:
        return False
    return float(one.value) == 0 and one.value.lstrip(b"-") == other.value.lstrip(b"-")


def _strictly(source: Side, target: Side, outcomes: list[Outcome]) -> Iterator[Outcome]:
    """What a change of rows is refused for in strict modes: warnings that only the target has. What the source refuses too was never
    logged."""
    passed = [at for at, outcome in enumerate(outcomes) if outcome.kind == "same"]
    for where in (False, True):
        texts = [outcomes[at].expression.text for at in passed]
        if not texts:
            break
        errors = target.changes(texts, where=where)
        refused = [(at, error) for at, error in zip(passed, errors, strict=True) if error not in (0, _OVER_PACKET)]
        if refused:
            there = source.changes([outcomes[at].expression.text for at, _error in refused], where=where)
            for (at, error), own in zip(refused, there, strict=True):
                if not own:
                    outcomes[at] = outcomes[at]._replace(
                        kind="refused", error=str(error), at_target=f"error {error} in a change of rows"
                    )
                    passed.remove(at)
    yield from outcomes


def _apart(one: str, other: str) -> tuple[str, str]:
    """Return both, cut so that what differs is seen."""
    first = next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)
    if first < _LONG // 2:
        return _cut(one, _LONG), _cut(other, _LONG)
    start = first - _LONG // 4
    return f"…{_cut(one[start:], _LONG)}", f"…{_cut(other[start:], _LONG)}"


def shown(answer: Answer, length: int = _LONG) -> str:
    """Return a result as rows have it."""
    if answer.error:
        return f"error {answer.error}"
    if answer.value is None:
        return "NULL"
    if answer.kind in ("text", "bytes", "bit", "geometry"):
        try:
            text = answer.value.decode("utf-8")
        except UnicodeDecodeError:
            text = ""
        if not text.isprintable() or (answer.value and not text) or answer.kind in ("bit", "geometry"):
            return f"x'{_cut(answer.value.hex().upper(), length)}'"
        return f"'{_cut(text, length)}'"
    return _cut(answer.value.decode("utf-8", "replace"), length)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"
