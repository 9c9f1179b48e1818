"""The groups of events of a file that a GTID replica is not sent, and what it gets instead: the common part of both flavours."""

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import PositionRefused
from protocol.gtid.dump_decision import MysqlHoldings
from protocol.kernel.gtid_filter import GtidSkip
from protocol.position import Position
from relay.archive.read.file_snapshot import FileSnapshot
from relay.downstream.gtid_filter.seek import Seek


class GroupFilter:
    """Goes over a file's bytes ahead of the framer, range by range. Offsets are the file's.

    send_until: bytes before it are sent. unseen_until: the end of the last piece that was not looked at, as NAME.gtx records it; a
    transaction begins there, or the file ends.
    """

    def __init__(self, skip: GtidSkip) -> None:
        self.skip = skip
        self.file = ""
        self.send_until = 0
        self.unseen_until = 0
        self.seek: Seek | None = None
        """The part of the file that need not be read, until its place is reached; None: nothing, or nothing more."""
        self.refused: PositionRefused | None = None
        """The error with which the stream ends at the place that was reached."""
        self.finished = False
        """True if the stream ends at the place that was reached because the replica wanted no more."""

    def begin_file(self, name: str, *, checksum: bool) -> None:
        """Begin another file: the next bytes are its first event."""
        self.file = name
        self.skip.begin()
        self.send_until = FIRST_EVENT
        self.unseen_until = 0

    def begin_behind(self, offset: int) -> None:
        """Begin in the middle of a file: the next bytes are an event at `offset`, outside of any transaction."""
        self.skip.begin()
        self.send_until = offset

    def take_seek(self, seek: Seek) -> None:
        """Continue after the seek: the next bytes are those at its target."""
        self.seek = None
        self.begin_behind(seek.target)

    def find_seek(self, snapshot: FileSnapshot) -> Seek | None:
        """Return the part of a file that need not be read as it begins; None: nothing, or unknown. Also note which of it need not be
        looked at.

        Blocking, for a thread; meanwhile the stream waits. Raises: OSError; Malformed for a file without a head.
        """
        return None

    def next_range(self, source: bytearray, start: int, stop: int, base: int) -> int:
        """Return the end of the range at source[start], `base` being the offset of source[0]; `sending` says what becomes of it.

        `start` itself: more bytes are wanted, or the stream is `refused` or `finished`. Raises: ValueError for bytes that are no
        event.
        """
        end = self.skip.next_range(source, start, stop)
        if self.skip.sending:
            self.send_until = base + end
        return end

    @property
    def sending(self) -> bool:
        """True if the newest range is sent."""
        return self.skip.sending

    @property
    def has_pending(self) -> bool:
        """True if there may be `pending_events`."""
        return False

    def sends_all(self, stop: int) -> bool:
        """Return whether everything up to `stop` is sent, with nothing pending before it: nothing need be looked at."""
        return self.send_until >= stop and not self.has_pending

    @property
    def counts_again(self) -> bool:
        """True if it waits for transactions that had not arrived when it was created."""
        return False

    def count_again(self, holdings: MysqlHoldings, number: int) -> None:
        """Begin file `number`: count the transactions that are passed over from there on, if all of them are known by now. For a
        thread.
        """

    @property
    def is_done(self) -> bool:
        """True if everything from here on is sent."""
        return False

    def pending_events(self, position: Position, server_id: int, *, with_checksum: bool) -> list[bytes]:
        """Return the events that the replica gets before anything that is stored after `position`."""
        return []

    def pending_sent(self) -> None:
        """Note that the replica got them."""
