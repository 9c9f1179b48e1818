"""The place between two transactions up to which a view is built."""

from typing import NamedTuple

from protocol.binlog.layout import FIRST_EVENT
from protocol.kernel.codes import VIEW_GTIDS_NAMED, VIEW_UUID_USED
from relay.view.rules.settings import FIRST_GNO, ViewStart


class ViewCheckpoint(NamedTuple):
    """A place: `source` and `view` are offsets in the source's file and in the view's of the same name. `next_gno` and `sequence`
    belong to the next transaction, the latter as in `ViewCopy.clock`. `rules` is the rules' state (`GroupRules.state`). The head of the
    file is not built yet where `view` is 4.
    """

    source: int
    view: int
    next_gno: int
    sequence: int
    rules: bytes

    @classmethod
    def of_file(cls, next_gno: int, rules: bytes, source: int = FIRST_EVENT) -> "ViewCheckpoint":
        """Return a file's beginning. `source` is the offset of the first transaction that the view has of it; 4: it has all."""
        return cls(source, FIRST_EVENT, next_gno, 1, rules)

    @classmethod
    def of_view(cls, start: ViewStart | None) -> "ViewCheckpoint":
        """Return a view's beginning; None: it begins with the archive. Nothing is known of tables."""
        if start is None:
            return cls.of_file(FIRST_GNO, b"")
        return cls.of_file(start.next_gno, b"", start.position.offset)

    def next_file(self) -> "ViewCheckpoint":
        """Return the beginning of the next file where this is the end of one. Whether the source has GTIDs stays known, also for the
        view's uuid: a server that was started without GTIDs lists none in its next files."""
        kept = self.sequence & (VIEW_UUID_USED | VIEW_GTIDS_NAMED)
        return self.of_file(self.next_gno, self.rules)._replace(sequence=1 | kept)

    @property
    def place(self) -> tuple[int, int]:
        """The sort key of places in one file. At a view's start the head and the first transaction have the same `source`."""
        return self.source, self.view
