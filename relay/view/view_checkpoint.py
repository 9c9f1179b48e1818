"""Where the making of a view is, between two transactions."""

from typing import NamedTuple

from protocol.binlog.layout import FIRST_EVENT


class ViewCheckpoint(NamedTuple):
    """source, view: offsets in the file of the source and in the view's of the same name. next_gno, sequence: of the next
    transaction, the latter as `ViewCopy.clock` says it. rules: what the rules know (`GroupRules.state`). The head of the file is
    not made yet where `source` is 4.
    """

    source: int
    view: int
    next_gno: int
    sequence: int
    rules: bytes

    @classmethod
    def of_file(cls, next_gno: int, rules: bytes) -> "ViewCheckpoint":
        """A file's beginning."""
        return cls(FIRST_EVENT, FIRST_EVENT, next_gno, 1, rules)
