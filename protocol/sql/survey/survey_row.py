"""A row of the survey's data: a construct with classes of arguments, and what the target does with them."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from protocol.sql.survey.value_class import ValueClass

KINDS: Final = ("same", "unsurveyed", "refused", "differs")
"""The words of the data, by the number of `SurveyKind`."""
STRICT, LOOSE, BOTH = "strict", "loose", "*"
VARIADIC: Final = ", …"
"""The end of the arguments of a function that takes any number of them."""
ANOTHER_TYPE: Final = "type"
"""What a row has for an error where all values were equal, but of another type."""
ANOTHER_FORM: Final = "form"
"""What it has where they were the same number, with more or fewer digits after the point."""


_OF_TYPE: Final = 0.4
_OF_FORM: Final = 0.6


class SurveyRow(NamedTuple):
    """A row. `modes` is `strict`, `loose` or `*`; `kind` is the number of a `SurveyKind`."""

    construct: str
    arguments: tuple[frozenset[ValueClass], ...]
    modes: str
    kind: int
    error: int
    expression: str
    at_source: str
    at_target: str
    only_type: bool
    only_form: bool
    is_variadic: bool

    @property
    def severity(self) -> float:
        """See `severity_of`."""
        return severity_of(self.kind, only_type=self.only_type, only_form=self.only_form)

    def common(self, wanted: Sequence[frozenset[ValueClass]], strict: bool) -> int:
        """Return how many of the wanted combinations of classes it is about."""
        return 0 if self.modes == (LOOSE if strict else STRICT) else common_count(self.arguments, wanted)

    def is_within(self, wanted: Sequence[frozenset[ValueClass]]) -> bool:
        """Return whether all its combinations of classes are wanted, so that its expression is one of them."""
        return all(mine <= argument for mine, argument in zip(self.arguments, wanted, strict=False))

    def when(self, wanted: Sequence[frozenset[ValueClass]]) -> str:
        """Return of which of the wanted classes it is, for people."""
        parts = [" or ".join(sorted(mine & argument)) for mine, argument in zip(self.arguments, wanted, strict=True)]
        if not parts:
            return {STRICT: "rows in strict mode", LOOSE: "rows without strict mode", BOTH: ""}[self.modes]
        mode = {STRICT: ", in strict mode", LOOSE: ", without strict mode", BOTH: ""}[self.modes]
        return ", ".join(parts) + mode


class ResultRow(NamedTuple):
    """What a construct gives for classes of arguments."""

    arguments: tuple[frozenset[ValueClass], ...]
    results: frozenset[ValueClass]


def severity_of(kind: int, *, only_type: bool, only_form: bool) -> float:
    """Return how bad an outcome is: the same value of another type or form is worse than one that is all the same, and not as bad as
    what was not surveyed, or an error.
    """
    return _OF_TYPE if only_type else _OF_FORM if only_form else float(kind)


def common_count(mine: Sequence[frozenset[ValueClass]], wanted: Sequence[frozenset[ValueClass]]) -> int:
    """Return how many combinations of classes are in both."""
    if len(mine) != len(wanted):
        return 0
    return math.prod(len(one & other) for one, other in zip(mine, wanted, strict=True))


def read_result(line: str, classes: frozenset[ValueClass]) -> ResultRow:
    """Return the row of a line of the file of results."""
    _construct, arguments, results = line.split("\t")
    return ResultRow(_arguments(arguments, classes), _classes(results, classes))


def read_row(line: str, classes: frozenset[ValueClass]) -> SurveyRow:
    """Return the row of a line. `classes` are those that `*` is for."""
    construct, arguments, modes, kind, error, expression, at_source, at_target = line.split("\t")
    is_variadic = arguments.endswith(VARIADIC)
    return SurveyRow(
        construct,
        _arguments(arguments.removesuffix(VARIADIC), classes),
        modes,
        KINDS.index(kind),
        int(error) if error.isdigit() else 0,
        expression,
        at_source,
        at_target,
        error == ANOTHER_TYPE,
        error == ANOTHER_FORM,
        is_variadic,
    )


def _arguments(text: str, classes: frozenset[ValueClass]) -> tuple[frozenset[ValueClass], ...]:
    return tuple(_classes(one, classes) for one in text.split(", ")) if text else ()


@lru_cache(maxsize=4096)
def _classes(text: str, every: frozenset[ValueClass]) -> frozenset[ValueClass]:
    if text == "*":
        return every
    if text.startswith("not "):
        return every - _classes(text.removeprefix("not "), every)
    return frozenset(ValueClass(one) for one in text.split("|"))
