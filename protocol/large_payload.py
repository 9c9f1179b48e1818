"""A payload of megabytes as it comes, in memory of its own."""

import mmap


class LargePayload:
    """Takes a payload part by part into one stretch of memory, which is the system's again when nobody refers to `whole`.

    capacity_bytes: more will not come. What has not come yet takes no memory, and what has come is never copied again.
    """

    # Pages of 2 MB would be filled faster, but a virtual machine may take 10 ms to be given one: too long for an event loop.

    __slots__ = ("_memory", "size")

    def __init__(self, capacity_bytes: int) -> None:
        self._memory = mmap.mmap(-1, capacity_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.size = 0
        """How much has come."""

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """The next part."""
        stop = self.size + len(data)
        self._memory[self.size : stop] = data
        self.size = stop

    def first(self) -> int:
        """The first byte."""
        return self._memory[0]

    def whole(self) -> memoryview:
        """All of it, to be read only, once nothing more comes."""
        return memoryview(self._memory).toreadonly()[: self.size]
