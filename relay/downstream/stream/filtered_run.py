"""One run of a file's bytes, of which a walk says what is sent."""

from collections.abc import Callable

from protocol.position import Position
from relay.archive.storage.archived_file import ArchivedFile
from relay.downstream.gtid_filter.group_filter import GtidWalk
from relay.downstream.stream.event_packets import EventPackets


class WalkedRun:
    """`size` bytes of `file` in source[0:size], from `base` on in the file.

    offset: in the file, up to where it was sent or passed over. made: bytes of packets in the output. Both are true also
    where `frame` raised: what was made by then is part of the stream.
    """

    def __init__(
        self,
        walk: GtidWalk,
        packets: EventPackets,
        file: ArchivedFile,
        server_id: int,
        source: bytearray,
        base: int,
        size: int,
        asked: Callable[[int, int], None],
    ) -> None:
        """server_id: of the events that are made here. asked(base, count): so many acknowledgements were asked for."""
        self._walk = walk
        self._packets = packets
        self._file = file
        self._server_id = server_id
        self._source = source
        self._base = base
        self._size = size
        self._asked = asked
        self.offset = base
        self.made = 0

    def frame(self, output: bytearray, *, until_walk_is_done: bool) -> None:
        """Puts the packets of what is sent into `output`; the rest of the run is left where more of the file is wanted.

        until_walk_is_done: what is behind the last that the walk passes over is left too. Raises: ValueError for bytes that
        are no event, or not where NAME.gtx has one.
        """
        with memoryview(output) as view:
            while self.offset < self._base + self._size:
                made = self._frame_range(view[self.made :])
                if made < 0:
                    return
                self.made += made
                if until_walk_is_done and self._walk.is_done:
                    return

    def _frame_range(self, output: memoryview) -> int:
        """Goes on by one range; returns the bytes written, -1: more input or more room is needed."""
        walk, packets, base, size = self._walk, self._packets, self._base, self._size
        framer, at = packets.framer, self.offset - base
        if walk.send_until <= self.offset:
            end = self._look(at)
            if end == at:
                return -1
            if not walk.sending:
                self.offset = base + end
                return 0
        stop = min(size, walk.send_until - base)
        owed: list[bytes] = []
        if walk.owes:
            place = Position(self._file.name, self.offset)
            owed = walk.owed(place, self._server_id, with_checksum=bool(self._file.checksum))
        room = len(output) - packets.room_for(owed)
        while stop > at and packets.room_for_stored(stop - at) > room:
            stop = at + (stop - at) // 2
        if stop == at:
            return -1
        made = 0
        for event in owed:
            packet = packets.framed(event)
            output[made : made + len(packet)] = packet
            made += len(packet)
        walk.paid()
        asked = framer.asked_events
        made += framer.frame(self._source, at, stop, output[made:])
        self.offset = base + framer.consumed
        if framer.asked_events != asked:
            self._asked(base, framer.asked_events - asked)
        if framer.consumed > at or made:
            return made
        if stop < size and base + stop == walk.send_until and self._look(stop) > stop:
            # The range ended inside an event, with the bytes that there were, and the framer wants more of the event at once.
            return self._frame_range(output)
        return -1

    def _look(self, at: int) -> int:
        """`next_range` of the walk, and a check where it begins behind what it has not seen."""
        walk, place = self._walk, self._base + at
        if place == walk.unseen_until and (self.offset < place or not self._packets.framer.between_events):
            raise ValueError(
                f"an event goes on at {place}, where NAME.gtx has a transaction begin; stop the relay and run "
                "'binlog-relay archive rebuild'"
            )
        return walk.next_range(self._source, at, self._size, self._base)
