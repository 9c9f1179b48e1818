"""The behaviour at an accepted gap in the source's binlogs. No replica passes it silently.

by GTID, and has all before it     continues after it, on the same connection
by GTID, and some is missing       ends with ERR 1236 at the gap
by file and position               ends with ERR 1236 at the gap, which names the place after it
has what the source has lost       ends with ERR 1236, wherever it asks
"""

from typing import Final

from protocol.errors import PositionRefused
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidPosition
from protocol.position import Position, binlog_number
from relay.archive.archive import Archive
from relay.archive.gaps.accepted_gap import AcceptedGap
from relay.archive.gaps.lost_gtids import lost_and_held
from relay.archive.generation import Generation
from relay.archive.storage.replica_marks import ReplicaIdentity
from relay.downstream.request.refusal import refusal

_SHOWN_CHARACTERS: Final = 60
_ANEW: Final = "Copy the data to the replica again"


def place_behind(archive: Archive, following: Generation, gap: AcceptedGap) -> Position:
    """Return where a replica by file and position continues after the gap, as its request must name it."""
    name = gap.to.file
    if any(one is not following and one.file(name) is not None for one in archive.all):
        name = f"g{following.number:04d}.{name}"
    return Position(name, gap.to.offset)


def at_gap(end: Position, gap: AcceptedGap, place: Position) -> PositionRefused:
    """Return ERR 1236 for a replica by file and position that has everything before the gap. MySQL 5.6 shows 320 characters of it."""
    change = f"CHANGE MASTER TO MASTER_LOG_FILE='{place.file}', MASTER_LOG_POS={place.offset}"
    if not gap.has_place:
        text = "the binlogs of another server go on there, and no file and position is known to follow"
        return refusal(
            f"{end} is where an accepted gap begins: {text}. Follow by GTID, or copy the data to the replica again"
        )
    if gap.is_whole:
        text = f"Nothing is missing there: when the replica has applied all, {change}"
        return refusal(f"{end} is where an accepted gap begins. {text}")
    text = f"{_ANEW}, or lose what is missing, knowingly: {change}"
    return refusal(f"{end} is where an accepted gap begins: {_missing(gap)}. {text}. {_named('Missing', gap.missing)}")


def lacks_some(gap: AcceptedGap, refused: PositionRefused | None = None) -> PositionRefused:
    """Return ERR 1236 for a GTID replica that does not have what is missing. refused: how a source would word it."""
    missing = _named("It lacks", gap.missing)
    said = f". A source would say: {refused.what}" if refused is not None else ""
    return refusal(f"{gap.fork} is where an accepted gap begins: {_missing(gap)}. {missing}{_ANEW}{said}")


def check_start(archive: Archive, generation: Generation, file: str) -> None:
    """Refuse a GTID replica that would begin with what the source has lost: what follows instead is missing.

    generation, file: where it would begin by its GTIDs. Raises: PositionRefused.
    """
    behind = gap_behind(archive, generation)
    if behind is not None and binlog_number(file) > binlog_number(behind[1].fork.file):
        raise lacks_some(behind[1])


def is_ahead(end: Position, gap: AcceptedGap, what: str = "") -> PositionRefused:
    """Return ERR 1236 for a replica that has what the source has lost. end: the position up to which it has it; what: GTIDs."""
    named = f": {_cut(what)}" if what else ""
    return refusal(
        f"The replica, at {end}, has transactions that the source has lost{named}. {_ANEW}, or take them out by hand (the "
        f"archive has them) and start behind the accepted gap, which is from {gap.fork} to {gap.to}"
    )


def _missing(gap: AcceptedGap) -> str:
    return f"binlogs {gap.are_missing} up to {gap.to}"


def _named(what: str, gtids: str) -> str:
    return f"{what}: {_cut(gtids)}. " if gtids else ""


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def gap_behind(archive: Archive, generation: Generation) -> tuple[Generation, AcceptedGap] | None:
    """Return the generation after this one and the gap between them; None: there is none."""
    following = archive.after(generation)
    return None if following is None or following.gap is None else (following, following.gap)


def loses_gtids(archive: Archive) -> bool:
    """Return whether the source lost transactions with GTIDs at any gap."""
    return any(one.gap is not None and one.gap.lost for one in archive.all)


def check_ahead(archive: Archive, held: GtidSet | GtidPosition, identity: ReplicaIdentity | None) -> None:
    """Refuse a GTID replica that has what the source has lost. In a thread: sets may be large. Raises: PositionRefused.

    A replica that already follows after the gap is known by its marks: the source has assigned the numbers again, and it has the new
    ones.
    """
    for generation in archive.all:
        gap = generation.gap
        if gap is None or not gap.lost or _follows(archive, generation, identity):
            continue
        found = lost_and_held(gap, held, archive.executed, generation.gtids.purged)
        if found:
            raise is_ahead(gap.after, gap, found)


def note_follower(archive: Archive, generation: Generation, identity: ReplicaIdentity | None) -> None:
    """Note that a GTID replica is served from `generation`, perhaps after a gap. Raises: ArchiveError."""
    behind = any(one.gap is not None and one.gap.lost and one.number <= generation.number for one in archive.all)
    if identity is None or not behind or generation.replicas.knows(identity):
        return
    first = generation.files[0].name if generation.files else ""
    if first:
        generation.replicas.begin(identity, first, 4).end()


def _follows(archive: Archive, behind: Generation, identity: ReplicaIdentity | None) -> bool:
    return identity is not None and any(
        one.number >= behind.number and one.replicas.knows(identity) for one in archive.all
    )
