"""The tables that a command names."""

from collections.abc import Sequence

from protocol.sql.tables.source_table import TableName
from relay.config.table_patterns import readings
from relay.feed.engine import FeedEngine
from relay.feed.rows.feed_place import FeedOffset
from relay.feed.rows.feed_stop import FeedStop


def named_tables(engine: FeedEngine, names: Sequence[str], place: FeedOffset) -> list[TableName]:
    """Return the fed tables of these names; of several that a name with dots may mean, one that the archive knows up to a place.

    Raises: FeedStop.
    """
    keys = []
    for name in names:
        fed = [key for key in readings(name) if engine.choice(key)]
        if not fed:
            raise FeedStop(
                "table_not_fed",
                name,
                "The settings do not feed it.",
                "Give SCHEMA.TABLE of a table that `tables` names.",
            )
        known = set(engine.reading.names(place)) if len(fed) > 1 else set()
        keys.append(next((key for key in fed if key in known), fed[0]))
    return keys
