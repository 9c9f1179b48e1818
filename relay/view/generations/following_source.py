"""A view continues where the archive continues with another source only if the transactions of its replicas are known by GTID.

1. no accepted gap precedes it
2. replicas of the view follow by GTID, and by no number that the view assigned: the other source may have assigned other ones
3. it follows the last source from which the view was built, with its first file
4. each of its transactions has a GTID of its own: that is checked when they are copied
5. for a MariaDB, rows show what the replicas have, with the definitions in its own binlogs

Transactions that both sources wrote are in both generations. Replicas are sent them once, as with the archive itself.
"""

from protocol.gtid.gtid_set import GtidSet
from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.storage.archived_file import ArchivedFile
from relay.view.rules.settings import FIRST_GNO, ViewSettings
from relay.view.stops import source_stops
from relay.view.stops.stop_reason import StopReason


def why_not(later: Generation, made_to: Position, settings: ViewSettings, next_gno: int) -> StopReason | None:
    """Return why the view does not continue with `later`; None: it does, if its rules can. `made_to` is the end of the source before,
    `next_gno` the view's next number."""
    origin = later.origin
    if later.gap is not None:
        return source_stops.gap_in_archive(made_to.file)
    if settings.gtids == "anonymous":
        return source_stops.without_gtids(made_to.file)
    if settings.gtids == "assign" and next_gno != FIRST_GNO:
        return source_stops.numbers_assigned(made_to.file)
    if origin is None or later.identity is None:
        return source_stops.source_changed(made_to.file, "where its binlogs begin is not known any more")
    if (origin.after_file, origin.after_offset) != (made_to.file, made_to.offset) or first_file(later) is None:
        return source_stops.file_missing(f"what follows {made_to}")
    return None


def has_all_before(later: Generation, view: Archive, settings: ViewSettings) -> bool:
    """Return whether the view has, by its GTIDs, all that preceded `later`: the files that would show it by position are missing."""
    origin, executed, newest = later.origin, view.executed, view.current
    if origin is None or not isinstance(origin.state, GtidSet) or not isinstance(executed, GtidSet):
        return False
    if any(newest.gtids.has_anonymous(file.name) for file in newest.files):
        return False
    is_numbered = settings.uuid.bytes in executed.intervals_by_key()
    end = Position(origin.after_file, origin.after_offset)
    next_gno = FIRST_GNO + is_numbered
    return origin.state <= executed and why_not(later, end, settings, next_gno) is None


def first_file(generation: Generation) -> ArchivedFile | None:
    """Return the file with which a generation that follows another one began; None: it is missing."""
    file, origin = generation.files[0] if generation.files else None, generation.origin
    return file if file is not None and origin is not None and origin.file == file.name else None
