"""The decision which files are removed now, and what keeps the others: a function of facts, without a clock, a disk or a connection.

1. Held files stay, and all after them: the newest file, files being read, files that a known replica or a view still needs.
2. keep_for and keep_bytes: a file goes when either says so, the oldest first.
3. min_free: then the oldest of all archives, as long as the disk has less room; not those in a bucket.
4. keep_at_least keeps young files from keep_bytes and min_free.

Files that are not in the bucket of [archive.mirror] yet are held from 2 only, and not from that when the disk has less room than a
floor.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from relay.retention.retention_limits import RetentionLimits

Place = tuple[int, int]
"""A file's generation and number: later files have greater ones."""


class Limit(Enum):
    """The limit in `[retention]` that has a file removed."""

    KEEP_FOR = "keep_for"
    KEEP_BYTES = "keep_bytes"
    MIN_FREE = "min_free"


class HolderKind(Enum):
    """The reason that keeps a file that a limit would have removed."""

    NEWEST = "newest"
    READER = "reader"
    REPLICA = "replica"
    VIEW = "view"
    YOUNG = "keep_at_least"
    BUCKET = "bucket"
    MIRROR = "mirror"


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file of an archive. time: of its newest event, Unix seconds, never lower than that of the file before; 0: unknown.

    A file whose time is unknown is at least as old as the next one whose time is known. disk_bytes: what it takes on the disk; None:
    all of `size_bytes`.
    """

    generation: int
    number: int
    name: str
    size_bytes: int
    time: float
    disk_bytes: int | None = None

    @property
    def room_bytes(self) -> int:
        """The room that its removal frees on the disk."""
        return self.size_bytes if self.disk_bytes is None else self.disk_bytes

    @property
    def place(self) -> Place:
        """Its place among the files of its archive."""
        return self.generation, self.number


@dataclass(frozen=True, slots=True)
class Hold:
    """The holder that needs the file at `place`, and all after it. who: for people."""

    kind: HolderKind
    who: str
    place: Place


@dataclass(frozen=True, slots=True)
class ArchiveFacts:
    """An archive. name: of the view, "" for the mirror; files: the oldest first. age_allowance: so many bytes may go by age in this
    step, at least one file in any case; None: all."""

    name: str
    files: Sequence[HeldFile]
    holds: Sequence[Hold] = ()
    age_allowance: float | None = None


@dataclass(frozen=True, slots=True)
class RetentionFacts:
    """now: Unix seconds, from which age is counted back. free_bytes: of the file system; None: unknown. floor_bytes: with less room
    the limits of an archive's own also remove what is not in the bucket yet."""

    archives: Sequence[ArchiveFacts]
    now: float
    free_bytes: int | None = None
    floor_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Removal:
    """A file that is removed, and the reason. also_uncopied: whether or not it is in the bucket."""

    archive: str
    file: HeldFile
    limit: Limit
    also_uncopied: bool = False


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A limit that is not met: `hold` keeps `file`, and with it so many files and bytes that would have gone.

    missing_bytes: for min_free, how much room is missing when all that may go is removed.
    """

    archive: str
    limit: Limit
    hold: Hold
    file: str
    files: int
    size_bytes: int
    missing_bytes: int = 0


@dataclass(frozen=True, slots=True)
class RetentionDecision:
    """removals: of each archive the oldest first."""

    removals: tuple[Removal, ...]
    held_back: tuple[HeldBack, ...]


def decide(facts: RetentionFacts, limits: RetentionLimits) -> RetentionDecision:
    """Return what is removed. This changes nothing; called again with what is left, it removes nothing more, except what
    `age_allowance` kept."""
    parts = [_ArchivePart(archive, facts.now, limits) for archive in facts.archives]
    held_back = [one for part in parts for one in part.by_own_limits()]
    _yield_room(parts, facts)
    held_back += _free_room(parts, facts.free_bytes, limits.min_free_bytes)
    return RetentionDecision(tuple(one for part in parts for one in part.removals), tuple(held_back))


def _yield_room(parts: "Sequence[_ArchivePart]", facts: RetentionFacts) -> None:
    """Remove what is kept for the bucket alone, as far as room is required: a full disk wins."""
    if facts.free_bytes is None:
        return
    missing = facts.floor_bytes - facts.free_bytes - sum(one.file.room_bytes for part in parts for one in part.removals)
    for part in parts:
        while missing > 0 and part.would_go:
            missing -= part.next_file.room_bytes
            part.remove(part.would_go, also_uncopied=True)


def _free_room(parts: "Sequence[_ArchivePart]", free_bytes: int | None, wanted: int | None) -> list[HeldBack]:
    """Remove the oldest of all, a view's before the mirror's of the same time, until there is room."""
    if wanted is None or free_bytes is None:
        return []
    missing = wanted - free_bytes - sum(one.file.room_bytes for part in parts for one in part.removals)
    while missing > 0:
        # Files in a bucket take no room here, and what follows them goes after them: then there is nothing to gain.
        able = [part for part in parts if part.going < part.most_for_room and part.next_file.room_bytes]
        if not able:
            return [part.keeps_room(missing) for part in parts if part.archive.files]
        oldest = min(able, key=lambda part: (part.next_file.time, not part.archive.name))
        missing -= oldest.next_file.room_bytes
        oldest.remove(Limit.MIN_FREE, also_uncopied=True)
    return []


class _ArchivePart:
    """One archive, while it is decided about."""

    def __init__(self, archive: ArchiveFacts, now: float, limits: RetentionLimits) -> None:
        self.archive = archive
        self.removals: list[Removal] = []
        self._now = now
        self._limits = limits
        files = archive.files
        self._hold, self._held = self._first_hold(archive.holds)
        firm = [hold for hold in archive.holds if hold.kind is not HolderKind.MIRROR]
        self._firm_hold, self._firm = self._first_hold(firm)
        self._old_enough = len(files)
        if limits.keep_at_least_s:
            self._old_enough = self._older(now - limits.keep_at_least_s, or_as_old=True)
        self.most_for_room = min(self._firm, self._old_enough)
        """So many files may be removed for room: the others are held, or too young."""
        self._wanted = 0, 0
        """So many files keep_for and keep_bytes would have removed, if the bucket were not waited for."""

    def _first_hold(self, holds: Sequence[Hold]) -> tuple[Hold | None, int]:
        """Return the hold that keeps most, and how many files are before it."""
        files = self.archive.files
        first = min(holds, key=lambda hold: hold.place, default=None)
        if files and (first is None or first.place >= files[-1].place):
            # No other hold keeps the newest, or none keeps more.
            first = Hold(HolderKind.NEWEST, "it is the newest file", files[-1].place)
        return first, _first(files, lambda file: first is not None and file.place >= first.place)

    @property
    def going(self) -> int:
        """The number of files that are removed."""
        return len(self.removals)

    @property
    def next_file(self) -> HeldFile:
        """The oldest file that stays."""
        return self.archive.files[self.going]

    @property
    def would_go(self) -> Limit | None:
        """The limit of its own that would have the next file removed, if the bucket were not waited for; None: none would."""
        aged, over = self._wanted
        if self.going >= max(aged, over):
            return None
        return Limit.KEEP_FOR if self.going < aged else Limit.KEEP_BYTES

    def remove(self, limit: Limit, *, also_uncopied: bool = False) -> None:
        """Remove the next file."""
        self.removals.append(Removal(self.archive.name, self.next_file, limit, also_uncopied))

    def by_own_limits(self) -> list[HeldBack]:
        """Apply keep_for and keep_bytes; return what they cannot have removed."""
        held_back = []
        aged, over = self._aged(), self._over()
        paced, by_size = self._paced(aged), min(self._held, self._old_enough)
        self._wanted = min(paced, self._firm), min(over, self.most_for_room)
        for _ in range(min(paced, self._held)):
            self.remove(Limit.KEEP_FOR)
        for _ in range(self.going, min(over, by_size)):
            self.remove(Limit.KEEP_BYTES)
        if aged > self._held:
            held_back.append(self._held_back(Limit.KEEP_FOR, self._held, aged))
        if over > by_size:
            held_back.append(self._held_back(Limit.KEEP_BYTES, by_size, over))
        return held_back

    def keeps_room(self, missing: int) -> HeldBack:
        """Return, for min_free, what keeps the oldest file that stays."""
        return self._held_back(Limit.MIN_FREE, self.going, len(self.archive.files), missing)

    def _aged(self) -> int:
        """Return how many files are older than keep_for."""
        return 0 if self._limits.keep_for_s is None else self._older(self._now - self._limits.keep_for_s)

    def _older(self, than: float, *, or_as_old: bool = False) -> int:
        """Return how many files are older than that: one whose time is known includes those before it, whose times may be unknown."""
        numbered = enumerate(self.archive.files, 1)
        return max(
            (count for count, file in numbered if 0 < file.time < than or (or_as_old and 0 < file.time == than)),
            default=0,
        )

    def _paced(self, aged: int) -> int:
        """Return how many of them may go in this step."""
        allowance = self.archive.age_allowance
        if allowance is None:
            return aged
        size_bytes = 0
        for count, file in enumerate(self.archive.files[:aged]):
            size_bytes += file.size_bytes
            if count and size_bytes > allowance:
                return count
        return aged if allowance > 0 else 0

    def _over(self) -> int:
        """Return how many files must go until the others have no more than keep_bytes."""
        if self._limits.keep_bytes is None:
            return 0
        excess = sum(file.size_bytes for file in self.archive.files) - self._limits.keep_bytes
        for count, file in enumerate(self.archive.files):
            if excess <= 0:
                return count
            excess -= file.size_bytes
        return len(self.archive.files)

    def _held_back(self, limit: Limit, first: int, stop: int, missing: int = 0) -> HeldBack:
        files = self.archive.files[first:stop]
        hold, held = (self._firm_hold, self._firm) if limit is Limit.MIN_FREE else (self._hold, self._held)
        if limit is Limit.MIN_FREE and first < self.most_for_room:
            hold = Hold(
                HolderKind.BUCKET,
                "the oldest files are in the bucket: without them there is no more room",
                files[0].place,
            )
        elif first < held or hold is None:
            hold = Hold(HolderKind.YOUNG, f'keep_at_least = "{self._limits.section.keep_at_least}"', files[0].place)
        size_bytes = sum(file.size_bytes for file in files)
        return HeldBack(self.archive.name, limit, hold, files[0].name, len(files), size_bytes, missing)


def _first(files: Sequence[HeldFile], is_it: Callable[[HeldFile], bool]) -> int:
    """Return the first file's number for which that is true; if there is none, the number of files."""
    return next((number for number, file in enumerate(files) if is_it(file)), len(files))
