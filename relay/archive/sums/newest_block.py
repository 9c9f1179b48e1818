"""The expected last block of the file that grows, from the thread that writes it to all its readers."""

from relay.archive.sums.block_sum import BlockSum


class NewestBlock:
    """The block in which the file's last whole transaction ends, up to there. It is replaced in one step; any thread may read it.

    Blocks before it never change any more. What the writer put after it may be cut off again, and the record of this block in
    NAME.sum changes with each transaction: neither is for readers.
    """

    def __init__(self) -> None:
        self._newest: tuple[str, int, BlockSum] | None = None

    def put(self, name: str, number: int, block: BlockSum) -> None:
        """Note that block `number` of the file has these bytes up to the end of its last whole transaction, and they are written."""
        self._newest = name, number, block

    def forget(self) -> None:
        """Forget it: no file grows, and the records cover all blocks."""
        self._newest = None

    def of(self, name: str) -> tuple[int, BlockSum] | None:
        """Return number and sum of the newest block, if this file is the one that grows."""
        newest = self._newest
        return None if newest is None or newest[0] != name else (newest[1], newest[2])
