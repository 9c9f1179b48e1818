"""In which of many files a replica that asks by GTID has to start.

Both answers are those of real sources. MySQL: the newest file with all of whose Previous_gtids the replica has, which is
the first file that holds something it lacks. MariaDB: the newest file whose Gtid_list lies before the replica's position.
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
    """The sets of transactions in each of MySQL's files, oldest first; finds the first that a replica needs.

    A set is kept encoded, 40 bytes where a file holds one interval of one source, and each 128 files have one set of all
    of them: so a search in 10,000 files decodes 128 sets and compares 200.
    """

    def __init__(self) -> None:
        self._insides: list[bytes] = []
        self._blocks: list[GtidSet] = []
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._insides) - self._dropped

    def append(self, inside: GtidSet) -> None:
        """One more file, the newest."""
        if len(self._insides) % _BLOCK_FILES == 0:
            self._blocks.append(GtidSet())
        self._blocks[-1] |= inside
        self._insides.append(encode_gtid_set(inside))

    def extend(self, insides: Sequence[GtidSet]) -> GtidSet:
        """Many files more, oldest first, at a third of the cost of `append` for each. Returns what they hold together."""
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
        """The newest file, which grows, holds all this by now. Raises: IndexError without a file."""
        self._insides[-1] = encode_gtid_set(inside)
        self._blocks[-1] |= inside

    def drop_oldest(self, count: int) -> None:
        """The oldest files were purged."""
        for number in range(self._dropped, self._dropped + min(count, len(self))):
            self._insides[number] = _EMPTY
        # A block that still names what is gone only costs a look into it.
        self._dropped += min(count, len(self))
        whole = self._dropped // _BLOCK_FILES * _BLOCK_FILES
        del self._insides[:whole]
        del self._blocks[: whole // _BLOCK_FILES]
        self._dropped -= whole

    def copy(self) -> "FileSearch":
        """One that does not change with this one. Costs a pointer a file."""
        made = FileSearch()
        made._insides, made._blocks, made._dropped = self._insides[:], self._blocks[:], self._dropped
        return made

    def inside(self, number: int) -> GtidSet:
        """What file `number` (0: the oldest) holds. Raises: IndexError."""
        return decode_gtid_set(self.encoded_inside(number))

    def encoded_inside(self, number: int) -> bytes:
        """The same as bytes, at no cost."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self._insides[self._dropped + number]

    def first_needed(self, held: GtidSet) -> int | None:
        """Number of the first file with a transaction that is not in `held`; None: there is none."""
        for block, everything in enumerate(self._blocks):
            if everything <= held:
                continue
            start = block * _BLOCK_FILES
            for number, inside in enumerate(self._insides[start : start + _BLOCK_FILES], start):
                if not decode_gtid_set(inside) <= held:
                    return number - self._dropped
        return None

    def holding(self, gtids: GtidSet) -> list[int]:
        """Numbers of the files that hold a transaction of `gtids`, oldest first."""
        found = []
        for block, everything in enumerate(self._blocks):
            if everything.meets(gtids):
                start = block * _BLOCK_FILES
                for number, inside in enumerate(self._insides[start : start + _BLOCK_FILES], start):
                    if decode_gtid_set(inside).meets(gtids):
                        found.append(number - self._dropped)
        return found

    def union_of_oldest(self, count: int) -> GtidSet:
        """Everything in the `count` oldest files, and perhaps of those that were dropped before them."""
        stop = self._dropped + count
        whole = stop // _BLOCK_FILES
        builder = GtidSetBuilder()
        for block in self._blocks[:whole]:
            builder.add_set(block)
        for inside in self._insides[max(whole * _BLOCK_FILES, self._dropped) : stop]:
            builder.add_set(decode_gtid_set(inside))
        return builder.snapshot()

    def union_from(self, number: int) -> GtidSet:
        """Everything in the files from `number` on, and perhaps of the 127 before it."""
        builder = GtidSetBuilder()
        for block in self._blocks[(self._dropped + number) // _BLOCK_FILES :]:
            builder.add_set(block)
        return builder.snapshot()


@dataclass(frozen=True, slots=True)
class Break:
    """Before file `number` the source took domains out of its state (`FLUSH BINARY LOGS DELETE_DOMAIN_ID`): what it had of them."""

    number: int
    forgotten: GtidList

    def hides_groups_from(self, position: GtidPosition) -> bool:
        """Whether a replica at `position` has a beginning of such a domain, and would not get the rest behind the break.

        One that has nothing of the domain may have been made from a backup that was taken since.
        """
        newest = self.forgotten.position
        return any(self.forgotten.contains(gtid) and newest.domain(gtid.domain_id) != gtid for gtid in position)


def first_needed_list(befores: Sequence[GtidList], position: GtidPosition, breaks: Sequence[Break] = ()) -> int | None:
    """Number of the newest file (0: the oldest) from which a replica at `position` gets all it lacks; None: of none.

    befores: the list at the head of each file, oldest first; breaks: in the same order. Behind a break a source expects
    nothing of a domain that it has forgotten, and here neither where the files before it do not have the rest.
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
    """The same among the files from `start` on and before `stop`, without a break in between: numbers only grow there, and
    log2(files) lists are looked at."""
    low, high = start, stop
    while low < high:
        middle = (low + high) // 2
        if lies_before(befores[middle], position):
            low = middle + 1
        else:
            high = middle
    return low - 1 if low > start else None


def lies_before(before: GtidList, position: GtidPosition) -> bool:
    """Whether nothing up to this list is lacking at `position`, so that a stream may start behind it.

    Each domain of the list must be one of the position's, and its group of the same server must be a later one, or the very
    last of the domain. Checked on MariaDB 10.11, which logs with the list of each file what a replica may start from.
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
    """Of `position`, the groups that come behind the list `before`: in their domains nothing is sent before them."""
    newest = before.position
    return [gtid for gtid in position if newest.domain(gtid.domain_id) != gtid]
