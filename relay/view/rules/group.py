"""A transaction of the source as the rules see it, and what they make of it."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol


class GroupEvent(NamedTuple):
    """An event of the group. offset: in the source's file; length: with its checksum; flags: as archived, with markers."""

    offset: int
    length: int
    type: int
    flags: int
    timestamp: int
    server_id: int


class SourceGroup(NamedTuple):
    """[start, stop) of `file`. events: all of it in order where `is_whole`; of a long group only its first and last event and
    those that may need a rule: Query events that are no plain INSERT, UPDATE, DELETE or REPLACE, events of unusual types.

    body: an event's bytes behind its header, without its checksum. post_lengths: of the file's format description, by type
    code (256 bytes). server_version: of it, as "5.6.24-log". number: how many files and groups came before is no business of
    the rules: the same group gives the same answer but for `TableEngines`.
    """

    file: str
    start: int
    stop: int
    events: Sequence[GroupEvent]
    is_whole: bool
    body: Callable[[GroupEvent], bytes]
    post_lengths: bytes
    server_version: str


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


class OutGroup(NamedTuple):
    """One transaction of the view: its events in order, without a GTID event in front where `gtid` is "new".

    gtid: "new": one is put in front, by the view's policy; "source": the first piece is the source's own GTID event.
    """

    pieces: Sequence[Copy | New]
    gtid: Literal["new", "source"] = "new"


class StopReason(NamedTuple):
    """Why a view cannot go on before a group. name: snake_case, as in docs/ERRORS.md. text: what is wrong with which statement or
    table, one sentence. error: the number that a replica would stop with; 0: it would not, and differ in silence. advice:
    the ways on."""

    name: str
    text: str
    error: int
    advice: str


class CannotBeKept(Exception):
    """The group cannot be translated soundly."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.text)
        self.reason = reason


class GroupRules(Protocol):
    """The rules of one view, with what they know of tables from the definitions that went by.

    For `plan` are the groups with
    - an event of a type in `look_at`, or an event that opens or closes no group as it should;
    - a Query that is no plain INSERT, UPDATE, DELETE or REPLACE, nor BEGIN, COMMIT, SAVEPOINT (so: definitions, account statements,
      ROLLBACK at the end, ROLLBACK TO), or one with an error code;
    - a change in the schema `mysql`: a Table_map of it, a Query with it as default database or with `mysql` in the first 128 bytes of
      its text;
    - where `wants_statements`: any Query but BEGIN and COMMIT, and any Execute_load_query; but for plain statements that `watched`
      leaves out.
    """

    @property
    def wants_statements(self) -> bool:
        """Whether every statement matters now (tables without transactions are known), or only definitions and the like."""

    @property
    def watched(self) -> bytes | None:
        """With `wants_statements`, for `ViewCopy.watch`: of which tables plain statements matter; None: of all. The same object as
        long as it is the same."""

    @property
    def look_at(self) -> bytes:
        """256 bytes, by type code: 1: a group with such an event is for `plan`; 0: it may be copied. Fixed for a view."""

    def plan(self, group: SourceGroup) -> list[OutGroup]:
        """What becomes of it; empty: nothing at all. What it defines is known from now on.

        Raises: CannotBeKept, and nothing is known that was not before.
        """

    def skipped(self, group: SourceGroup) -> None:
        """A decision leaves the group out of the view; what it defines at the source is known from now on."""

    def source_started(self) -> None:
        """The source was started anew before the next group (`created` of the file's format description is not 0): temporary tables
        are gone."""

    def state(self) -> bytes:
        """All that `plan` has learned, to go on from here; the same knowledge gives the same bytes."""

    def restore(self, state: bytes) -> None:
        """Knows what `state` says and nothing else. b"": nothing."""
