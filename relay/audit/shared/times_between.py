"""When the first and the last transaction of an archive were: what the steps of charts over time go by."""

from datetime import datetime

from pyspark.sql import functions as F

from relay.audit.runner.audit import Audit

Times = tuple[datetime | None, datetime | None]


def times_between(audit: Audit) -> Times:
    """The earliest and the latest time of transactions. One pass over the level that costs least."""
    return audit.shared("times_between", lambda: _find(audit))


def _find(audit: Audit) -> Times:
    audit.step("Looking at times")
    row = (
        audit.read("transactions", "first_time", "last_time").agg(F.min("first_time"), F.max("last_time")).collect()[0]
    )
    return row[0], row[1]
