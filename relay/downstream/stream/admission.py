"""The admission of a dump: what a request is checked for, what it is refused with, and the dump it becomes."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from protocol.auth.account import Account
from protocol.binlog.made_events import HEADER_BYTES, patch_format_description
from protocol.commands import BinlogDump
from protocol.errors import ErrorCode, Malformed, PositionRefused
from protocol.gtid.dump_request import BinlogDumpGtid
from protocol.kernel.codes import EDGES, KEEP, STRIP
from protocol.resultset import Value
from protocol.semisync import wants_semi_sync
from protocol.statements import SourceFacts
from relay.archive.archive import Generations
from relay.archive.generation import Archive
from relay.archive.read.file_reads import BufferPool, FileReads, OpenFile
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.replica_marks import Mark, ReplicaIdentity
from relay.downstream.gtid_filter.gtid_lookup import GtidLookup
from relay.downstream.request.refusal import refusal, shown_name
from relay.downstream.request.replica_variables import replica_checksum, variable
from relay.downstream.request.request_checks import FIRST_OFFSET, check_checksum, check_flavour, check_request
from relay.downstream.start.by_gtid import asks_by_gtid, find_gtid_start
from relay.downstream.start.by_position import find_position_start
from relay.downstream.start.gtid_plan import GtidStart
from relay.downstream.start.next_generation import GtidPassage, Passage, PositionPassage
from relay.downstream.start.place_after import PlaceSearches
from relay.downstream.stream.acknowledgements import Acknowledgements
from relay.downstream.stream.dump import Dump, DumpOptions, DumpOwner
from relay.downstream.stream.resume_stretch import ResumeStretch

_LONGEST_FORMAT_DESCRIPTION: Final = 65536
_MIN_HEARTBEAT_S: Final = 0.001
_LONGEST_HEARTBEAT_NS: Final = 10**18
_MODES: Final = {"tbm": KEEP, "strip": STRIP, "edges": EDGES}


class AdmissionHost(Protocol):
    """What the admission needs of the server."""

    reads: FileReads
    outputs: BufferPool
    position_wait_s: float
    gtid_lookup: GtidLookup
    place_searches: PlaceSearches

    generations: Generations

    def shown_server_id(self, archive: Archive) -> int:
        """Of the source whose binlogs these are, as replicas are to see it."""

    def check_replica(self, server_id: int, server_uuid: str) -> None:
        """Refuses a replica that has somebody else's ids. Raises: PositionRefused."""

    async def until_left(self, identity: ReplicaIdentity) -> None:
        """Until it is known what this replica had read when it ended a stream of its own just now."""

    def wait_at_edge(self, dump: Dump) -> None:
        """`dump.pump` is to be called when the archive grows."""

    def next_move(self) -> asyncio.Event:
        """Is set when the archive grows from now on."""


@dataclass(frozen=True, slots=True)
class DumpRequest:
    """A request, and what its connection has said before it.

    variables: its user variables. facts: the source as it was greeted with. registered: the server_id that it registered
    as a replica with, None: it did not. uuid: empty for replicas without one.
    """

    asked: BinlogDump | BinlogDumpGtid
    variables: dict[str, Value]
    facts: SourceFacts
    account: Account | None
    registered: int | None
    uuid: str

    @property
    def identity(self) -> ReplicaIdentity | None:
        """By which the archive remembers what was sent to it; None for a client that is no replica."""
        return ReplicaIdentity(self.asked.server_id, self.uuid) if self.asked.server_id else None

    @property
    def by_gtid(self) -> bool:
        """Whether it says by GTID what it has."""
        return asks_by_gtid(self.asked, self.facts, self.variables)

    @property
    def wants_semi_sync(self) -> bool:
        """Whether it is to be asked for acknowledgements."""
        return self.facts.semi_sync and wants_semi_sync(self.variables) and not self.asked.ends_at_end

    @property
    def markers(self) -> str:
        """What its account is sent of boundary markers."""
        return self.account.markers if self.account is not None else "tbm"


@dataclass(frozen=True, slots=True)
class _Start:
    archive: Archive
    file: ArchivedFile
    offset: int
    resumes: bool
    gtid: GtidStart | None


