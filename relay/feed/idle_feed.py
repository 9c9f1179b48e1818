"""The question whether a feed has anything to do, answered by `_feed` and the archive's end, without opening a table.

What `_feed` says of a table is true or old: if all tables are said to be at the archive's end, nothing is left.
"""

import json
from collections.abc import Mapping

from relay.feed.archive_reading import ArchiveReading
from relay.feed.lake.lake_table import Lake
from relay.feed.progress_table import ProgressTable
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.settings.fed_tables import FedTables
from relay.feed.settings.feed_settings import FeedSettings


def idle_place(reading: ArchiveReading, lake: Lake, choice: FedTables, settings: FeedSettings) -> FeedOffset | None:
    """Return the archive's end if all tables are there and none has trouble; None if the feed must look at its tables."""
    named = json.dumps([choice.tables, choice.exclude])
    progress = ProgressTable(lake, named, settings.modes, reading.begun, reading.told)
    fed = [key for key in progress.tables() if choice(key)]
    if not fed or progress.stop is not None or choice.unmatched(fed):
        return None
    newest = reading.newest()
    aside: Mapping[tuple[str, str], str] = progress.aside()
    if any(key in aside or progress.done(key, kind) != newest for key in fed for kind in settings.modes):
        return None
    if any((now := reading.begun(place)) is not None and now != begun for place, begun in progress.binlogs()):
        return None
    kept = [(kind, *key) for key in fed for kind in progress.kinds(key).intersection(settings.modes)]
    return None if lake.missing(kept) else newest
