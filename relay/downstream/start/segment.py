"""The position of a stream: one record, whatever brought the stream there, and the one place where its file is opened."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from protocol.binlog.encoded_events import patch_format_description
from protocol.binlog.event_type import EventType
from protocol.binlog.layout import FIRST_EVENT, TYPE_AT
from protocol.errors import ErrorCode, Malformed, PositionRefused
from protocol.kernel.event_check import EventCheck
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.read.checked_bytes import damaged
from relay.archive.read.file_reads import FileReads
from relay.archive.read.open_file import OpenFile
from relay.archive.storage.archive_errors import NOT_OF_A_FILE, ArchiveDamaged
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.replica_marks import ReplicaIdentity
from relay.binlog_file.head import read_start
from relay.downstream.gtid_filter.gtid_filter import GtidFilter
from relay.downstream.request.dump_request import DumpRequest
from relay.downstream.request.refusal import refusal
from relay.downstream.request.request_checks import check_checksum, check_flavour
from relay.fairness.client_threads import in_turn

_BEGINNING_BYTES: Final = 512
"""The bytes at a file's beginning that are read at once: more than its format description has."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The part of a stream in one file, from the first byte that is sent of it.

    offset: where it begins, as the Rotate before it says. head: the file's format description as this replica gets it; None: it is
    part of what is stored from `offset` on. filter: for a GTID replica, what is not sent of this generation; None: everything is
    sent. server_id: of the events that are generated here. resumes: `offset` is inside a transaction, where this replica's stream
    broke off.

    The owner of the segment closes `opened`.
    """

    generation: Generation
    file: ArchivedFile
    offset: int
    opened: OpenFile
    head: bytes | None
    filter: GtidFilter | None
    server_id: int
    resumes: bool = False

    @property
    def stored_from(self) -> int:
        """The offset of the first stored byte that is sent. At the file's beginning the head replaces the stored one."""
        return self.offset + len(self.head) if self.head is not None and self.offset <= FIRST_EVENT else self.offset

    def in_next_file(self, file: ArchivedFile, reads: FileReads) -> "Segment":
        """Return the same stream in the generation's next file, opened. Raises: ArchiveDamaged; OSError."""
        opened = open_file(self.generation, file, reads, FIRST_EVENT)
        return replace(self, file=file, offset=FIRST_EVENT, opened=opened, head=None, resumes=False)


class SegmentHost(Protocol):
    """The parts of the server that opening a file for a replica needs."""

    reads: FileReads

    def shown_server_id(self, generation: Generation) -> int:
        """Return the server_id that replicas are shown for the source of these binlogs."""

    def check_replica(self, server_id: int, server_uuid: str) -> None:
        """Refuse a replica whose ids collide with those of another server. Raises: PositionRefused."""


