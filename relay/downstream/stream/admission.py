"""The admission of a dump: the checks of a request, its refusals, and the dump that it becomes."""

import contextlib
from collections.abc import Iterator
from typing import Final, Protocol

from protocol.commands import BinlogDump
from protocol.errors import ErrorCode, Malformed
from protocol.gtid.dump_request import BinlogDumpGtid
from protocol.kernel.codes import EDGES, KEEP, STRIP
from relay.archive.archive import Archive
from relay.archive.read.file_reads import FileReads
from relay.archive.storage.archive_errors import ArchiveDamaged, ArchiveError
from relay.archive.storage.replica_marks import Mark
from relay.downstream.request.dump_request import DumpRequest
from relay.downstream.request.refusal import damage_refusal, refusal, shown_name
from relay.downstream.request.replica_variables import replica_checksum, variable
from relay.downstream.request.request_checks import check_request
from relay.downstream.start.across_gap import check_ahead, check_start, loses_gtids, note_follower
from relay.downstream.start.by_gtid import find_gtid_start, gtid_request
from relay.downstream.start.by_position import PositionHost, find_position_start
from relay.downstream.start.gtid_request import GtidRequest
from relay.downstream.start.next_generation import GenerationSwitch, GtidSwitch, PositionSwitch
from relay.downstream.start.place_after import PlaceSearches
from relay.downstream.start.segment import Segment, SegmentHost, SegmentOpener, just_removed, missing_file
from relay.downstream.stream.dump import Dump, DumpOptions, DumpOwner, StreamHost
from relay.downstream.stream.resume_range import ResumeRange
from relay.fairness.client_threads import in_turn

_MIN_HEARTBEAT_S: Final = 0.001
_LONGEST_HEARTBEAT_NS: Final = 10**18
_MODES: Final = {"tbm": KEEP, "strip": STRIP, "edges": EDGES}


class AdmissionHost(SegmentHost, PositionHost, StreamHost, Protocol):
    """The parts of the server that the admission needs."""

    reads: FileReads
    place_searches: PlaceSearches


class AdmittedDump:
    """A request that is served. It keeps the file open where the stream begins, until the dump closes it, or `drop`.

    by_gtid: the requested GTIDs; None: the request was by file and position.
    """

    def __init__(
        self,
        host: AdmissionHost,
        request: DumpRequest,
        segment: Segment,
        opener: SegmentOpener,
        by_gtid: GtidRequest | None,
    ) -> None:
        self._host = host
        self._request = request
        self._segment = segment
        self._opener = opener
        self._by_gtid = by_gtid
        variables = request.variables
        self.options = DumpOptions(
            heartbeat_s=_heartbeat_s(variable(variables, "source_heartbeat_period", "master_heartbeat_period")),
            first_rotate_checksum=replica_checksum(variables) == "CRC32",
            takes_checksums=replica_checksum(variables) is not None,
            ends_at_end=request.command.ends_at_end,
            mode=_MODES[request.markers],
            semi_sync=request.wants_semi_sync,
            annotations=request.wants_annotations,
        )

    def described(self) -> dict[str, object]:
        """Return the fields that the log shows of the dump as it starts."""
        return {
            "file": self._segment.file.name,
            "offset": self._segment.offset,
            "by_gtid": self._by_gtid is not None,
            "resumed_in_transaction": self._segment.resumes,
            "heartbeat_s": self.options.heartbeat_s,
            "semi_sync": self.options.semi_sync,
        }

    def prepare(self, owner: DumpOwner) -> Dump:
        """Create the dump, which sends nothing before `begin`. If this raises, `drop` must still be called.

        Raises: PositionRefused.
        """
        switch = self._switch()
        mark = self._begin_mark()
        try:
            resume = ResumeRange(mark, self._segment.offset, owner.unread_bytes) if mark is not None else None
            return Dump(self._segment, self._host, owner, self.options, resume, switch)
        except BaseException:
            if mark is not None:
                mark.end()
            raise

    def _switch(self) -> GenerationSwitch | None:
        """Return how the stream continues after the last file of its generation; None: it ends there. Raises: PositionRefused."""
        host, reading = self._host, self._segment.generation
        if not host.archive.holds(reading):
            raise just_removed(self._segment.file.name)
        if self._by_gtid is not None:
            return GtidSwitch(host.archive, reading, host.gtid_lookup, self._opener, self._by_gtid)
        return PositionSwitch(host.archive, reading, host.place_searches) if not self.options.ends_at_end else None

    def _begin_mark(self) -> Mark | None:
        """Return the replica's mark; None for one that asks by GTID and reports itself where it continues."""
        identity, segment = self._request.identity, self._segment
        if identity is None or self._by_gtid is not None:
            return None
        with _archive_errors_refused(self._host.archive, self._request.command):
            return segment.generation.replicas.begin(identity, segment.file.name, segment.offset)

    def drop(self) -> None:
        """Close the file: the dump is not begun after all."""
        self._host.reads.close(self._segment.opened)


