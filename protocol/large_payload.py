"""A payload of megabytes as it comes, in memory that costs an event loop little."""

import contextlib
import mmap
from typing import Final

_HUGE_PAGES: Final = getattr(mmap, "MADV_HUGEPAGE", None)


class LargePayload:
    """Takes a payload part by part into memory of its own, which is the system's again when nobody refers to `whole`.

    capacity_bytes: more will not come. What has not come yet takes no memory. Pages of 2 MB are asked for: to be given 16 MB in
    those of 4 KiB takes four times as long as to copy them.
    """

    __slots__ = ("_memory", "size")

    def __init__(self, capacity_bytes: int) -> None:
        self._memory = mmap.mmap(-1, capacity_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if _HUGE_PAGES is not None:
            with contextlib.suppress(OSError):
                self._memory.madvise(_HUGE_PAGES)
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
