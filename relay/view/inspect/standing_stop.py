"""Where and why a view stands stopped, from outside of the process that makes it: by the ledgers of the view and of the mirror."""

import json
from pathlib import Path

from protocol.position import Position
from relay.archive.inspect.listing import read_ledger, read_ledgers
from relay.view.maker import STOPPED, ViewStop
from relay.view.rules.group import StopReason
from relay.view.view import skips_of
from relay.view.view_place import ViewPlace


def standing_stop(archive: Path, view: Path, name: str, made: ViewPlace | None) -> ViewStop | None:
    """archive, view: the directories of the source and of the view; made: up to where the view is made. Blocking.

    None: it did not stop, went on since, or somebody skipped what it stopped at. Raises: CatalogUnreadable; OSError; sqlite3.Error.
    """
    row = next((row for row in reversed(read_ledger(view)) if row.kind == STOPPED), None)
    if row is None or (made is not None and _is_behind(made.source, row.file, row.offset)):
        return None
    skips = skips_of([row for _number, row in read_ledgers(archive)], name)
    if row.offset in skips.get(row.file, {}):
        return None
    try:
        details = json.loads(row.details)
        reason = StopReason(str(details["reason"]), row.text, int(details["replica_error"]), "")
        return ViewStop(row.file, row.offset, int(details["group_stop"]), reason, row.time)
    except (ValueError, KeyError, TypeError):
        return ViewStop(row.file, row.offset, row.offset, StopReason(STOPPED, row.text, 0, ""), row.time)


def _is_behind(made: Position, file: str, offset: int) -> bool:
    return bool(file) and made > Position(file, offset)
