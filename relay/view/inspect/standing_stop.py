"""The place and reason of a view's stop, read outside of the process that builds it: from its stored stop and operators' decisions."""

import json
from pathlib import Path

from protocol.position import Position
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.catalog.generation_directories import FIRST
from relay.archive_inspection.listing import read_ledgers
from relay.view.stops.stop_reason import StopReason
from relay.view.stops.view_stop import STOPPED, StopUnknown, ViewStop, kept_stop
from relay.view.view_place import ViewPlace
from relay.view.view_skips import skips_of


def standing_stop(archive: Path, view: Path, name: str, made: ViewPlace | None) -> ViewStop | None:
    """Return the stop; `archive` and `view` are the directories of source and view; the view is built up to `made`. Blocking.

    None: it did not stop, went on since, or somebody skipped the group. Raises: CatalogUnreadable; OSError; sqlite3.Error.
    """
    try:
        stop = kept_stop(view)
        if stop is not None and stop.group_stop > stop.offset and made is not None and _is_passed(stop, made):
            # The relay was killed before it could record that it continued: that group is in the view.
            stop = None
    except StopUnknown:
        stop = _noted(view, made)
    if stop is None:
        return None
    skips = skips_of([row for _number, row in read_ledgers(archive)], name)
    return None if stop.offset in skips.get((stop.generation, stop.file), {}) else stop


def _noted(view: Path, made: ViewPlace | None) -> ViewStop | None:
    """Return the stop in the ledger of the view, which says where it stopped first, and not whether it continued."""
    row = next((row for _number, row in reversed(read_ledgers(view)) if row.kind == STOPPED), None)
    stop = None if row is None else _stop_of(row)
    return None if stop is None or (made is not None and _is_passed(stop, made)) else stop


def _stop_of(row: LedgerRow) -> ViewStop:
    try:
        details = json.loads(row.details)
        reason = StopReason(str(details["reason"]), row.text, int(details["replica_error"]), "")
        generation = int(details.get("generation", FIRST))
        return ViewStop(row.file, row.offset, int(details["group_stop"]), reason, row.time, generation)
    except (ValueError, KeyError, TypeError):
        return ViewStop(row.file, row.offset, row.offset, StopReason(STOPPED, row.text, 0, ""), row.time)


def _is_passed(stop: ViewStop, made: ViewPlace) -> bool:
    if stop.generation != made.source_generation:
        return stop.generation < made.source_generation
    return bool(stop.file) and made.source > Position(stop.file, stop.offset)
