"""Where a replica begins that asks by GTID, MySQL's COM_BINLOG_DUMP_GTID or MariaDB's `@slave_connect_state`.

All that takes time (a set of 16 MB, thousands of files, the start file's transactions) is done in the thread of
`GtidLookup`; the event loop gets a `GtidStart`.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from protocol.commands import BinlogDump, DumpFlag
from protocol.errors import ErrorCode, Malformed, PositionRefused
from protocol.gtid.codec import decode_gtid_set
from protocol.gtid.dump_decision import AnonymousInTheWay, StillAwaited, mariadb_start, mysql_start
from protocol.gtid.dump_refusals import anonymous_refused, mode_refused
from protocol.gtid.dump_request import BinlogDumpGtid
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainTwice, GtidPosition
from protocol.gtid.mysql_gtid import parse_uuid
from protocol.kernel.gtid_skip import GtidSkip
from protocol.resultset import Value
from protocol.statements import SourceFacts
from relay.downstream.file_extent import FileExtent
from relay.downstream.file_reads import STEP_BYTES
from relay.downstream.gtid_lookup import ArchivedGtids, GtidLookup
from relay.downstream.gtid_walk import GtidWalk, Jump
from relay.downstream.mariadb_walk import Awaited, MariadbWalk, Until
from relay.downstream.mysql_walk import MysqlWalk
from relay.downstream.positions import FIRST_OFFSET, refusal, shown_name
from relay.downstream.stream_guide import MariadbGuide, MysqlGuide, StreamGuide

_RECHECK_S: Final = 0.05
_HEARTBEAT_V2_SINCE: Final = (8, 0, 26)
_UNTIL_BEFORE_SINCE: Final = (11, 3)


@dataclass(frozen=True, slots=True)
class GtidStart:
    """The stream: file `file`, its format description as stored (None: nothing of the file is published), and the walk.

    first_is_skipped: `created` of the format description is to be 0. jump: from the end of the file's head to the first
    transaction that is sent. guide: what may come later.
    """

    file: str
    format_description: bytes | None
    first_is_skipped: bool
    walk: GtidWalk | None
    jump: Jump | None
    guide: StreamGuide


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
    """Where to begin. Waits up to `wait_s` for what the replica has and the archive may still get: that is for the source to
    say, which is asked once.

    Raises: PositionRefused; OSError and Malformed for an archive that cannot be read.
    """
    if isinstance(request, BinlogDumpGtid):
        question = _mysql_question(request, facts, gtids)
    else:
        question = _mariadb_question(user_variables, facts, gtids)
    loop = asyncio.get_running_loop()
    wait_s = 0.0 if request.ends_at_end else wait_s
    deadline = loop.time() + wait_s
    asked = False
    while True:
        moved = next_move()
        try:
            start = await gtids.ask(question)
        except StillAwaited as awaited:
            if not asked:
                asked = True
                source = await gtids.ask_source()
                if source is not None and source.lacks(awaited.awaited):
                    raise awaited.refused from None
            if loop.time() >= deadline:
                raise _not_here_yet(awaited, wait_s) from None
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
    request: BinlogDumpGtid, facts: SourceFacts, gtids: GtidLookup
) -> Callable[[ArchivedGtids], GtidStart | None]:
    if facts.gtid_mode != "ON":
        raise mode_refused(facts.gtid_mode)
    own = parse_uuid(gtids.source_uuid) if gtids.source_uuid else None
    version = facts.version_numbers
    takes_v2 = bool(request.flags & DumpFlag.HEARTBEAT_V2_OR_ANNOTATE) and version >= _HEARTBEAT_V2_SINCE
    guide = MysqlGuide(gtids)
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
        head = extent.head()
        if not start.held_here and not start.later:
            return GtidStart(extent.name, head.format_description, False, None, None, guide)
        intervals = start.held.intervals_by_key()
        walk = MysqlWalk(start.held, start.held_here, intervals=intervals, later=start.later, takes_v2=takes_v2)
        jump = _exact_jump(extent, walk.find_jump(extent), GtidSkip(intervals), head.end)
        return GtidStart(extent.name, head.format_description, jump is not None, walk, jump, guide)

    return question


def _mariadb_question(
    user_variables: dict[str, Value], facts: SourceFacts, gtids: GtidLookup
) -> Callable[[ArchivedGtids], GtidStart | None]:
    position = _position_said(user_variables, "slave_connect_state")
    strict = _is_on(user_variables.get("slave_gtid_strict_mode"))
    ignore_duplicates = _is_on(user_variables.get("slave_gtid_ignore_duplicates"))
    asked_until: Until | None = None
    if user_variables.get("slave_until_gtid") is not None:
        last = _position_said(user_variables, "slave_until_gtid")
        before = _is_on(user_variables.get("slave_gtid_until_before_gtids"))
        asked_until = Until(list(last), before and facts.version_numbers >= _UNTIL_BEFORE_SINCE)

    def question(archive: ArchivedGtids) -> GtidStart | None:
        if not archive.files or archive.mariadb is None:
            return None
        start = mariadb_start(position, archive.mariadb, ignore_duplicates=ignore_duplicates)
        extent = archive.files[start.number]
        head = extent.head()
        guide = MariadbGuide(gtids, start.strange)
        if not start.awaited and asked_until is None:
            return GtidStart(extent.name, head.format_description, not start.is_new, None, None, guide)
        until = asked_until.behind(archive.mariadb.befores[start.number]) if asked_until is not None else None
        walk = MariadbWalk(Awaited(position, start.awaited, strict), until)
        jump = walk.find_jump(extent)
        return GtidStart(extent.name, head.format_description, not start.is_new, walk, jump, guide)

    return question


def _position_said(user_variables: dict[str, Value], name: str) -> GtidPosition:
    """A position that the replica said. Raises: PositionRefused as a source, which looks when the dump is asked for."""
    try:
        return GtidPosition.from_text(str(user_variables.get(name) or ""))
    except DomainTwice as error:
        raise refusal(str(error), ErrorCode.ER_DUPLICATE_GTID_DOMAIN) from None
    except Malformed as error:
        raise refusal(f"Could not parse GTID list: @{name}: {error}", ErrorCode.ER_INCORRECT_GTID_STATE) from None


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


def _exact_jump(extent: FileExtent, jump: Jump | None, skip: GtidSkip, head_end: int) -> Jump | None:
    """The jump, up to the first event that is sent, or the published end; None: the first transaction is sent.

    NAME.gtx told the stretch of 64 KiB, so that no more than one has to be walked over. Raises: OSError; Malformed.
    """
    offset, passed = (jump.target, jump.transactions) if jump is not None else (head_end, 0)
    buffer = bytearray(STEP_BYTES)
    sending = False
    with extent.path.open("rb", buffering=0) as file:
        while offset < extent.end and not sending:
            file.seek(offset)
            size = file.readinto(memoryview(buffer)[: min(STEP_BYTES, extent.end - offset)]) or 0
            at = 0
            while at < size:
                try:
                    end = skip.next_range(buffer, at, size)
                except ValueError as error:
                    raise Malformed(f"{extent.name}: {error}, offset {offset}") from error
                sending = end > at and skip.sending
                if end == at or sending:
                    break
                at = end
            if at == 0 and not sending:
                raise Malformed(f"{extent.name} has no whole event at {offset}")
            offset += at
    passed += skip.skipped
    return Jump(head_end, offset, passed) if passed else None
