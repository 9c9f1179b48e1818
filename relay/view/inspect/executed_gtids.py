"""All that is executed, by GTID, once everything before a place of a view is: what a new replica there is to begin with."""

from pathlib import Path
from typing import Final

from protocol.errors import Malformed
from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.position import Position
from relay.archive.catalog.catalog import Catalog
from relay.archive.gtids.gtid_recorder import collect
from relay.archive.storage.files import CATALOG_NAME, FileLayer
from relay.view.rules.settings import ViewSettings
from relay.view.view_place import PlaceUnknown, ViewPlace

_MAKE_AGAIN: Final = "Make the view anew: 'binlog-relay view rebuild'."


def executed_before(view: Path, settings: ViewSettings, place: ViewPlace) -> GtidSet:
    """view: the directory of the generation that `place` is in. By the head of the one file and its index, so the number of files
    does not matter.

    The numbers that the view assigned are compared with `place.gno`: one that is too high loses transactions in silence, one too
    low gives errors of duplicate keys. Blocking. Raises: PlaceUnknown where they contradict each other; CatalogUnreadable; OSError.
    """
    if settings.gtids == "anonymous":
        return GtidSet()
    held = held_before(view, place.view)
    if settings.gtids != "assign":
        return held
    key = settings.uuid.bytes
    own = GtidSetBuilder()
    if place.gno:
        own.add_run(key, 1, place.gno + 1)
    assigned = own.snapshot()
    counted = GtidSet.from_intervals({key: held.intervals_by_key().get(key, b"")})
    first = settings.start.next_gno if settings.start is not None else 1
    before = GtidSetBuilder()
    if first > 1:
        before.add_run(key, 1, first)
    if counted | before.snapshot() != assigned | before.snapshot():
        raise PlaceUnknown(
            f"{place.view} stands behind transaction {place.gno} by the view's map, and behind {counted.line or 'none'} by "
            f"its binlog. {_MAKE_AGAIN}"
        )
    return held | assigned


def held_before(directory: Path, position: Position) -> GtidSet:
    """What an archive's own file says at this boundary: its head, and what stands in it up to there. Blocking.

    Raises: PlaceUnknown; CatalogUnreadable; OSError.
    """
    catalog = Catalog.open_read_only(directory / CATALOG_NAME)
    try:
        file = catalog.file(position.file)
    finally:
        catalog.close()
    path = directory / position.file
    if file is None:
        raise PlaceUnknown(f"{path} is not in the catalog of the view. {_MAKE_AGAIN}")
    size = path.stat().st_size
    if position.offset > (file.end if file.sealed else size):
        raise PlaceUnknown(f"{position} is not made yet: the view's file has {size} bytes. Wait, and ask again.")
    file.end = position.offset
    try:
        collector, _blocks = collect(FileLayer(), path, file, position.offset)
        before, inside = collector.before, collector.inside()
    except Malformed as error:
        raise PlaceUnknown(f"{path}: its GTIDs cannot be read: {error}. {_MAKE_AGAIN}") from error
    held = before if isinstance(before, GtidSet) else GtidSet()
    return held | inside if isinstance(inside, GtidSet) else held
