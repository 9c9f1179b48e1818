"""Statements after which all rows of a table are known, whatever was before: it has none."""

from collections.abc import Iterable

from relay.feed.rows.feed_place import FeedOffset
from relay.feed.statements.logged_changes import CREATED, DROPPED, TRUNCATED, DdlChange


def empties(one: DdlChange) -> bool:
    """Return whether a table has no row after a statement: DROP, TRUNCATE, and a CREATE TABLE that fails where there is one."""
    return one.action in (DROPPED, TRUNCATED) or (one.action == CREATED and not one.if_not_exists)


def emptied_at(definitions: Iterable[DdlChange], after: FeedOffset) -> FeedOffset | None:
    """Return the start of the last statement after a place that empties the table of these definitions; None if there is none."""
    return max((one.start for one in definitions if empties(one) and one.start > after), default=None)