class SegmentOpener:
    """Opens the files that one replica's stream begins in: for its request, and in each later generation."""

    def __init__(self, host: SegmentHost, request: DumpRequest) -> None:
        self._host = host
        self._request = request

    @property
    def identity(self) -> ReplicaIdentity | None:
        """The identity of the replica; None for a client that is no replica."""
        return self._request.identity

    def check(self, flavour: str) -> None:
        """Refuse a replica that cannot read this flavour's events, or whose ids collide with another server's. Raises:
        PositionRefused.
        """
        request = self._request
        check_flavour(flavour, request.variables)
        if request.registered is not None:
            # mysqlbinlog --stop-never registers no replica, and its server_id is 1 by default.
            self._host.check_replica(request.registered, request.uuid)

    async def open(
        self,
        generation: Generation,
        name: str,
        offset: int = FIRST_EVENT,
        *,
        filter: GtidFilter | None = None,
        resumes: bool = False,
    ) -> Segment:
        """Open the stream that begins there. Raises: PositionRefused; ArchiveDamaged; OSError."""
        file = generation.file(name)
        if file is None:
            raise just_removed(name)
        self.check(file.flavour)
        check_checksum(name, file.checksum, self._request.variables)
        server_id = self._host.shown_server_id(generation)
        try:
            opened = open_file(generation, file, self._host.reads, offset)
            try:
                if opened.is_packed:
                    # No heartbeat can be sent after the Rotate that comes first, so anything slow is waited for before it.
                    await self._host.reads.here(opened, offset, _BEGINNING_BYTES)
                head = await self._head(file, offset, opened, filter)
            except BaseException:
                self._host.reads.close(opened)
                raise
        except ArchiveDamaged as error:
            generation.damaged_files.report(error)
            raise
        return Segment(generation, file, offset, opened, head, filter, server_id, resumes)

    async def _head(self, file: ArchivedFile, offset: int, opened: OpenFile, filter: GtidFilter | None) -> bytes | None:
        begins = offset <= FIRST_EVENT
        if begins and (filter is None or file.end <= FIRST_EVENT):
            return None
        try:
            if opened.is_packed:
                await self._host.reads.here(opened, 0, _BEGINNING_BYTES)
            stored = await in_turn(_read_format_description, opened, file)
        except Malformed as error:
            raise ArchiveDamaged(str(error), file=file.name, offset=FIRST_EVENT, boundary=FIRST_EVENT) from error
        return patch_format_description(
            stored,
            mid_file=not begins,
            strip_markers=self._request.markers == "strip",
            clear_created=filter is not None and filter.continues,
        )


def open_file(generation: Generation, file: ArchivedFile, reads: FileReads, offset: int) -> OpenFile:
    """Open the file for reading from `offset` on. One that ends too early after that is opened: its bytes are good.

    Raises: ArchiveDamaged if it is missing, may not be read, or ends before; OSError if the system cannot open any file now.
    """
    try:
        opened = reads.open(generation.path(file.name), generation.summed.of(file))
    except OSError as error:
        if error.errno in NOT_OF_A_FILE:
            raise
        what = f"it cannot be opened: {error.strerror}"
        raise ArchiveDamaged(what, file=file.name, offset=0, boundary=0) from error
    size = opened.size
    if size < min(max(offset, FIRST_EVENT + 1), file.end):
        reads.close(opened)
        what = f"the file has {size} bytes, {file.end} were archived"
        raise ArchiveDamaged(what, file=file.name, offset=size, boundary=0)
    return opened


def just_removed(name: str) -> PositionRefused:
    """Return ERR 1105 for a file that was removed while a stream was about to begin in it."""
    text = f"{name} was removed from binlog-relay's archive just now. The replica may try again"
    return refusal(text, ErrorCode.ER_UNKNOWN_ERROR)


def missing_file(error: FileNotFoundError, archive: Archive) -> PositionRefused | ArchiveDamaged:
    """Return the error for a request whose lookup found no file on the disk, by the file's name: a purge was faster, or the file is
    missing although the archive lists it, which is damage as for a request by position.
    """
    name = Path(error.filename).name
    for generation in archive.all:
        if generation.file(name) is not None:
            damage = ArchiveDamaged(f"it cannot be opened: {error.strerror}", file=name, offset=0, boundary=0)
            generation.damaged_files.report(damage)
            return damage
    return just_removed(name)


def _read_format_description(opened: OpenFile, file: ArchivedFile) -> bytes:
    """Return the file's first event, as it was archived: it gets a new checksum on its way, which would hide a change in it.

    In a thread. Raises: OSError; Malformed; ArchiveDamaged.
    """
    start = read_start(opened)
    if not start.is_whole or start.event[TYPE_AT] != EventType.FORMAT_DESCRIPTION:
        raise Malformed(f"{opened.path.name} does not begin with a format description")
    check = EventCheck()
    check.begin(FIRST_EVENT, file.checksum)
    if check.look(start.event, 0, len(start.event)):
        raise damaged(file.name, check, FIRST_EVENT)
    return start.event
