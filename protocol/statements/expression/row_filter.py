"""Which rows of a SHOW statement are wanted, as a value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from protocol.resultset import Value
from protocol.statements.expression.like import matches_like
from protocol.statements.expression.regexp import Regexp


@dataclass(frozen=True, slots=True)
class Condition:
    """`column`: its index. `texts`: one pattern, or the values, in lower case, of which it is one in any case."""

    column: int
    kind: Literal["like", "regexp", "among"]
    texts: tuple[str, ...]
    is_negated: bool = False

    def holds(self, value: Value) -> bool:
        """Whether this value of its column fulfils it; NULL fulfils nothing."""
        if value is None:
            return False
        text = str(value)
        if self.kind == "regexp":
            found = Regexp.of(self.texts[0]).is_in(text)
        else:
            found = matches_like(text, self.texts[0]) if self.kind == "like" else text.lower() in self.texts
        return found is not self.is_negated


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Rows that fulfil all conditions of one of the alternatives."""

    alternatives: tuple[tuple[Condition, ...], ...] = ((),)

    def accepts(self, row: Sequence[Value]) -> bool:
        """Whether this row is shown."""
        return any(
            all(condition.holds(row[condition.column]) for condition in conditions) for conditions in self.alternatives
        )

    def may_accept(self, column: int, value: Value) -> bool:
        """Whether a row with this value there may be shown, whatever its others are."""
        return any(
            all(condition.holds(value) for condition in conditions if condition.column == column)
            for conditions in self.alternatives
        )
