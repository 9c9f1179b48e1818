"""A transaction of the source as the rules see it, and what they make of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple, Protocol


class GroupEvent(NamedTuple):
    """An event of the group. offset: in the source's file; length: with its checksum; flags: as archived, with markers."""

    offset: int
    length: int
    type: int
    flags: int
    timestamp: int
    server_id: int


class EventBody(Protocol):
    """Reads an event's bytes behind its header, without its checksum; most: no more than so many of them."""

    def __call__(self, event: GroupEvent, most: int | None = None) -> bytes: ...


class SourceGroup(NamedTuple):
    """[start, stop) of `file`. events: all of it in order, for going over any number of times; of a long group they are read from the
    file each time, and nobody holds them.

    post_lengths: of the file's format description, by type code (256 bytes). server_version: of it, as "5.6.24-log". number: how many
    files and groups came before is no business of the rules: the same group gives the same answer but for `TableEngines`.
    """

    file: str
    start: int
    stop: int
    events: Iterable[GroupEvent]
    body: EventBody
    post_lengths: bytes
    server_version: str

    @property
    def is_held(self) -> bool:
        """Whether it is so small that all of it may be held."""
        return isinstance(self.events, Sequence)

    def ends(self) -> tuple[GroupEvent, GroupEvent]:
        """The first and the last event."""
        events = iter(self.events)
        first = last = next(events)
        for event in events:
            last = event
        return first, last


class Copy(NamedTuple):
    """Events of the source, at offsets [start, stop) of its file, as they are but for what the kernel does to each: end_log_pos,
    markers and checksum anew, rows of version 1 made version 2, and the status variable for TIMESTAMP columns."""

    start: int
    stop: int


class New(NamedTuple):
    """An event of our own, or of the source with another content: the header's fields that are not counted, and the body.

    type, flags (without markers), timestamp and server_id go into the header as they are; size, end_log_pos, markers and
    checksum are the writer's.
    """

    type: int
    flags: int
    timestamp: int
    server_id: int
    body: bytes


class Later(NamedTuple):
    """As `New`, with a body of `size` bytes that is made when it is written, because all of them are too long to be held."""

    type: int
    flags: int
    timestamp: int
    server_id: int
    size: int
    make: Callable[[], bytes]


class GivenGtid(NamedTuple):
    """A transaction's GTID. back: how far before it the transaction stands that it waits for last; 0: it is the one before it."""

    uuid: bytes
    gno: int
    back: int = 0


class OutGroup(NamedTuple):
    """One transaction of the view: its events in order, without a GTID event in front where `gtid` is "new".

    gtid: "new": one is put in front, by the view's policy; "source": the first piece is the source's own GTID event. number: where
    the rules say which GTID that in front is.
    """

    pieces: Sequence[Copy | New | Later]
    gtid: Literal["new", "source"] = "new"
    number: GivenGtid | None = None


class GroupRules(ABC):
    """The rules of one view, with what they know of tables from the definitions that went by.

    For `plan` are the groups with
    - an event of a type in `look_at`, or an event that opens or closes no group as it should;
    - a Query that is no plain INSERT, UPDATE, DELETE or REPLACE, nor BEGIN, COMMIT, SAVEPOINT (so: definitions, account statements,
      ROLLBACK at the end, ROLLBACK TO), or one with an error code;
    - a change in the schema `mysql`: a Table_map of it, a Query with it as default database or with `mysql` in the first 128 bytes of
      its text after blanks and comments;
    - where `wants_removals`: a REPLACE, a DELETE or a LOAD DATA … REPLACE as a statement, but for plain ones that `removals`
      leaves out;
    - where `wants_statements`: any Query but BEGIN and COMMIT, and any Execute_load_query; but for plain statements that `watched`
      leaves out; and rows beside other statements, or of several tables, where `watched` names one of the tables or is None.
    """

    first_statement: int | None = None
    """Where in the file the first group of a MariaDB begins whose rows replicas change by statements; None: none was passed."""

    @property
    def wants_statements(self) -> bool:
        """Whether every statement matters now (tables without transactions are known, or triggers and functions that may do otherwise
        on the target), or only definitions and the like."""
        return True

    @property
    def watched(self) -> bytes | None:
        """With `wants_statements`, for `ViewCopy.watch`: of which tables plain statements matter; None: of all. The same object as
        long as it is the same."""
        return None

    @property
    def wants_removals(self) -> bool:
        """Whether REPLACE and DELETE may matter where not every statement does. Fixed for a view."""
        return False

    @property
    def removals(self) -> bytes | None:
        """With `wants_removals`, for `ViewCopy.watch_removals`: of which tables; None: of all. The same object as long as it is the
        same."""
        return None

    @property
    @abstractmethod
    def look_at(self) -> bytes:
        """256 bytes, by type code: 1: a group with such an event is for `plan`; 0: it may be copied. Fixed for a view."""

    @abstractmethod
    def plan(self, group: SourceGroup) -> list[OutGroup]:
        """What becomes of it; empty: nothing at all. What it defines is known from now on.

        Raises: Untranslatable, and nothing is known that was not before.
        """

    @abstractmethod
    def skipped(self, group: SourceGroup) -> None:
        """A decision leaves the group out of the view; what it defines at the source is known from now on."""

    def in_place_of(self, group: SourceGroup, empty: OutGroup) -> list[OutGroup] | None:
        """What the view gets in place of the group that was `skipped` last: `empty` under the group's GTID, so that no number is
        missing; nothing where it can have none. None: as the policy for GTIDs says."""
        return None

    @abstractmethod
    def check_unfinished(self, group: SourceGroup, *, is_followed: bool) -> None:
        """A group that has no end, because the source crashed, is to be left out. is_followed: another follows in its file.

        Raises: Untranslatable where something of it may have been kept.
        """

    @abstractmethod
    def source_started(self) -> None:
        """The source was started anew before the next group (`created` of the file's format description is not 0): no temporary table
        exists."""

    @abstractmethod
    def source_went_on(self, *, decided: bool) -> None:
        """The next file begins, and `created` of its format description is 0. decided: somebody decided that a view goes on there
        whatever was lost.

        Raises: Untranslatable where the file before ended inside a transaction of which replicas of the source have something.
        """

    def of_source(self, server_version: str) -> "GroupRules":
        """Those that a file of such a server needs: for one that is no newer than the target, less has to be looked at. Both know the
        same, and `state` is the same."""
        return self

    @abstractmethod
    def state(self) -> bytes:
        """All that `plan` has learned, to go on from here; the same knowledge gives the same bytes."""

    @abstractmethod
    def restore(self, state: bytes) -> None:
        """Knows what `state` says and nothing else. b"": nothing."""

    def after_source(self, state: bytes) -> bytes:
        """What is known where another source goes on, `state` at the end of the former one. Raises: Untranslatable."""
        return b""
