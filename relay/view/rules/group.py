"""A transaction of the source as the rules see it, and their result."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple, Protocol


class GroupEvent(NamedTuple):
    """An event of the group. `offset` is in the source's file; `length` includes its checksum; `flags` are archived ones, with
    markers.
    """

    offset: int
    length: int
    type: int
    flags: int
    timestamp: int
    server_id: int


class EventBody(Protocol):
    """Reads the bytes of an event after its header, without its checksum; at most `most` of them."""

    def __call__(self, event: GroupEvent, most: int | None = None) -> bytes: ...


class SourceGroup(NamedTuple):
    """[start, stop) of `file`. `events` are all of it in order, for any number of iterations; those of a long group are read from the
    file each time, and not kept in memory.

    `post_lengths` are those of the file's format description, by type code (256 bytes), `server_version` is its version, as
    "5.6.24-log". Rules do not depend on the number of files and groups before: the same group gives the same result, but for
    `TableEngines`.
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
        """True if it is so small that all of it may be kept in memory."""
        return isinstance(self.events, Sequence)

    def ends(self) -> tuple[GroupEvent, GroupEvent]:
        """Return the first and the last event."""
        events = iter(self.events)
        first = last = next(events)
        for event in events:
            last = event
        return first, last


class Copy(NamedTuple):
    """Events of the source, at offsets [start, stop) of its file, unchanged except by the kernel: it recomputes end_log_pos, markers
    and checksum, turns rows of version 1 into version 2, and sets the status variable for TIMESTAMP columns."""

    start: int
    stop: int


class New(NamedTuple):
    """An event of our own, or of the source with other content: the header's fields that are not counted, and the body.

    `type`, `flags` (without markers), `timestamp` and `server_id` go into the header as they are; the writer sets size, end_log_pos,
    markers and checksum.
    """

    type: int
    flags: int
    timestamp: int
    server_id: int
    body: bytes


class Later(NamedTuple):
    """A `New` with a body of `size` bytes that is made when it is written, because all of them are too long for memory."""

    type: int
    flags: int
    timestamp: int
    server_id: int
    size: int
    make: Callable[[], bytes]


class GivenGtid(NamedTuple):
    """A transaction's GTID. `back` is the distance to the last transaction before it that it waits for; 0: the one just before."""

    uuid: bytes
    gno: int
    back: int = 0


class OutGroup(NamedTuple):
    """One transaction of the view: its events in order, without a GTID event at the beginning where `gtid` is "new".

    `gtid`: with "new" one is prepended by the view's policy; with "source" the first piece is the source's own GTID event. `number` is
    the GTID of the prepended event, where the rules assign it.
    """

    pieces: Sequence[Copy | New | Later]
    gtid: Literal["new", "source"] = "new"
    number: GivenGtid | None = None


class GroupRules(ABC):
    """The rules of one view, with their knowledge of tables from the definitions that went by.

    `plan` gets the groups with
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
    """The offset in the file of the first group of a MariaDB whose rows replicas change by statements; None: none was passed."""

    @property
    def wants_statements(self) -> bool:
        """True if every statement matters now (tables without transactions are known, or triggers and functions that may have other
        effects on the target); False if only definitions and the like do."""
        return True

    @property
    def known_at(self) -> object:
        """What is replaced whenever a statement like one that passed may not pass; None: each statement is looked at."""
        return None

    @property
    def passes_alike(self) -> bool:
        """True if `plan` left the last group as it is, and will leave each group of the same statements with other literals of the same
        classes, as long as `known_at` is the same."""
        return False

    @property
    def watched(self) -> bytes | None:
        """The tables, for `ViewCopy.watch`, whose plain statements matter with `wants_statements`; None: all. The object is the same as
        long as its value is."""
        return None

    @property
    def wants_removals(self) -> bool:
        """True if REPLACE and DELETE may matter where not every statement does. Fixed for a view."""
        return False

    @property
    def removals(self) -> bytes | None:
        """The tables, for `ViewCopy.watch_removals`, that matter with `wants_removals`; None: all. The object is the same as long as
        its value is."""
        return None

    @property
    @abstractmethod
    def look_at(self) -> bytes:
        """256 bytes, by type code: 1: `plan` gets a group with such an event; 0: it may be copied. Fixed for a view."""

    @abstractmethod
    def plan(self, group: SourceGroup) -> list[OutGroup]:
        """Translate a group; an empty result: nothing replaces it. Its definitions are known from now on.

        Raises: Untranslatable, and nothing is learned.
        """

    @abstractmethod
    def skipped(self, group: SourceGroup) -> None:
        """Learn from a group that a decision leaves out of the view: its definitions at the source are known from now on."""

    def in_place_of(self, group: SourceGroup, empty: OutGroup) -> list[OutGroup] | None:
        """Return the replacement of the group that was `skipped` last: `empty` with the group's GTID, so that no number is missing;
        nothing where it can have none. None: the policy for GTIDs decides."""
        return None

    @abstractmethod
    def check_unfinished(self, group: SourceGroup, *, is_followed: bool) -> None:
        """Check a group that must be left out, as it has no end because the source crashed. `is_followed`: another follows in its file.

        Raises: Untranslatable where some of it may have been kept.
        """

    @abstractmethod
    def source_started(self) -> None:
        """Note that the source was started before the next group (`created` of the file's format description is not 0): no temporary
        table exists."""

    @abstractmethod
    def source_went_on(self, *, decided: bool) -> None:
        """Note that the next file begins with `created` 0 in its format description. `decided`: an operator decided that a view
        continues there whatever was lost.

        Raises: Untranslatable where the file before ended inside a transaction of which replicas of the source have some part.
        """

    def of_source(self, server_version: str) -> "GroupRules":
        """Return the rules that a file of such a server needs: one that is no newer than the target needs fewer checks. Both know the
        same, and `state` is the same."""
        return self

    @abstractmethod
    def state(self) -> bytes:
        """Return all that `plan` has learned, to continue from here; the same knowledge gives the same bytes."""

    @abstractmethod
    def restore(self, state: bytes) -> None:
        """Set the knowledge to `state` and nothing else. b"": nothing."""

    def after_source(self, state: bytes) -> bytes:
        """Return the state where another source continues, with `state` that of the former one's end. Raises: Untranslatable."""
        return b""
