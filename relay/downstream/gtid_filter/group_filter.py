"""Which groups of events of a file a replica by GTID is not sent, and what it gets instead: what both flavours share."""

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import PositionRefused
from protocol.gtid.dump_decision import MysqlHoldings
from protocol.kernel.gtid_filter import GtidSkip
from protocol.position import Position
from relay.archive.read.file_snapshot import FileSnapshot
from relay.downstream.gtid_filter.seek import Seek


class GroupFilter:
    """Goes over a file's bytes ahead of the framer, range by range. Offsets are the file's.

    send_until: bytes before it are to be sent. unseen_until: end of the last piece that was not looked at, as NAME.gtx says
    where it ends; a transaction begins there, or the file ends.
    """

    def __init__(self, skip: GtidSkip) -> None:
        self.skip = skip
        self.file = ""
        self.send_until = 0
        self.unseen_until = 0
        self.seek: Seek | None = None
        """What of the file need not be read, until that place is reached; None: nothing, or nothing more."""
        self.refused: PositionRefused | None = None
        """Why the stream ends at the place that was reached."""
        self.finished = False
        """The stream ends at the place that was reached, because the replica wanted no more."""

    def begin_file(self, name: str, *, checksum: bool) -> None:
        """The next bytes are the first event of another file."""
        self.file = name
        self.skip.begin()
        self.send_until = FIRST_EVENT
        self.unseen_until = 0

    def begin_behind(self, offset: int) -> None:
        """The next bytes are an event at `offset`, outside of any transaction."""
        self.skip.begin()
        self.send_until = offset

    def take_seek(self, seek: Seek) -> None:
        """The next bytes are those behind it."""
        self.seek = None
        self.begin_behind(seek.target)

    def find_seek(self, snapshot: FileSnapshot) -> Seek | None:
        """What need not be read of a file that begins now; None: nothing, or it is not known. Also notes what of it need not be
        looked at.

        Blocking, for a thread; meanwhile the stream stands still. Raises: OSError; Malformed for a file without a head.
        """
        return None

    def next_range(self, source: bytearray, start: int, stop: int, base: int) -> int:
        """End of the range at source[start], `base` being the offset of source[0]; `sending` says what it is.

        `start` itself: more bytes are wanted, or the stream is `refused` or `finished`. Raises: ValueError for what is no
        event.
        """
        end = self.skip.next_range(source, start, stop)
        if self.skip.sending:
            self.send_until = base + end
        return end

    @property
    def sending(self) -> bool:
        """Whether the newest range is sent."""
        return self.skip.sending

    @property
    def has_pending(self) -> bool:
        """Whether there may be `pending_events`."""
        return False

    def sends_all(self, stop: int) -> bool:
        """Whether what is sent next goes on up to `stop` at least, with nothing pending before it: nothing need be looked at."""
        return self.send_until >= stop and not self.has_pending

    @property
    def counts_again(self) -> bool:
        """Whether it waits for transactions that were not there yet when it was made."""
        return False

    def count_again(self, holdings: MysqlHoldings, number: int) -> None:
        """File `number` begins: how many are passed over from there on, if all of them are known by now. For a thread."""

    @property
    def is_done(self) -> bool:
        """Whether all from here on is sent."""
        return False

    def pending_events(self, position: Position, server_id: int, *, with_checksum: bool) -> list[bytes]:
        """Events that the replica gets before anything that stands behind `position`."""
        return []

    def pending_sent(self) -> None:
        """It got them."""
