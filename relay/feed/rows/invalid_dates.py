"""Dates that no lake can hold, such as 0000-00-00 and 2020-02-00: they are written as NULL, if the settings say so, and counted.

The count is a property, which is no part of the commit with the rows. So it says of which commit its last part is: a part whose commit was not made,
as the process ended in between, does not count.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from relay.feed.rows.feed_place import FeedOffset

INVALID_DATES: Final = "binlog-relay.invalid-dates"
"""This property of a table has the number of dates that were written as NULL: `before` a commit, and `more` in the commit with the place `at`."""
NULL: Final = "null"
"""This value of `invalid_dates` writes invalid dates as NULL; otherwise they set the table aside."""


@dataclass(slots=True)
class NullDates:
    """The number of invalid dates in a stretch of changes."""

    count: int = 0


def null_dates(properties: Mapping[str, str], place: FeedOffset | None) -> int:
    """Return how many invalid dates were written as NULL into a table that is at `place`."""
    known = json.loads(properties.get(INVALID_DATES) or "null")
    if known is None:
        return 0
    committed = place is not None and known["at"] <= place.version
    return int(known["before"]) + (int(known["more"]) if committed else 0)


def with_null_dates(
    properties: Mapping[str, str], place: FeedOffset | None, more: int, at: FeedOffset
) -> dict[str, str]:
    """Return the property to set before `more` of them are committed at the place `at`; `place` is the table's."""
    facts = {"before": null_dates(properties, place), "more": more, "at": at.version}
    return {INVALID_DATES: json.dumps(facts)}
