"""Events counted by file, type and boundary: one pass that the audits `boundaries`, `continuity` and `readiness` share."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from relay.audit.runner.audit import Audit

VIOLATES = "finding = 'boundary_violation'"
_KEY = ("file", "type", "type_code", "boundary", "inferred", "stamped")


def event_counts(audit: Audit) -> DataFrame:
    """Return the counts of events, of those that violate the table of boundaries and of those without a CRC, with their first and last
    places."""
    return audit.shared("event_counts", lambda: audit.keep(_counted(audit)))


def _counted(audit: Audit) -> DataFrame:
    audit.step("Counting events")
    events = audit.read("events", *_KEY, "position", "end", "time", "crc", "finding").where("type IS NOT NULL")
    return events.groupBy(*_KEY).agg(
        F.count("*").alias("events"),
        F.count_if(F.expr(VIOLATES)).alias("violations"),
        F.count_if(F.expr("crc = 'none'")).alias("unchecked"),
        F.min("position").alias("first_position"),
        F.min("time").alias("first_time"),
        F.max("position").alias("last_position"),
        F.max("end").alias("last_end"),
        F.max("time").alias("last_time"),
    )
