"""Which constructs give a number of which only the value counts: for a number, 2.50 and 2.5 are one; for a text they are two."""

from collections.abc import Sequence
from typing import Final

from protocol.sql.expressions.constructs import COMPARISONS, CONDITION, Operand, UsedConstruct
from protocol.sql.expressions.function_results import NUMBERS
from protocol.sql.survey.value_class import ValueClass

_KEEP: Final = frozenset((
    "+", "-", "*", "%", "MOD()", "unary -", "ABS()", "ROUND()", "TRUNCATE()", "FLOOR()", "CEIL()", "CEILING()", "SUM()", "MIN()",
    "MAX()", "COALESCE()", "IFNULL()", "NVL()", "NULLIF()", "IF()", "CASE", "GREATEST()", "LEAST()",
))  # fmt: skip
"""What gives one number for a number however it is written, and may pass on its digits. A quotient is none: it has four digits more
than what is divided.
"""
_AFTER_CONDITION: Final = ("IF()", "CASE")
_COMPARED: Final = COMPARISONS | {"CASE value"}
_TRUTHS: Final = frozenset((CONDITION, "AND", "OR", "XOR", "NOT", "!", "IS NULL", "IS NOT NULL", "IS TRUE", "IS FALSE"))
_STORES: Final = frozenset(
    f"store {kind}"
    for kind in (
        "TINYINT",
        "SMALLINT",
        "MEDIUMINT",
        "INT",
        "INTEGER",
        "BIGINT",
        "DECIMAL",
        "NUMERIC",
        "FLOAT",
        "DOUBLE",
        "REAL",
    )
)
_VALUES: Final = NUMBERS | {ValueClass.NULL}


class NumberForms:
    """The uses of numbers in one statement."""

    def __init__(self) -> None:
        self._as_number: set[int] = set()
        self._as_text: set[int] = set()
        self._kept: list[tuple[int, frozenset[int]]] = []
        """Constructs that pass on the digits of others, in their order: each comes after those."""

    def note(self, name: str, operands: Sequence[Operand], made: Operand, number: int) -> Operand:
        """Note what the construct with this number reads; return its result with the constructs that its digits come from."""
        read = frozenset[int]().union(*(one.made_by for one in operands))
        are_numbers = all(one.classes <= _VALUES for one in operands[name in _AFTER_CONDITION :])
        keeps = name in _KEEP and are_numbers
        if keeps and read:
            self._kept.append((number, read))
        elif name in _STORES or name in _TRUTHS or (name in _COMPARED and are_numbers):
            self._as_number |= read
        elif not keeps:
            self._as_text |= read
        return made._replace(made_by=frozenset((number,)) if keeps or made.classes <= _VALUES else frozenset())

    def note_text(self, given: Operand) -> None:
        """Note that a value may be used as a text."""
        self._as_text |= given.made_by

    def applied(self, used: Sequence[UsedConstruct]) -> list[UsedConstruct]:
        """Return the constructs, with those marked of which only the number counts."""
        for number, read in reversed(self._kept):
            if number in self._as_text or number not in self._as_number:
                self._as_text |= read
            else:
                self._as_number |= read
        marked = self._as_number - self._as_text
        return [one._replace(only_number=True) if at in marked else one for at, one in enumerate(used)]
