"""Findings about single rows, which only a reader of rows meets."""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from relay.audit.runner.audit import Audit, place_of
from relay.audit.runner.audit_result import AuditFinding, Severity
from relay.binlog_tables.plan.read_finding import TEXTS

ROW_FINDINGS: Final = {
    "table_map_missing": "Rows of tables that nothing names",
    "column_type_unknown": "Rows of tables with an unknown column type",
    "row_malformed": "Rows that pass their event's end",
    "value_malformed": "Values that cannot be of their column's type",
    "value_uncertain": "Values whose sign or character set is not known",
    "row_too_large": "Rows that are too large to be shown",
}
_SEVERITIES: Final[dict[str, Severity]] = {"value_uncertain": "warning"}
HAS_FINDING: Final = f"finding IN ({', '.join(map(repr, ROW_FINDINGS))})"


def row_findings(audit: Audit, table: Column, *, values: bool) -> list[AuditFinding]:
    """Make one pass over the rows for findings about them; of tables in --tables, and of unknown tables.

    `values` includes their values, which are checked only if they are read.
    """
    images = ("before", "after") if values else ()
    columns = ("file", "position", "time", "schema", "table", *images, "finding", "finding_position")
    wrong = audit.keep(
        audit.read("rows", *columns)
        .where(HAS_FINDING)
        .drop(*images)
        .where(F.col("table").isNull() | audit.wants_table(table))
        .withColumn("position", F.coalesce("finding_position", "position"))
        .withColumn("name", F.concat_ws(".", "schema", "table"))
    )
    found = []
    for row in wrong.groupBy("finding").count().orderBy("finding").collect():
        name = row["finding"]
        first = wrong.where(F.col("finding") == name).orderBy(*audit.file_order, "position").limit(audit.options.limit)
        places = [place_of(one, one["name"]) for one in first.collect()]
        found.append(
            AuditFinding(name, _SEVERITIES.get(name, "error"), ROW_FINDINGS[name], TEXTS[name], row["count"], places)
        )
    return found