async def admit(host: AdmissionHost, request: DumpRequest) -> AdmittedDump:
    """Decide about a request; this may wait for a position that must still arrive.

    Raises: PositionRefused, with the replica's message; also for an archive that cannot be read.
    """
    with _archive_errors_refused(host.archive, request.command):
        return await _admit(host, request)


@contextlib.contextmanager
def _archive_errors_refused(archive: Archive, command: BinlogDump | BinlogDumpGtid) -> Iterator[None]:
    """Report errors of the archive to the replica, which may try again."""
    try:
        yield
    except ArchiveDamaged as error:
        raise damage_refusal(error, archive.current.damage_advice) from error
    except ArchiveError as error:
        text = f"binlog-relay cannot read its archive: {error}"
        raise refusal(text, ErrorCode.ER_UNKNOWN_ERROR) from error
    except (OSError, Malformed) as error:
        place = f"{shown_name(command.file)}:{command.offset}: " if command.file else ""
        text = f"{place}binlog-relay cannot read its archive: {error}"
        raise refusal(text, ErrorCode.ER_UNKNOWN_ERROR) from error


async def _admit(host: AdmissionHost, request: DumpRequest) -> AdmittedDump:
    if request.facts.unreached is not None:
        # Also if the source was reached meanwhile: the client's greeting would not match its stream.
        raise refusal(request.facts.unreached(), ErrorCode.ER_UNKNOWN_ERROR)
    command, opener = request.command, SegmentOpener(host, request)
    if isinstance(command, BinlogDump) and not request.by_gtid:
        check_request(command, request.variables)
        opener.check(request.facts.flavour)
        return AdmittedDump(host, request, await find_position_start(command, request, host, opener), opener, None)
    opener.check(request.facts.flavour)
    by_gtid = gtid_request(request, host.gtid_lookup)
    if loses_gtids(host.archive):
        await in_turn(lambda: check_ahead(host.archive, by_gtid.reported(), request.identity))
    wait_s = 0.0 if command.ends_at_end else host.position_wait_s
    try:
        start = await find_gtid_start(by_gtid, host.gtid_lookup, wait_s=wait_s, next_move=host.next_move)
    except FileNotFoundError as error:
        raise missing_file(error, host.archive) from error
    check_start(host.archive, start.generation, start.first_file)
    segment = await opener.open(start.generation, start.first_file, filter=start)
    note_follower(host.archive, start.generation, request.identity)
    return AdmittedDump(host, request, segment, opener, by_gtid)


def _heartbeat_s(value: object) -> float:
    """Return seconds from a variable in nanoseconds; 0 (none) for what is no number. Servers accept no period below 1 ms."""
    try:
        period_ns = int(str(value)) if value is not None else 0
    except ValueError:
        return 0.0
    return max(min(period_ns, _LONGEST_HEARTBEAT_NS) / 1e9, _MIN_HEARTBEAT_S) if period_ns > 0 else 0.0
