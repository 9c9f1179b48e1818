"""The packets of one replica's stream: stored events, which the kernel frames, and events that are generated here."""

from typing import Final

from protocol.binlog.event_type import EventType
from protocol.framing import frame_payload, packet_count
from protocol.kernel.frame import Framer, required_size
from protocol.semisync import PREFIX as SEMI_SYNC_PREFIX
from relay.archive.read.file_reads import STEP_BYTES

OUTPUT_BYTES: Final = required_size(STEP_BYTES, len(SEMI_SYNC_PREFIX))
_STATUS: Final = b"\0"
_NO_TYPE: Final = -1
# The headers of an event that may take a second packet.
_PACKET_HEADERS: Final = 8


class EventPackets:
    """The numbers and prefixes of one stream's packets, whatever creates the packet.

    mode: of the framer. asks: acknowledgements are requested, semi-sync. annotations: Annotate_rows are sent.
    """

    def __init__(self, mode: int, *, asks: bool, annotations: bool) -> None:
        self._prefix = SEMI_SYNC_PREFIX if asks else _STATUS
        left_out = _NO_TYPE if annotations else EventType.ANNOTATE_ROWS
        self.framer = Framer(mode, self._prefix, asks, left_out)

    def framed(self, event: bytes) -> bytes:
        """Return the packets of an event that is generated here, between stored events."""
        payload = self._prefix + event
        framed = frame_payload(payload, self.framer.sequence)
        self.framer.sequence = (self.framer.sequence + packet_count(len(payload))) & 0xFF
        return framed

    def room_for(self, events: list[bytes]) -> int:
        """Return the most bytes that the packets of these events take."""
        return sum(len(self._prefix) + len(event) + _PACKET_HEADERS for event in events)

    def room_for_stored(self, size_bytes: int) -> int:
        """Return the most bytes that the packets of so many stored bytes take."""
        return int(required_size(size_bytes, len(self._prefix)))
