"""The filter for rows of a SHOW statement: a value, and the search by it, whose work is counted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from protocol.resultset import Value
from protocol.statements.expression.like import like_steps, matches_like
from protocol.statements.expression.regexp import Regexp, RegexpSearch
from protocol.statements.session.effort import Effort


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the column with index `column`.

    `texts` is one pattern, or the values in lower case, one of which must be equal in any case.
    """

    column: int
    kind: Literal["like", "regexp", "among"]
    texts: tuple[str, ...]
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Rows that fulfil all conditions of one of the alternatives."""

    alternatives: tuple[tuple[Condition, ...], ...] = ((),)

    def search(self, effort: Effort) -> "RowSearch":
        """Return a search for these rows, which counts its work in the statement's `effort`."""
        return RowSearch(self, effort)


class RowSearch:
    """Chooses rows, one after the other. It raises the errors of `Effort` if they are too much work."""

    def __init__(self, wanted: RowFilter, effort: Effort) -> None:
        self._alternatives = wanted.alternatives
        self._effort = effort
        self._regexps: dict[str, RegexpSearch] = {}

    def accepts(self, row: Sequence[Value]) -> bool:
        """Return whether this row is shown."""
        return any(
            all(self._holds(condition, row[condition.column]) for condition in conditions)
            for conditions in self._alternatives
        )

    def may_accept(self, column: int, value: Value) -> bool:
        """Return whether a row with this value in that column may be shown, for any values in the others."""
        return any(
            all(self._holds(condition, value) for condition in conditions if condition.column == column)
            for conditions in self._alternatives
        )

    def _holds(self, condition: Condition, value: Value) -> bool:
        """Return whether this value of its column fulfils the condition; NULL fulfils none."""
        if value is None:
            return False
        text, pattern = str(value), condition.texts[0]
        if condition.kind == "regexp":
            found = self._regexp(pattern).is_in(text)
        elif condition.kind == "like":
            self._effort.spend(like_steps(text, pattern))
            found = matches_like(text, pattern)
        else:
            self._effort.spend(5 + len(condition.texts) // 2)
            found = text.lower() in condition.texts
        return found is not condition.is_negated

    def _regexp(self, pattern: str) -> RegexpSearch:
        if pattern not in self._regexps:
            self._regexps[pattern] = RegexpSearch(Regexp.of(pattern), self._effort.spend)
        return self._regexps[pattern]
