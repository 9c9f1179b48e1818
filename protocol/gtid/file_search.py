"""The search for the file, of many, in which a replica that asks by GTID starts.

Both answers are those of real sources. MySQL chooses the newest file with all of whose Previous_gtids the replica has, which is
the first file that contains something it lacks. MariaDB chooses the newest file whose Gtid_list lies before the replica's
position.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from protocol.gtid.codec import decode_gtid_set, encode_gtid_set
from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.gtid.mariadb import DomainGtid, GtidList, GtidPosition

_BLOCK_FILES: Final = 128
_EMPTY: Final = encode_gtid_set(GtidSet())


class FileSearch:
    """The sets of transactions in each of MySQL's files, oldest first, among which it finds the first that a replica needs.

    A set is kept encoded, in 40 bytes where a file contains one interval of one source, and each 128 files share one union: so
    a search in 10,000 files decodes 128 sets and compares 200.
    """

    def __init__(self) -> None:
        self._insides: list[bytes] = []
        self._blocks: list[GtidSet] = []
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._insides) - self._dropped

    def append(self, inside: GtidSet) -> None:
        """Add the newest file."""
        if len(self._insides) % _BLOCK_FILES == 0:
            self._blocks.append(GtidSet())
        self._blocks[-1] |= inside
        self._insides.append(encode_gtid_set(inside))

    def extend(self, insides: Sequence[GtidSet]) -> GtidSet:
        """Add many files, oldest first, at a third of the cost of `append` for each, and return the union of their sets."""
        everything = GtidSetBuilder()
        at = 0
        while at < len(insides):
            full = len(self._insides) % _BLOCK_FILES
            if not full:
                self._blocks.append(GtidSet())
            some = insides[at : at + _BLOCK_FILES - full]
            gathered = GtidSetBuilder()
            for inside in some:
                gathered.add_set(inside)
            block = gathered.snapshot()
            self._blocks[-1] |= block
            everything.add_set(block)
            self._insides += map(encode_gtid_set, some)
            at += len(some)
        return everything.snapshot()

    def extend_newest(self, inside: GtidSet) -> None:
        """Replace the set of the newest file, which grows. Raises: IndexError without a file."""
        self._insides[-1] = encode_gtid_set(inside)
        self._blocks[-1] |= inside

    def drop_oldest(self, count: int) -> None:
        """Remove the `count` oldest files, which were purged."""
        for number in range(self._dropped, self._dropped + min(count, len(self))):
            self._insides[number] = _EMPTY
        # A block that still names a removed file only costs a look into it.
        self._dropped += min(count, len(self))
        whole = self._dropped // _BLOCK_FILES * _BLOCK_FILES
        del self._insides[:whole]
        del self._blocks[: whole // _BLOCK_FILES]
        self._dropped -= whole

    def copy(self) -> "FileSearch":
        """Return a copy that does not change with this one. It costs a pointer a file."""
        made = FileSearch()
        made._insides, made._blocks, made._dropped = self._insides[:], self._blocks[:], self._dropped
        return made

    def inside(self, number: int) -> GtidSet:
        """Return the set of file `number` (0: the oldest). Raises: IndexError."""
        return decode_gtid_set(self.encoded_inside(number))

    def encoded_inside(self, number: int) -> bytes:
        """Return the encoded set of file `number`, at no cost. Raises: IndexError."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self._insides[self._dropped + number]

    def first_needed(self, held: GtidSet) -> int | None:
        """Return the number of the first file with a transaction that is not in `held`; None: there is none."""
        for block, everything in enumerate(self._blocks):
            if everything <= held:
                continue
            start = block * _BLOCK_FILES
            for number, inside in enumerate(self._insides[start : start + _BLOCK_FILES], start):
                if not decode_gtid_set(inside) <= held:
                    return number - self._dropped
        return None

    def holding(self, gtids: GtidSet) -> list[int]:
        """Return the numbers of the files that contain a transaction of `gtids`, oldest first."""
        found = []
        for block, everything in enumerate(self._blocks):
            if everything.meets(gtids):
                start = block * _BLOCK_FILES
                for number, inside in enumerate(self._insides[start : start + _BLOCK_FILES], start):
                    if decode_gtid_set(inside).meets(gtids):
                        found.append(number - self._dropped)
        return found

    def union_of_oldest(self, count: int) -> GtidSet:
        """Return the union of the `count` oldest files, and perhaps of those that were dropped before them."""
        stop = self._dropped + count
        whole = stop // _BLOCK_FILES
        builder = GtidSetBuilder()
        for block in self._blocks[:whole]:
            builder.add_set(block)
        for inside in self._insides[max(whole * _BLOCK_FILES, self._dropped) : stop]:
            builder.add_set(decode_gtid_set(inside))
        return builder.snapshot()

    def union_from(self, number: int) -> GtidSet:
        """Return the union of the files from `number` on, and perhaps of the 127 before it."""
        builder = GtidSetBuilder()
        for block in self._blocks[(self._dropped + number) // _BLOCK_FILES :]:
            builder.add_set(block)
        return builder.snapshot()


@dataclass(frozen=True, slots=True)
class Break:
    """Before file `number` the source removed domains from its state (`FLUSH BINARY LOGS DELETE_DOMAIN_ID`), here `forgotten`."""

    number: int
    forgotten: GtidList

    def hides_groups_from(self, position: GtidPosition) -> bool:
        """Return whether a replica at `position` has only the beginning of such a domain, and would not get the rest after the break.

        A replica that has nothing of the domain may come from a backup that was taken after the break.
        """
        newest = self.forgotten.position
        return any(self.forgotten.contains(gtid) and newest.domain(gtid.domain_id) != gtid for gtid in position)


def first_needed_list(befores: Sequence[GtidList], position: GtidPosition, breaks: Sequence[Break] = ()) -> int | None:
    """Return the number of the newest file (0: the oldest) from which a replica at `position` gets all it lacks; None: no file.

    `befores` contains the list at the head of each file, oldest first; `breaks` is in the same order. After a break a source
    expects nothing of a domain that it has forgotten; here neither, if the files before the break do not contain the rest.
    """
    hidden = next((each for each in breaks if each.hides_groups_from(position)), None)
    if hidden is not None:
        earlier = [each for each in breaks if each.number < hidden.number]
        found = first_needed_list(befores[: hidden.number], position, earlier)
        if found is not None:
            return found
    stop = len(befores)
    for start in (*(each.number for each in reversed(breaks)), 0):
        found = _newest_before(befores, position, start, stop)
        if found is not None:
            return found
        stop = start
    return None


def _newest_before(befores: Sequence[GtidList], position: GtidPosition, start: int, stop: int) -> int | None:
    """Return the same among the files [start, stop), which no break divides: numbers only grow there, so log2(files) lists are
    compared.
    """
    low, high = start, stop
    while low < high:
        middle = (low + high) // 2
        if lies_before(befores[middle], position):
            low = middle + 1
        else:
            high = middle
    return low - 1 if low > start else None


def lies_before(before: GtidList, position: GtidPosition) -> bool:
    """Return whether `position` lacks nothing up to this list, so that a stream may start after it.

    Each domain of the list must be one of the position's, and its group of the same server must be a later one, or the very
    last of the domain. Checked on MariaDB 10.11, which logs with the list of each file where a replica may start.
    """
    newest = before.position
    for gtid in before:
        last = position.domain(gtid.domain_id)
        if last is None:
            return False
        if gtid.server_id == last.server_id and (
            gtid.sequence_number > last.sequence_number
            or (gtid.sequence_number == last.sequence_number and newest.domain(gtid.domain_id) != gtid)
        ):
            return False
    return True


def still_awaited(before: GtidList, position: GtidPosition) -> list[DomainGtid]:
    """Return the groups of `position` that come after the list `before`: in their domains nothing is sent before them."""
    newest = before.position
    return [gtid for gtid in position if newest.domain(gtid.domain_id) != gtid]
