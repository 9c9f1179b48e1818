"""The GTIDs of one binlog: the transactions before it, those in it, and about where each of them is.

    before   Previous_gtids or Gtid_list at its head; None where it has none (MySQL 5.6 without GTIDs, and older)
    inside   a set (MySQL) or the last group of each server (MariaDB)
    blocks   the file in pieces of 64 KiB and more, with the transactions of each: to find one by its GTID, look for its
             block, then feed that piece of the file to a collector with `gap_bytes` 0

The archive adds no knowledge of its own: all of it can be derived from the file's bytes again.
"""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from protocol.errors import Malformed
from protocol.gtid.codec import decode_gtid_set
from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.gtid.mariadb import DomainGtid, GtidList, decode_gtid_list
from protocol.gtid.mysql_gtid import Tsid
from protocol.kernel.codes import GTID_HEAD, HEADER_SIZE, PREVIOUS_GTIDS_EVENT, SCAN_ROW
from protocol.kernel.gtid_scan import GtidScanner

BLOCK_BYTES: Final = 65536
_MASK: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Run:
    """Transactions with the numbers `first` to `last` of one source, without a gap, in the order of the file.

    `key` is `Tsid.key`, or for MariaDB domain u32, server u32, little endian. `serial` counts the transactions of the file that
    ended up to and including the last of these, so of two runs the one with the greater serial ends later.
    """

    key: bytes
    first: int
    last: int
    serial: int

    def has(self, key: bytes, number: int) -> bool:
        """Return whether this transaction is in the run."""
        return self.key == key and self.first <= number <= self.last


@dataclass(frozen=True, slots=True)
class IndexBlock:
    """The piece [start, stop) of a file; both are starts of transactions, or the end. `timestamp` (s) is that of its first event.

    `anonymous` counts the transactions in it without a GTID.
    """

    start: int
    stop: int
    timestamp: int
    anonymous: int
    runs: tuple[Run, ...]

    def has(self, key: bytes, number: int) -> bool:
        """Return whether this transaction starts in the block."""
        return any(run.has(key, number) for run in self.runs)


