"""The cursor of the event decoders: the protocol's, with names for the sizes that events use."""

from protocol.wire import Cursor


class Fields(Cursor):
    """Reads little-endian fields one after the other; every read raises Truncated where it would pass the end."""

    def u8(self) -> int:
        """Read an unsigned number of 1 byte."""
        return self.take(1)[0]

    def u16(self) -> int:
        """Read an unsigned number of 2 bytes."""
        return int.from_bytes(self.take(2), "little")

    def u32(self) -> int:
        """Read an unsigned number of 4 bytes."""
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        """Read an unsigned number of 8 bytes."""
        return int.from_bytes(self.take(8), "little")

    def i64(self) -> int:
        """Read a signed number of 8 bytes."""
        return int.from_bytes(self.take(8), "little", signed=True)
