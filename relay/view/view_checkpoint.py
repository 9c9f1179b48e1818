"""Where the making of a view is, between two transactions."""

from typing import NamedTuple

from protocol.binlog.layout import FIRST_EVENT
from protocol.kernel.codes import VIEW_GTIDS_NAMED, VIEW_UUID_USED
from relay.view.rules.settings import FIRST_GNO, ViewStart


class ViewCheckpoint(NamedTuple):
    """source, view: offsets in the file of the source and in the view's of the same name. next_gno, sequence: of the next
    transaction, the latter as `ViewCopy.clock` says it. rules: what the rules know (`GroupRules.state`). The head of the file is
    not made yet where `view` is 4.
    """

    source: int
    view: int
    next_gno: int
    sequence: int
    rules: bytes

    @classmethod
    def of_file(cls, next_gno: int, rules: bytes, source: int = FIRST_EVENT) -> "ViewCheckpoint":
        """A file's beginning. source: of the first transaction that the view has of it; 4: it has all."""
        return cls(source, FIRST_EVENT, next_gno, 1, rules)

    @classmethod
    def of_view(cls, start: ViewStart | None) -> "ViewCheckpoint":
        """A view's beginning; None: with the archive. Nothing is known of tables."""
        if start is None:
            return cls.of_file(FIRST_GNO, b"")
        return cls.of_file(start.next_gno, b"", start.position.offset)

    def next_file(self) -> "ViewCheckpoint":
        """Where this is the end of a file, the beginning of the next. Whether the source has GTIDs stays known, also of the view's
        uuid: a server that was started without GTIDs names none in its next files."""
        kept = self.sequence & (VIEW_UUID_USED | VIEW_GTIDS_NAMED)
        return self.of_file(self.next_gno, self.rules)._replace(sequence=1 | kept)

    @property
    def place(self) -> tuple[int, int]:
        """What places of one file are ordered by. At a view's start the head and the first transaction have the same `source`."""
        return self.source, self.view
