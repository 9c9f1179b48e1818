"""The archive by GTID: GTID replicas are checked against it, and statements are answered from it.

Only what is published counts. The state belongs to the event loop; `view` gives a picture that may go to a thread.

All files are of one family of servers, MySQL's or MariaDB's, or their GTIDs are unknown: such a file is served by position, and to no
GTID replica that needs it or one before it.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from protocol.gtid.file_search import Break, FileSearch
from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.gtid.mariadb import GtidList
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.gtid_facts import NOT_KNOWN, GtidFacts, GtidNews, GtidValue, domain_gtid, facts_of_family


@dataclass(frozen=True, slots=True)
class GtidView:
    """The archive by GTID at one moment. It never changes."""

    flavour: str
    """"mysql", "mariadb", "" while there is no file."""
    names: tuple[str, ...]
    """The files, oldest first; numbers of files below are places in it."""
    search: FileSearch
    """The contents of each file of MySQL's."""
    befores: tuple[GtidList, ...]
    """The state before each file of MariaDB's."""
    breaks: tuple[Break, ...]
    """The files of MariaDB's at which the source removed domains from it."""
    executed: GtidValue
    """Everything that was published, and what was purged before it."""
    purged: GtidValue
    """The part of `executed` that no file here contains; of MariaDB's, the state before the oldest file."""
    anonymous_files: tuple[int, ...]
    """The files with transactions that have no GTID, or none that could be read."""
    unreadable_files: tuple[int, ...] = ()
    """Those of `anonymous_files` whose GTIDs could not be read."""


@dataclass(frozen=True, slots=True)
class FileGtids:
    """The facts of one file. inside: of MySQL's, its transactions, encoded. before, behind: of MariaDB's, the states around it. None
    of these while the file grows. anonymous: whether it has transactions without a GTID, or none that could be read."""

    inside: bytes | None
    before: GtidList | None
    after: GtidList | None
    anonymous: bool


