"""Groups that a view leaves out by an operator's decision: these are rows in the ledger of the source's archive.

They are kept there because the view's own directory may be deleted: the view is rebuilt with the same decisions.
"""

import json
import time
from collections.abc import Sequence
from typing import Final

from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.catalog.generation_directories import FIRST
from relay.view.stops.view_stop import ViewStop

SKIPPED: Final = "view_skip"
"""The ledger's kind of such a decision."""

Skips = dict[tuple[int, str], dict[int, int]]
"""By generation of the source's archive and file: the offsets of groups that a view leaves out, each with where the group ends."""


def skips_of(ledger: Sequence[LedgerRow], view: str) -> Skips:
    """Return the groups that this view leaves out. `ledger` contains the rows of all generations of the source's archive."""
    found: Skips = {}
    for row in ledger:
        if row.kind != SKIPPED:
            continue
        try:
            details = json.loads(row.details)
            if details["view"] == view:
                add_skip(found, int(details.get("generation", FIRST)), row.file, row.offset, int(details["group_stop"]))
        except (ValueError, KeyError, TypeError):
            continue
    return found


def add_skip(skips: Skips, generation: int, file: str, offset: int, group_stop: int) -> None:
    """Add one skip."""
    skips.setdefault((generation, file), {})[offset] = group_stop


def skip_row(view: str, stop: ViewStop, by: str) -> LedgerRow:
    """Return the decision to leave out the group at which the view is stopped, as a row of the ledger. `by` names who decided."""
    details = json.dumps({"view": view, "group_stop": stop.group_stop, "generation": stop.generation})
    of = "" if stop.generation == FIRST else f" of generation {stop.generation}"
    text = f"View {view} leaves out this transaction{of}: {stop.reason.text}; skipped by {by}"
    return LedgerRow(time.time(), SKIPPED, stop.file, stop.offset, text, details)
