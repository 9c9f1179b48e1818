"""All GTIDs that are executed before a place of a view: a new replica there must begin with these."""

from pathlib import Path
from typing import Final

from protocol.errors import Malformed
from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.position import Position
from relay.archive.catalog.catalog import Catalog
from relay.archive.gtids.gtid_recorder import collect
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import CATALOG_NAME, StoredFile
from relay.binlog_file.gtids_before import gtids_before
from relay.packed_reads.archive_layer import layer_of
from relay.view.rules.settings import ViewSettings
from relay.view.view_place import PlaceUnknown, ViewPlace

_MAKE_AGAIN: Final = "Rebuild the view: 'binlog-relay view rebuild'."


def executed_before(view: Path, settings: ViewSettings, place: ViewPlace) -> GtidSet:
    """Return the set; `view` is the directory of the generation that `place` is in. It comes from the head of the one file and its
    index, so the number of files does not matter.

    The numbers that the view assigned are compared with `place.gno`: one that is too high silently loses transactions, one too low
    gives errors of duplicate keys. Blocking. Raises: PlaceUnknown where they contradict each other; CatalogUnreadable; OSError.
    """
    if settings.gtids == "anonymous":
        return GtidSet()
    held = held_before(view, place.view)
    if not settings.counts:
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
    """Return the GTIDs in an archive's own file at this boundary: those of its head, and of its transactions up to there. Blocking.

    Raises: PlaceUnknown; CatalogUnreadable; OSError.
    """
    catalog = Catalog.open_read_only(directory / CATALOG_NAME)
    try:
        file = catalog.file(position.file)
        files = catalog.files() if file is not None and not file.sealed else []
    finally:
        catalog.close()
    path = directory / position.file
    if file is None:
        # The catalog gets it a little later than it can be read.
        again = "Ask again in a moment. Where it stays so, rebuild the view: 'binlog-relay view rebuild'."
        raise PlaceUnknown(f"{path} is not in the catalog of the view, or not yet. {again}")
    size = layer_of(directory).size_of(path)
    if position.offset > (file.end if file.sealed else size):
        raise PlaceUnknown(f"{position} is not made yet: the view's file has {size} bytes. Wait, and ask again.")
    file.end = position.offset
    before, inside = _read(directory, file)
    if before is None and not inside:
        # The event with these is written when the source's file continues after its own head.
        earlier = [one for one in files if one.number < file.number]
        before, inside = _read(directory, earlier[-1]) if earlier else (None, inside)
    return before | inside if before is not None else inside


def _read(directory: Path, file: ArchivedFile) -> tuple[GtidSet | None, GtidSet]:
    """Return the head's set, None: there is none, and that of the file up to its `end`. Raises: PlaceUnknown; OSError."""
    path = directory / file.name
    try:
        collector, _blocks = collect(layer_of(directory), path, file, file.end)
        before, inside = collector.before, collector.inside()
        if before is None:  # maybe `end` is in the head, before the event with the set
            with StoredFile.open(layer_of(directory), path) as stored:
                before = gtids_before(stored, file.flavour, checksum=file.checksum == 1)
    except Malformed as error:
        raise PlaceUnknown(f"{path}: its GTIDs cannot be read: {error}. {_MAKE_AGAIN}") from error
    return before if isinstance(before, GtidSet) else None, inside if isinstance(inside, GtidSet) else GtidSet()
