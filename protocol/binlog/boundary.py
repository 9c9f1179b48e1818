"""Boundary types of WL#4162 and the parser that checks their order.

This is the readable form. The compiled kernel contains the same table; a test compares the two. docs/BOUNDARIES.md has the rules,
with the streams of servers and the reasons.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from protocol.kernel import codes


class BoundaryType(IntEnum):
    """The place of an event in its transaction. Source: WL#4162 (5.7 design), D2."""

    NOT_DEFINED = codes.NOT_DEFINED
    IGNORE = codes.IGNORE
    SELF_CONTAINED = codes.SELF_CONTAINED
    START = codes.START
    INSIDE = codes.INSIDE
    END = codes.END

    @property
    def label(self) -> str:
        """The name that the violation text uses."""
        return BOUNDARY_LABELS[self]


BOUNDARY_LABELS: Final[dict[int, str]] = {
    BoundaryType.NOT_DEFINED: "Not Defined",
    BoundaryType.IGNORE: "Ignore Boundary",
    BoundaryType.SELF_CONTAINED: "Self Contained",
    BoundaryType.START: "Start Transaction",
    BoundaryType.INSIDE: "Inside Transaction",
    BoundaryType.END: "End Transaction",
}

TBM_SHIFT: Final = codes.BOUNDARY_SHIFT
TBM_MASK: Final = codes.BOUNDARY_MASK

_B = BoundaryType
_COLUMNS: Final = (_B.NOT_DEFINED, _B.SELF_CONTAINED, _B.START, _B.INSIDE, _B.END)

# fmt: off
# WL#4162, "Transaction Boundary Parser Transition Table": row = type of the event, column = state of the parser.
_TABLE: Final = {
    #                   Not Defined  Self Contained  Start   Inside  End
    _B.SELF_CONTAINED: (True,        True,           False,  False,  True),
    _B.START:          (True,        True,           False,  False,  True),
    _B.INSIDE:         (False,       False,          True,   True,   False),
    _B.END:            (False,       False,          True,   True,   False),
}
# fmt: on
TRANSITIONS: Final[dict[tuple[BoundaryType, BoundaryType], bool]] = {
    (state, event): allowed for event, row in _TABLE.items() for state, allowed in zip(_COLUMNS, row, strict=True)
}


@dataclass(frozen=True, slots=True)
class Violation:
    """An event whose boundary cannot follow the parser's state. `str()` returns WL#4162's text."""

    from_type: BoundaryType
    to_type: BoundaryType

    def __str__(self) -> str:
        return f"Unable to change boundary parser from {self.from_type.label} to {self.to_type.label}."


class BoundaryParser:
    """The transaction boundary parser of WL#4162.

    After an error it is reset to Not Defined. An event that can open from there (Self Contained, Start) does so at once, so the group
    after a cut one is whole; other events are wrong without a report until such an event comes (one message per run of bad events).
    """

    def __init__(self) -> None:
        self.state = BoundaryType.NOT_DEFINED
        self.recovering = False

    @property
    def in_group(self) -> bool:
        """True if a transaction is open."""
        return self.state in (BoundaryType.START, BoundaryType.INSIDE)

    def feed(self, boundary: BoundaryType) -> Violation | None:
        """Take the next event's boundary; return the violation to report, if there is one."""
        if boundary in (BoundaryType.IGNORE, BoundaryType.NOT_DEFINED):
            return None
        if TRANSITIONS[self.state, boundary]:
            self.state = boundary
            self.recovering = False
            return None
        violation = None if self.recovering else Violation(self.state, boundary)
        if TRANSITIONS[BoundaryType.NOT_DEFINED, boundary]:
            self.state = boundary
            self.recovering = False
        else:
            self.state = BoundaryType.NOT_DEFINED
            self.recovering = True
        return violation