class FileGtidCollector:
    """Collects the GTIDs of a file from its bytes, which come in pieces of any size from the first event on.

    A transaction counts once its last event is complete. `flavour` is "mysql" or "mariadb": a GTID event of the other one is
    malformed, so `before` and `inside` are of that kind. Not thread-safe; `take` releases the GIL for most of its time.
    """

    def __init__(self, flavour: str, *, checksum: bool, gap_bytes: int = BLOCK_BYTES) -> None:
        self.flavour = flavour
        self._checksum_bytes = 4 if checksum else 0
        self._scanner = GtidScanner(gap_bytes, flavour or "mariadb")
        self._tail = b""
        self._keys: list[bytes] = []
        self._runs: list[Run] = []
        self._ready: list[IndexBlock] = []
        self._numbers = GtidSetBuilder()
        self._newest: dict[bytes, tuple[int, int]] = {}
        self._before: GtidSet | GtidList | None = None
        self._captured: bytearray | None = None
        self._serial_before = self._anonymous_before = 0

    @property
    def position(self) -> int:
        """The offset in the file up to which events were read."""
        return self._scanner.position

    @property
    def between_events(self) -> bool:
        """True if the bytes read so far end where an event does."""
        return not self._tail and not self._scanner.skip_left and not self._scanner.capture_left

    @property
    def transactions(self) -> int:
        """The number of transactions that ended."""
        return self._serial_before + self._scanner.transactions

    @property
    def anonymous(self) -> int:
        """The number of ended transactions without a GTID."""
        return self._anonymous_before + self._scanner.anonymous

    def go_on(self, before: GtidSet | GtidList | None, blocks: Iterable[IndexBlock]) -> None:
        """Continue after `blocks`, the file's first ones, without their bytes; `before` is the content of the file's head.

        This is for a collector that has read nothing yet. The next bytes belong at the last block's `stop`. Those of
        `transactions` after the last one with a GTID are not counted, which only their order needs.
        """
        self._before = before
        stop = self._scanner.position
        numbered = False
        for block in blocks:
            numbered |= bool(block.runs)
            for run in block.runs:
                self._count(run)
                self._serial_before = max(self._serial_before, run.serial)
            self._anonymous_before += block.anonymous
            stop = block.stop
        self._scanner.begin(stop)
        self._scanner.head_expected = False
        self._scanner.numbered = self.flavour == "mysql" and numbered

    def begin(self, position: int) -> None:
        """Expect the next bytes at `position`, outside of any transaction: a start in mid-file, or a file that was cut back.
        Ended transactions are kept.
        """
        self._tail = b""
        self._scanner.begin(position)

    def take(self, data: bytes | bytearray | memoryview) -> None:
        """Read the next bytes. Raises: Malformed for what cannot be an event, with its offset."""
        scanner = self._scanner
        used = 0
        if self._tail:
            # The head of an event that was cut is joined with the most bytes that it can need.
            head = self._tail + bytes(data[:GTID_HEAD])
            taken = scanner.feed(head, 0, len(head))
            if taken < len(self._tail):
                self._tail = head if len(data) <= GTID_HEAD else self._tail + bytes(data)
                self._settle()
                return
            used = taken - len(self._tail)
        used = scanner.feed(data, used, len(data)) if used < len(data) else used
        self._tail = bytes(data[used:])
        self._settle()

    def finish(self) -> None:
        """End the last block: the file is complete."""
        self._scanner.finish()
        self._settle()

    def take_blocks(self) -> list[IndexBlock]:
        """Return the blocks that ended since the last call."""
        ready, self._ready = self._ready, []
        return ready

    @property
    def head_complete(self) -> bool:
        """True if `before` cannot change any more: its event was read, or a transaction has begun."""
        scanner = self._scanner
        return (scanner.captured is not None and not scanner.capture_left) or scanner.in_group or self.transactions > 0

    @property
    def before(self) -> GtidSet | GtidList | None:
        """The transactions of all earlier files, from the head of the file. Raises: Malformed."""
        captured = self._scanner.captured
        if captured is not None and captured is not self._captured and not self._scanner.capture_left:
            stop = len(captured) - self._checksum_bytes
            body = bytes(captured[HEADER_SIZE:stop])
            if self._scanner.captured_type == PREVIOUS_GTIDS_EVENT:
                self._before = decode_gtid_set(body)
            else:
                self._before = decode_gtid_list(body)
            self._captured = captured
        return self._before

    def open_block(self) -> IndexBlock | None:
        """Return the block that has not ended yet, as far as it goes; None if nothing is in it."""
        rows = self._scanner.open_rows()
        if not rows:
            return None
        runs = [*self._runs, *(self._run(rows, at) for at in range(0, len(rows) - SCAN_ROW, SCAN_ROW))]
        start, _mark, anonymous, timestamp, stop = rows[-SCAN_ROW:]
        return IndexBlock(start, stop, timestamp, anonymous, _in_order(runs))

    def inside(self) -> GtidSet | GtidList:
        """Return the transactions that ended so far: a set, or for MariaDB the last group of each server."""
        rows = self._scanner.open_rows()
        for at in range(0, len(rows) - SCAN_ROW, SCAN_ROW):
            self._count(self._run(rows, at))
        if self.flavour == "mysql":
            return self._numbers.snapshot()
        newest = sorted(self._newest.items(), key=lambda item: item[1])
        return GtidList(_domain_gtid(key, number) for key, (_serial, number) in newest)

    def _settle(self) -> None:
        scanner = self._scanner
        if scanner.problem is not None:
            raise Malformed(f"{scanner.problem} at offset {scanner.position}")
        while len(self._keys) < scanner.source_count:
            self._keys.append(scanner.source_key(len(self._keys)))
        rows = scanner.take_rows()
        for at in range(0, len(rows), SCAN_ROW):
            self._take_row(rows, at)

    def _take_row(self, rows: "array[int]", at: int) -> None:
        if rows[at + 1] >= 0:
            run = self._run(rows, at)
            self._runs.append(run)
            self._count(run)
            return
        start, _mark, anonymous, timestamp, stop = rows[at : at + SCAN_ROW]
        self._ready.append(IndexBlock(start, stop, timestamp, anonymous, _in_order(self._runs)))
        self._runs.clear()

    def _run(self, rows: "array[int]", at: int) -> Run:
        serial = self._serial_before + rows[at + 4]
        return Run(self._keys[rows[at + 1]], rows[at + 2] & _MASK, rows[at + 3] & _MASK, serial)

    def _count(self, run: Run) -> None:
        if self.flavour == "mysql":
            self._numbers.add_run(run.key, run.first, run.last + 1)
            return
        newest = self._newest.get(run.key)
        if newest is None or newest[0] < run.serial:
            self._newest[run.key] = (run.serial, run.last)


def _in_order(runs: list[Run]) -> tuple[Run, ...]:
    return tuple(sorted(runs, key=lambda run: run.serial))


def _domain_gtid(key: bytes, number: int) -> DomainGtid:
    return DomainGtid(int.from_bytes(key[:4], "little"), int.from_bytes(key[4:8], "little"), number)


def gtid_text(key: bytes, number: int) -> str:
    """Return the text of one transaction of a run: `uuid:23`, `uuid:tag:23`, `0-1-23`."""
    return f"{Tsid.from_key(key)}:{number}" if len(key) >= 16 else str(_domain_gtid(key, number))
