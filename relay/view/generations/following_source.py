"""May a view go on where the archive goes on with another source? Only where what its replicas have is known by GTID.

1. no gap before it that somebody accepted
2. replicas of the view follow by GTID, and by no number that the view gave: the other source may have given other ones
3. it follows on the last that the view was made of, with its first file
4. each of its transactions has a GTID of its own: that is found out when they are copied
5. of a MariaDB: rows tell what the replicas have, with what its own binlogs define

What both sources wrote stands in both generations. Replicas are sent it once, as with the archive itself.
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
    """Why the view does not go on with `later`; None: it does, if its rules can. made_to: the end of the source before; next_gno: of
    the view."""
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
    """Whether the view has all that there was before `later`, by its GTIDs: the files that would tell it by position are gone."""
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
    """The file with which a generation began that has one before it; None: it is not there any more."""
    file, origin = generation.files[0] if generation.files else None, generation.origin
    return file if file is not None and origin is not None and origin.file == file.name else None
