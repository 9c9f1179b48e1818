"""What one replica that asked by GTID is not sent, and what it is told instead: the part that both flavours share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from protocol.errors import PositionRefused
from protocol.gtid.mariadb import DomainGtid
from protocol.kernel.gtid_filter import GtidSkip
from protocol.position import Position
from relay.archive.read.file_snapshot import FileSnapshot

FIRST_OFFSET: Final = 4
# A smaller file is walked over in less time than its index is read.
WORTH_A_JUMP_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Jump:
    """In a file everything in [place, target) is passed over, unread. Both are outside of any transaction.

    transactions: how many they are, or, with `all_counted`, how many are in the whole file, nothing of which is sent. groups:
    of MariaDB's, the last one of each server, in their order.
    """

    place: int
    target: int
    transactions: int
    groups: Sequence[DomainGtid] = ()
    all_counted: bool = False


class GtidWalk:
    """Goes over a file's bytes ahead of the framer. Offsets are the file's.

    send_until: bytes before it are to be sent. unseen_until: end of the last piece that was not looked at, which NAME.gtx told;
    a transaction begins there, or the file ends.
    """

    def __init__(self, skip: GtidSkip) -> None:
        self.skip = skip
        self.file = ""
        self.send_until = 0
        self.unseen_until = 0
        self.refused: PositionRefused | None = None
        """Why the stream ends at the place that was reached."""
        self.finished = False
        """The stream ends at the place that was reached, because the replica wanted no more."""

    def begin_file(self, name: str, *, checksum: bool) -> None:
        """The next bytes are the first event of another file."""
        self.file = name
        self.skip.begin()
        self.send_until = FIRST_OFFSET
        self.unseen_until = 0

    def begin_behind(self, offset: int) -> None:
        """The next bytes are an event at `offset`, outside of any transaction."""
        self.skip.begin()
        self.send_until = offset

    def jumped(self, jump: Jump) -> None:
        """The next bytes are those behind the jump."""
        self.begin_behind(jump.target)

    def find_jump(self, extent: FileSnapshot) -> Jump | None:
        """What need not be read of a file that begins now; None: nothing, or it is not known. Also notes what of it need not be
        looked at.

        Blocking, for a thread; meanwhile the walk stands still. Raises: OSError; Malformed for a file without a head.
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
        """Whether the range told last is sent."""
        return self.skip.sending

    @property
    def owes(self) -> bool:
        """Whether `owed` may have anything to say."""
        return False

    def sends_all(self, stop: int) -> bool:
        """Whether what is sent next goes on up to `stop` at least, with nothing owed before it: nothing need be looked at."""
        return self.send_until >= stop and not self.owes

    @property
    def counts_again(self) -> bool:
        """Whether it waits for transactions that were not there yet when it was made."""
        return False

    @property
    def is_done(self) -> bool:
        """Whether all from here on is sent."""
        return False

    def owed(self, position: Position, server_id: int, *, with_checksum: bool) -> list[bytes]:
        """Events that the replica gets before anything that stands behind `position`."""
        return []

    def paid(self) -> None:
        """It got them."""
