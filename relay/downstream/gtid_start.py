"""Where a replica begins that asks by GTID, MySQL's COM_BINLOG_DUMP_GTID or MariaDB's `@slave_connect_state`.

All that takes time (a set of 16 MB, thousands of files, the start file's transactions) is done in the thread of
`GtidLookup`; the event loop gets a `GtidStart`.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from protocol.artificial import HEADER_BYTES
from protocol.binlog.event_type import EventType
from protocol.commands import BinlogDump, DumpFlag
from protocol.errors import ErrorCode, Malformed, PositionRefused
from protocol.gtid.codec import decode_gtid_set
from protocol.gtid.dump_decision import AnonymousInTheWay, StillAwaited, mariadb_start, mysql_start
from protocol.gtid.dump_refusals import anonymous_refused, mode_refused
from protocol.gtid.dump_request import BinlogDumpGtid
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidPosition
from protocol.gtid.mysql_gtid import parse_uuid
from protocol.kernel.gtid_skip import GtidSkip
from protocol.resultset import Value
from protocol.statements import SourceFacts
from relay.downstream.file_reads import STEP_BYTES
from relay.downstream.gtid_lookup import ArchivedGtids, FileExtent, GtidLookup
from relay.downstream.gtid_walk import GtidWalk, MariadbWalk, MysqlWalk
from relay.downstream.positions import FIRST_OFFSET, refusal, shown_name

_RECHECK_S: Final = 0.05
_LONGEST_FORMAT_DESCRIPTION: Final = 65536
_HEARTBEAT_V2_SINCE: Final = (8, 0, 26)
# What stands at a file's head before its first transaction.
_HEAD: Final = {
    EventType.PREVIOUS_GTIDS,
    EventType.GTID_LIST,
    EventType.BINLOG_CHECKPOINT,
    EventType.START_ENCRYPTION,
}


@dataclass(frozen=True, slots=True)
class GtidStart:
    """The stream: file `file`, its format description as stored (None: nothing of the file is published), and the walk.

    first_is_skipped: `created` of the format description is to be 0. jump: from the end of the file's head to the first
    transaction that is sent.
    """

    file: str
    format_description: bytes | None
    first_is_skipped: bool
    walk: GtidWalk | None
    jump: tuple[int, int] | None


def asks_by_gtid(request: BinlogDump | BinlogDumpGtid, facts: SourceFacts, user_variables: dict[str, Value]) -> bool:
    """Whether this request is answered here. A MariaDB replica of a MySQL source has no GTIDs to ask by."""
    return isinstance(request, BinlogDumpGtid) or (
        facts.is_mariadb and user_variables.get("slave_connect_state") is not None
    )


async def find_gtid_start(
    request: BinlogDump | BinlogDumpGtid,
    user_variables: dict[str, Value],
    facts: SourceFacts,
    gtids: GtidLookup,
    *,
    wait_s: float,
    next_move: Callable[[], asyncio.Event],
) -> GtidStart:
    """Where to begin. Waits up to `wait_s` for what the replica has and the archive may still get.

    Raises: PositionRefused; OSError and Malformed for an archive that cannot be read.
    """
    if isinstance(request, BinlogDumpGtid):
        question = _mysql_question(request, facts, gtids.source_uuid)
    else:
        question = _mariadb_question(user_variables)
    loop = asyncio.get_running_loop()
    wait_s = 0.0 if request.ends_at_end else wait_s
    deadline = loop.time() + wait_s
    while True:
        moved = next_move()
        try:
            start = await gtids.ask(question)
        except StillAwaited as awaited:
            if loop.time() >= deadline:
                raise awaited.refused if gtids.source_is_silent else _not_here_yet(awaited, wait_s) from None
        else:
            if start is not None:
                return start
            if loop.time() >= deadline:
                text = f"binlog-relay has no binlog yet (waited {wait_s:g} s). The replica may try again"
                raise refusal(text, ErrorCode.ER_UNKNOWN_ERROR)
        left = deadline - loop.time()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(moved.wait(), max(left, 0.0))
        await asyncio.sleep(min(_RECHECK_S, max(left, 0.0)))


def _not_here_yet(awaited: StillAwaited, wait_s: float) -> PositionRefused:
    """ERR 1105, which makes a replica try again: the source may have it, the relay has not."""
    text = (
        f"What the replica has did not reach binlog-relay (waited {wait_s:g} s), it may try again. A source would say: "
    )
    return refusal(text + awaited.refused.message, ErrorCode.ER_UNKNOWN_ERROR)


def _mysql_question(
    request: BinlogDumpGtid, facts: SourceFacts, source_uuid: str | None
) -> Callable[[ArchivedGtids], GtidStart | None]:
    if facts.gtid_mode != "ON":
        raise mode_refused(facts.gtid_mode)
    own = parse_uuid(source_uuid) if source_uuid else None
    version = facts.version_numbers
    takes_v2 = bool(request.flags & DumpFlag.HEARTBEAT_V2_OR_ANNOTATE) and version >= _HEARTBEAT_V2_SINCE
    decoded: list[GtidSet] = []

    def question(archive: ArchivedGtids) -> GtidStart | None:
        try:
            # Once, however often the question is asked again.
            held = decoded[0] if decoded else decode_gtid_set(request.held)
        except Malformed:
            text = "Malformed GTID set encoding."
            raise PositionRefused(ErrorCode.ER_MALFORMED_GTID_SET_ENCODING, text) from None
        decoded[:] = [held]
        named = _named_file(request, archive)
        if not archive.files or archive.mysql is None:
            return None
        try:
            start = mysql_start(held, archive.mysql, source_uuid=own, version=version, named=named)
        except AnonymousInTheWay as met:
            extent = archive.files[met.number]
            raise anonymous_refused(extent.name, extent.first_anonymous()) from None
        extent = archive.files[start.number]
        head = _FileHead.read(extent)
        if not start.held_here and not start.later:
            return GtidStart(extent.name, head.format_description, False, None, None)
        intervals = start.held.intervals_by_key()
        first, passed = _first_sent(extent, held, GtidSkip(intervals), head.end)
        walk = MysqlWalk(intervals, start.held_here, later=start.later, takes_v2=takes_v2)
        if not passed:
            return GtidStart(extent.name, head.format_description, False, walk, None)
        walk.jumped(passed)
        return GtidStart(extent.name, head.format_description, True, walk, (head.end, first))

    return question


def _mariadb_question(user_variables: dict[str, Value]) -> Callable[[ArchivedGtids], GtidStart | None]:
    text = str(user_variables.get("slave_connect_state") or "")
    try:
        position = GtidPosition.from_text(text)
    except Malformed as error:
        # As a source says it; it looks at the variable when the dump is asked for.
        text = f"Out of memory or malformed slave request when obtaining start position from GTID state: {error}"
        raise refusal(text) from None
    if user_variables.get("slave_until_gtid") is not None:
        text = "binlog-relay does not serve START SLAVE UNTIL master_gtid_pos: use START SLAVE and stop it by hand"
        raise refusal(text)
    strict = _is_on(user_variables.get("slave_gtid_strict_mode"))
    ignore_duplicates = _is_on(user_variables.get("slave_gtid_ignore_duplicates"))

    def question(archive: ArchivedGtids) -> GtidStart | None:
        if not archive.files or archive.mariadb is None:
            return None
        start = mariadb_start(position, archive.mariadb, ignore_duplicates=ignore_duplicates)
        extent = archive.files[start.number]
        head = _FileHead.read(extent)
        walk = MariadbWalk(position, start.awaited, strict=strict) if start.awaited else None
        return GtidStart(extent.name, head.format_description, not start.is_new, walk, None)

    return question


def _is_on(value: Value) -> bool:
    return value is not None and str(value) not in ("", "0")


def _named_file(request: BinlogDumpGtid, archive: ArchivedGtids) -> int | None:
    """The file that the request names; None: it leaves that to the source. Raises: PositionRefused."""
    if not request.file:
        return None
    if request.offset != FIRST_OFFSET:
        raise refusal(
            f"{shown_name(request.file)}:{request.offset}: with a set of GTIDs binlog-relay starts at position 4 of a file"
        )
    names = archive.files.names
    if request.file in names:
        return names.index(request.file)
    held = f"it holds {names[0]} to {names[-1]}" if names else "it holds no file yet"
    raise refusal(
        f"{shown_name(request.file)}: binlog-relay has no such file, {held}. "
        "Could not find first log file name in binary log index file"
    )


@dataclass(frozen=True, slots=True)
class _FileHead:
    """What comes before a file's first transaction; `end`: the offset behind it."""

    format_description: bytes | None
    end: int

    @classmethod
    def read(cls, extent: FileExtent) -> "_FileHead":
        """Raises: OSError; Malformed."""
        if extent.end <= FIRST_OFFSET:
            return cls(None, FIRST_OFFSET)
        fd = os.open(extent.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            header = os.pread(fd, HEADER_BYTES, FIRST_OFFSET)
            size = int.from_bytes(header[9:13], "little")
            if (
                header[4:5] != bytes((EventType.FORMAT_DESCRIPTION,))
                or not HEADER_BYTES <= size <= _LONGEST_FORMAT_DESCRIPTION
            ):
                raise Malformed(f"{extent.name} does not begin with a format description")
            head = cls(os.pread(fd, size, FIRST_OFFSET), FIRST_OFFSET + size)
            while head.end + HEADER_BYTES <= extent.end:
                header = os.pread(fd, HEADER_BYTES, head.end)
                size = int.from_bytes(header[9:13], "little")
                if header[4] not in _HEAD or size < HEADER_BYTES or head.end + size > extent.end:
                    break
                head = replace(head, end=head.end + size)
            return head
        finally:
            os.close(fd)


def _first_sent(extent: FileExtent, held: GtidSet, skip: GtidSkip, offset: int) -> tuple[int, int]:
    """Offset of the first event from `offset` on that is sent, or the published end; how many transactions come before it.

    NAME.gtx tells the stretch of 64 KiB, so that no more than one has to be walked over. Raises: OSError; Malformed.
    """
    stretches = extent.stretches()
    passed = 0
    if stretches is not None and len(stretches):
        lacking = stretches.first_lacking(held)
        known = lacking.start if lacking is not None else stretches.stop
        if offset < known <= extent.end:
            offset, passed = known, stretches.transactions_before(known)
    buffer = bytearray(STEP_BYTES)
    with extent.path.open("rb", buffering=0) as file:
        while offset < extent.end:
            file.seek(offset)
            size = file.readinto(memoryview(buffer)[: min(STEP_BYTES, extent.end - offset)]) or 0
            at = 0
            while at < size:
                try:
                    end = skip.next_range(buffer, at, size)
                except ValueError as error:
                    raise Malformed(f"{extent.name}: {error}, offset {offset}") from error
                if end == at:
                    break
                if skip.sending:
                    return offset + at, passed + skip.skipped
                at = end
            if at == 0:
                raise Malformed(f"{extent.name} has no whole event at {offset}")
            offset += at
    return offset, passed + skip.skipped
