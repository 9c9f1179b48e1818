"""One run of a file's bytes, from which a filter selects what is sent."""

from collections.abc import Callable

from relay.downstream.gtid_filter.gtid_filter import GtidFilter
from relay.downstream.stream.event_packets import EventPackets


class FilteredRun:
    """`size` bytes of a file in source[0:size], from `base` on in the file.

    offset: the place in the file up to which it was sent or passed over. made: bytes of packets in the output. Both are true also if
    `frame` raised: the packets that exist by then are part of the stream.
    """

    def __init__(
        self,
        filter: GtidFilter,
        packets: EventPackets,
        source: bytearray,
        base: int,
        size: int,
        requested: Callable[[int, int], None],
    ) -> None:
        """requested(base, count): called when so many acknowledgements were requested."""
        self._filter = filter
        self._groups = filter.groups
        self._packets = packets
        self._source = source
        self._base = base
        self._size = size
        self._requested = requested
        self.offset = base
        self.made = 0

    def frame(self, output: bytearray) -> None:
        """Put the packets of what is sent into `output`; the rest of the run is left if more of the file is needed.

        What comes after the last group that the filter passes over is left too. Raises: ValueError for bytes that are no event, or
        not at the place that NAME.gtx has.
        """
        with memoryview(output) as view:
            while self.offset < self._base + self._size:
                made = self._frame_range(view[self.made :])
                if made < 0:
                    return
                self.made += made
                if self._filter.is_done:
                    return

    def _frame_range(self, output: memoryview) -> int:
        """Advance by one range; return the bytes written, -1: more input or more room is needed."""
        groups, packets, base, size = self._groups, self._packets, self._base, self._size
        framer, at = packets.framer, self.offset - base
        if groups.send_until <= self.offset:
            end = self._look(at)
            if end == at:
                return -1
            if not groups.sending:
                self.offset = base + end
                return 0
        stop = min(size, groups.send_until - base)
        pending = self._filter.pending_events(self.offset) if groups.has_pending else []
        room = len(output) - packets.room_for(pending)
        while stop > at and packets.room_for_stored(stop - at) > room:
            stop = at + (stop - at) // 2
        if stop == at:
            return -1
        made = 0
        for event in pending:
            packet = packets.framed(event)
            output[made : made + len(packet)] = packet
            made += len(packet)
        groups.pending_sent()
        requested = framer.asked_events
        made += framer.frame(self._source, at, stop, output[made:])
        self.offset = base + framer.consumed
        if framer.asked_events != requested:
            self._requested(base, framer.asked_events - requested)
        if framer.consumed > at or made:
            return made
        if stop < size and base + stop == groups.send_until and self._look(stop) > stop:
            # The range ended inside an event, with the available bytes, and the framer needs more of the event at once.
            return self._frame_range(output)
        return -1

    def _look(self, at: int) -> int:
        """Return `next_range` of the filter of groups, after a check if it begins after a piece that it has not seen."""
        groups, place = self._groups, self._base + at
        if place == groups.unseen_until and (self.offset < place or not self._packets.framer.between_events):
            raise ValueError(
                f"an event goes on at {place}, where NAME.gtx has a transaction begin; stop the relay and run "
                "'binlog-relay archive rebuild'"
            )
        return groups.next_range(self._source, at, self._size, self._base)