class AdmittedDump:
    """A request that is served. Holds the file open where the stream begins, until the dump closes it, or `drop`."""

    def __init__(
        self, host: AdmissionHost, request: DumpRequest, start: _Start, opened: OpenFile, head: bytes | None
    ) -> None:
        self._host = host
        self._request = request
        self._start = start
        self._opened = opened
        self._head = head
        variables = request.variables
        self.options = DumpOptions(
            server_id=host.shown_server_id(start.archive),
            heartbeat_s=_heartbeat_s(variable(variables, "source_heartbeat_period", "master_heartbeat_period")),
            first_rotate_checksum=replica_checksum(variables) == "CRC32",
            takes_checksums=replica_checksum(variables) is not None,
            ends_at_end=request.asked.ends_at_end,
            mode=_MODES[request.markers],
        )

    def described(self) -> dict[str, object]:
        """What the log says of the dump as it starts."""
        return {
            "file": self._start.file.name,
            "offset": self._start.offset,
            "by_gtid": self._start.gtid is not None,
            "resumed_in_transaction": self._start.resumes,
            "heartbeat_s": self.options.heartbeat_s,
            "semi_sync": self._request.wants_semi_sync,
        }

    def prepare(self, owner: DumpOwner, accept: Callable[[], int], acknowledgements: Acknowledgements | None) -> Dump:
        """The dump, which sends nothing before `start`. `accept()` tells the protocol machine that the request is served,
        and returns the sequence number to go on with. Where this raises, `drop` is still to be called.

        Raises: PositionRefused.
        """
        start = self._start
        passage = self._passage()  # it may refuse, which can only be told before `accept`
        mark = self._begin_mark()
        resume = ResumeStretch(mark, start.offset, owner.unread_bytes) if mark is not None else None
        try:
            return Dump(
                archive=start.archive,
                reads=self._host.reads,
                outputs=self._host.outputs,
                owner=owner,
                options=self.options,
                file=start.file,
                opened=self._opened,
                offset=start.offset,
                sequence=accept(),
                resume=resume,
                at_edge=self._host.wait_at_edge,
                acknowledgements=acknowledgements,
                guide=start.gtid.guide if start.gtid is not None else None,
                walk=start.gtid.walk if start.gtid is not None else None,
                jump=start.gtid.jump if start.gtid is not None else None,
                find_jump=self._host.gtid_lookup.find_jump,
                passage=passage,
            )
        except BaseException:
            if mark is not None:
                mark.end()
            raise

    def _passage(self) -> Passage | None:
        """How the stream goes on behind the last file of its generation; None: it ends there. Raises: PositionRefused."""
        host, request, gtid = self._host, self._request, self._start.gtid
        reading = host.generations.of_archive(self._start.archive)
        if reading is None:
            raise _just_removed(self._start.file.name)
        if gtid is None and self.options.ends_at_end:
            return None
        if gtid is None:
            return PositionPassage(host.generations, reading, host.place_searches)

        def check(file: ArchivedFile) -> None:
            if request.registered is not None:
                host.check_replica(request.registered, request.uuid)
            check_flavour(file.flavour, request.variables)
            check_checksum(file.name, file.checksum, request.variables)

        return GtidPassage(
            host.generations,
            reading,
            host.gtid_lookup,
            host.reads,
            gtid.asked,
            strip_markers=request.markers == "strip",
            check=check,
            server_id=host.shown_server_id,
        )

    def _begin_mark(self) -> Mark | None:
        """Who asks by GTID says itself where it is to go on."""
        identity, start = self._request.identity, self._start
        if identity is None or start.gtid is not None:
            return None
        with _archive_errors_refused(self._request.asked):
            return start.archive.replicas.begin(identity, start.file.name, start.offset)

    def start(self, dump: Dump) -> None:
        """Sends the stream's head, and what there is."""
        dump.begin(self._head, is_counted=self._start.gtid is not None)

    def drop(self) -> None:
        """The dump is not begun after all."""
        self._host.reads.close(self._opened)


async def admit(host: AdmissionHost, request: DumpRequest) -> AdmittedDump:
    """Decides about a request; may wait for a position that is still to arrive.

    Raises: PositionRefused, with what the replica is told; also for an archive that cannot be read.
    """
    with _archive_errors_refused(request.asked):
        return await _admit(host, request)