class GtidState:
    """Built from the files of the catalog, then fed by the writer's reports. Not thread-safe."""

    def __init__(self) -> None:
        self.flavour = ""
        self.source_purged = GtidSet()
        """MySQL's @@gtid_purged at the source, once it was requested: transactions that may be in no file's head."""
        self._names: list[str] = []
        self._places: dict[str, int] = {}
        """The place of each existing file, counted from the first that ever existed."""
        self._dropped = 0
        """The number of purged files: `_without` counts from the first that ever existed."""
        self._without: dict[int, None] = {}
        """Sealed files with transactions that have no GTID, or none that could be read."""
        self._unreadable: dict[int, None] = {}
        """Sealed files whose GTIDs are not known, counted as in `_without`."""
        self._given_up = False
        self._search = FileSearch()
        self._befores: list[GtidList] = []
        self._breaks: dict[int, GtidList] = {}
        """MariaDB's files whose list is not the state after the file before, with what is missing: counted as in `_without`."""
        self.forgotten: set[int] = set()
        """MariaDB: the domains that the source removed from its state."""
        self._behind = GtidList()
        """MariaDB: the state without a file: nothing, or the state after the last one that was purged."""
        self._executed = GtidSetBuilder()
        self._not_here = GtidSet()
        """MySQL: transactions that were executed before the oldest file, or that a later head names and no file before that
        contains."""
        self._sealed = True
        self._head: GtidValue | None = None
        self._inside = GtidSetBuilder()
        self._latest = GtidList()
        """MariaDB: the last group of each server in the newest file. `_inside`: MySQL's transactions in it."""
        self._anonymous = 0
        self._readable = True
        """True if all GTIDs of the newest file are known."""
        self._waiting: deque[tuple[int, GtidNews]] = deque()
        self._searched = True
        """True if `_search` has all of the newest file."""

    # --- its input ---------------------------------------------------------------------------------------------------

    def load(self, files: Sequence[ArchivedFile], facts: Iterable[GtidFacts]) -> None:
        """Load, at the start, all files, oldest first, and their facts, the newest up to its published end. It takes some us a file:
        for a thread, before the state is shared."""
        names: list[str] = []
        insides: list[GtidSet] = []
        for file, file_facts in zip(files, facts, strict=True):
            inside = file_facts.inside
            if (
                file_facts.before is None
                and file.sealed
                and isinstance(inside, GtidSet)
                and file.flavour == "mysql"
                and self.flavour in ("", "mysql")
            ):
                self.flavour = "mysql"
                if file_facts.anonymous:
                    self._without[self._dropped + len(self._names) + len(names)] = None
                names.append(file.name)
                insides.append(inside)
                continue
            self._load_alike(names, insides)
            names, insides = [], []
            self.begin_file(file.name, file.flavour)
            if file.sealed:
                self.seal(file_facts)
            else:
                self.resume(file_facts)
        self._load_alike(names, insides)

    def _load_alike(self, names: Sequence[str], insides: Sequence[GtidSet]) -> None:
        """Do `begin_file` and `seal` for files of MySQL's that each continue the one before it, which are most of them; the notes of
        those with transactions that have no GTID are left out."""
        if not names:
            return
        self._head = None
        self._anonymous = 0
        self._readable = True
        self._waiting.clear()
        first = self._dropped + len(self._names)
        self._places.update(zip(names, range(first, first + len(names)), strict=True))
        self._names += names
        self._executed.add_set(self._search.extend(insides))
        self._searched = self._sealed = True

    def begin_file(self, name: str, flavour: str) -> None:
        """Begin a new file, which grows from now on. Nothing is known any more of existing files of another family."""
        if flavour and flavour != self.flavour:
            self._change_family(flavour)
        if self.flavour != "mysql":
            before = self._state()
            self._befores.append(before)
        self._places[name] = self._dropped + len(self._names)
        self._names.append(name)
        self._head = None
        self._inside, self._latest = GtidSetBuilder(), GtidList()
        self._anonymous = 0
        self._readable = not self._given_up
        self._waiting.clear()
        self._search.append(GtidSet())
        self._searched = True
        self._sealed = False

    def _change_family(self, flavour: str) -> None:
        self.flavour = flavour
        count = len(self._names)
        self._executed, self._not_here, self._behind = GtidSetBuilder(), GtidSet(), GtidList()
        self._inside, self._latest = GtidSetBuilder(), GtidList()
        self._breaks = {}
        self._search = FileSearch()
        self._search.extend([GtidSet()] * count)
        self._befores = [] if flavour == "mysql" else [GtidList()] * count
        self._unreadable = dict.fromkeys(range(self._dropped, self._dropped + count))
        self._without = self._unreadable.copy()

    def report(self, boundary: int, news: GtidNews) -> None:
        """Note that these transactions are in the file that grows; they end at `boundary` at the latest."""
        self._waiting.append((boundary, news))

    def publish(self, end: int) -> None:
        """Publish what was reported up to this offset of the file that grows."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= end:
            _boundary, news = waiting.popleft()
            self._readable = self._readable and news.readable
            if not self._readable:
                continue
            if news.head is not None:
                self._take_head(news.head)
            self._anonymous = news.anonymous
            if not news.runs:
                continue
            if self.flavour == "mysql":
                for run in news.runs:
                    self._executed.add_run(run.key, run.first, run.last + 1)
                    self._inside.add_run(run.key, run.first, run.last + 1)
                self._searched = False
            else:
                self._latest = self._latest.advanced(map(domain_gtid, news.runs))

    def resume(self, facts: GtidFacts) -> None:
        """Replace the facts of the newest file, which was read up to its published end."""
        self._waiting.clear()
        facts = NOT_KNOWN if self._given_up else facts_of_family(self.flavour, facts)
        self._readable = facts.inside is not None
        if facts.before is not None:
            self._take_head(facts.before)
        self._anonymous = facts.anonymous
        inside = facts.inside
        if isinstance(inside, GtidSet):
            self._inside = GtidSetBuilder(inside)
            self._executed.add_set(inside)
            self._searched = False
        elif inside is not None:
            self._latest = inside

    def seal(self, facts: GtidFacts) -> None:
        """Seal the file that grew: it is complete and all of it published."""
        self.resume(facts)
        self._note_search()
        if self._newest_without:
            self._without[self._dropped + len(self._names) - 1] = None
        if not self._readable:
            self._unreadable[self._dropped + len(self._names) - 1] = None
        self._sealed = True

    def give_up(self, names: Sequence[str]) -> None:
        """Forget everything after a fault: no GTID is known of these files, which are all that exist, nor of those to come."""
        self._given_up = True
        self._names = list(names)
        self._places = {name: self._dropped + number for number, name in enumerate(self._names)}
        self._waiting.clear()
        executed = self._executed
        self._change_family(self.flavour)
        self._executed = executed
        self._readable = False
        self._searched = self._sealed = True

    def forget_oldest(self, names: Collection[str]) -> None:
        """Forget files that are being purged. Names that are forgotten already are passed over."""
        count = 0
        while count < len(self._names) and self._names[count] in names:
            count += 1
        if self.flavour == "mysql":
            self._not_here |= self._search.union_of_oldest(count)
        self._search.drop_oldest(count)
        if count == len(self._names):
            self._behind = self._state()
        for name in self._names[:count]:
            del self._places[name]
        del self._names[:count]
        del self._befores[:count]
        self._dropped += count
        self._without = {place: None for place in self._without if place >= self._dropped}
        self._unreadable = {place: None for place in self._unreadable if place >= self._dropped}
        self._breaks = {place: gone for place, gone in self._breaks.items() if place > self._dropped}

    def _take_head(self, head: GtidValue) -> None:
        if self._head is not None:
            return
        self._head = head
        if isinstance(head, GtidList):
            # The existing list, if it is equal, so that 10,000 equal ones are one.
            if head != self._befores[-1]:
                self._note_break(self._befores[-1], head)
                self._befores[-1] = head
            return
        unheard = head - self._executed.snapshot()
        if unheard:
            self._not_here |= unheard
            self._executed.add_set(unheard)

    def _note_break(self, after: GtidList, head: GtidList) -> None:
        """Note that the newest file's list is not the state after the file before it."""
        if len(self._befores) > 1:
            kept = {gtid.domain_id for gtid in head}
            gone = GtidList(gtid for gtid in after if gtid.domain_id not in kept)
            self._breaks[self._dropped + len(self._names) - 1] = gone
            self.forgotten.update(gtid.domain_id for gtid in gone)

    def _note_search(self) -> None:
        if not self._searched:
            self._search.extend_newest(self._inside.snapshot())
            self._searched = True

    def _state(self) -> GtidList:
        if not self._befores:
            return self._behind
        return self._befores[-1].advanced(self._latest) if len(self._latest) else self._befores[-1]

    # --- queries -----------------------------------------------------------------------------------------------------

    @property
    def executed(self) -> GtidValue:
        """Everything that was published, and what was executed before the oldest file (`@@gtid_executed`, `@@gtid_binlog_state`)."""
        if self.flavour == "mariadb":
            return self._state()
        return self._executed.snapshot() | self._gone_before()

    @property
    def purged(self) -> GtidValue:
        """The GTIDs that were executed and are in no file here: for MySQL a set, for MariaDB the state before the oldest file."""
        if self.flavour == "mariadb":
            return self._befores[0] if self._befores else self._behind
        return self._not_here | self._gone_before()

    def _gone_before(self) -> GtidSet:
        """Return the part of MySQL's @@gtid_purged that no head of a file here names. It only shrinks, mostly to nothing soon."""
        if self.source_purged:
            self.source_purged -= self._executed.snapshot()
        return self.source_purged

    @property
    def sources(self) -> Sequence[bytes]:
        """MySQL: the `Tsid.key`s that have transactions, in the order in which they came. Do not change it."""
        return self._executed.sources

    def has_anonymous(self, name: str) -> bool:
        """Return whether a transaction without a GTID is published of this file, or one that could not be read."""
        place = self._places.get(name, -1)
        newest = place == self._dropped + len(self._names) - 1 and not self._sealed
        return place >= 0 and (self._newest_without if newest else place in self._without)

    @property
    def _newest_without(self) -> bool:
        return self._anonymous > 0 or not self._readable

    def file(self, name: str) -> FileGtids | None:
        """Return the facts of this file; None: there is no such file."""
        place = self._places.get(name)
        if place is None:
            return None
        number = place - self._dropped
        anonymous = self.has_anonymous(name)
        if number == len(self._names) - 1:
            return FileGtids(None, None, None, anonymous)
        if self.flavour == "mysql":
            return FileGtids(self._search.encoded_inside(number), None, None, anonymous)
        return FileGtids(None, self._befores[number], self._befores[number + 1], anonymous)

    def view(self) -> GtidView:
        """Return all of it as it is now. It costs some 0.1 ms with 10,000 files."""
        self._note_search()
        without = [place - self._dropped for place in self._without]
        if self._newest_without and not self._sealed:
            without.append(len(self._names) - 1)
        unreadable = [place - self._dropped for place in self._unreadable]
        if not self._readable and not self._sealed:
            unreadable.append(len(self._names) - 1)
        return GtidView(
            self.flavour,
            tuple(self._names),
            self._search.copy(),
            tuple(self._befores),
            tuple(Break(place - self._dropped, gone) for place, gone in self._breaks.items()),
            self.executed,
            self.purged,
            tuple(without),
            tuple(unreadable),
        )