@contextlib.contextmanager
def _archive_errors_refused(asked: BinlogDump | BinlogDumpGtid) -> Iterator[None]:
    """What is wrong with the archive is told to the replica, which may try again."""
    try:
        yield
    except ArchiveError as error:
        text = f"binlog-relay cannot read its archive: {error}"
        raise refusal(text, ErrorCode.ER_UNKNOWN_ERROR) from error
    except (OSError, Malformed) as error:
        text = f"{shown_name(asked.file)}:{asked.offset}: binlog-relay cannot read its archive: {error}"
        raise refusal(text, ErrorCode.ER_UNKNOWN_ERROR) from error


async def _admit(host: AdmissionHost, request: DumpRequest) -> AdmittedDump:
    asked, variables = request.asked, request.variables
    if isinstance(asked, BinlogDump) and not request.by_gtid:
        check_request(asked, variables)
    check_flavour(request.facts.flavour, variables)
    if request.registered is not None:
        # mysqlbinlog --stop-never registers no replica, and its server_id is 1 unless it is told another.
        host.check_replica(request.registered, request.uuid)
    start = await _find_start(host, request)
    check_flavour(start.file.flavour, variables)
    check_checksum(start.file.name, start.file.checksum, variables)
    opened = host.reads.open(start.archive.path(start.file.name))
    try:
        return AdmittedDump(host, request, start, opened, await _head(request, start, opened))
    except BaseException:
        host.reads.close(opened)
        raise


async def _find_start(host: AdmissionHost, request: DumpRequest) -> _Start:
    asked, wait_s = request.asked, host.position_wait_s
    if isinstance(asked, BinlogDump) and not request.by_gtid:
        found = await find_position_start(
            asked,
            request.facts,
            request.identity,
            host.generations,
            host.gtid_lookup,
            wait_s=wait_s,
            next_move=host.next_move,
            until_left=host.until_left,
        )
        return _Start(found.archive, found.file, found.offset, found.resumes, None)
    start = await find_gtid_start(
        asked, request.variables, request.facts, host.gtid_lookup, wait_s=wait_s, next_move=host.next_move
    )
    file = start.archive.file(start.file)
    if file is None:
        raise _just_removed(start.file)
    return _Start(start.archive, file, FIRST_OFFSET, False, start)


def _just_removed(name: str) -> PositionRefused:
    text = f"{name} was removed from binlog-relay's archive just now. The replica may try again"
    return refusal(text, ErrorCode.ER_UNKNOWN_ERROR)


async def _head(request: DumpRequest, start: _Start, opened: OpenFile) -> bytes | None:
    """The format description that the stream begins with; None: the one that the file begins with is sent as it is."""
    strip = request.markers == "strip"
    if start.gtid is not None:
        stored = start.gtid.format_description
        if stored is None:
            return None
        return patch_format_description(
            stored, mid_file=False, strip_markers=strip, clear_created=start.gtid.first_is_skipped
        )
    if start.offset <= FIRST_OFFSET:
        return None
    stored = await asyncio.get_running_loop().run_in_executor(None, _read_format_description, opened)
    return patch_format_description(stored, mid_file=True, strip_markers=strip)


def _heartbeat_s(value: object) -> float:
    """Seconds from a variable in nanoseconds; 0 (none) for what is no number. Servers take no period below 1 ms."""
    try:
        period_ns = int(str(value)) if value is not None else 0
    except ValueError:
        return 0.0
    return max(min(period_ns, _LONGEST_HEARTBEAT_NS) / 1e9, _MIN_HEARTBEAT_S) if period_ns > 0 else 0.0


def _read_format_description(opened: OpenFile) -> bytes:
    """The file's first event. In a thread. Raises: OSError, Malformed."""
    head = os.pread(opened.fd, HEADER_BYTES, FIRST_OFFSET)
    size = int.from_bytes(head[9:13], "little")
    if not HEADER_BYTES <= size <= _LONGEST_FORMAT_DESCRIPTION:
        raise Malformed(f"{opened.path.name} does not begin with a format description")
    return os.pread(opened.fd, size, FIRST_OFFSET)
