"""The known facts about the tables whose rows an archive contains: column types, primary keys, engines."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from protocol.errors import ProtocolError
from relay.audit.readiness.defined_tables import read_table_map
from relay.audit.runner.audit import Audit
from relay.binlog_tables.plan.packed_store import store_of
from relay.binlog_tables.plan.recorded import reported_schema
from relay.schema_history.schema_record import RecordedSchema

_TOLD: Final = "has_primary_key boolean, has_dates boolean, checks array<string>"


def _told_keys(audit: Audit) -> list[tuple[str, str, bool]]:
    """Return the tables by the relay's record and statements: schema, table, whether it has a primary key; for tables of several
    sources that of the last one."""
    store = store_of(audit.options.archive)
    newest = {file.path.rpartition("/")[0]: file for file in audit.files}
    found: dict[tuple[str, str], tuple[str, str, bool]] = {}
    for directory, file in newest.items():
        schema: RecordedSchema = reported_schema(store, directory or ".", file.path.rpartition("/")[2], file.end)
        for table in schema.latest():
            found[table.schema, table.name] = (table.schema, table.name, bool(table.primary_key))
    return list(found.values())


def mapped_tables(audit: Audit) -> DataFrame:
    """Return a row for each different Table_map: its facts, and its first place. The primary key is included as far as it is known.

    Columns: schema, table, has_primary_key, has_dates, checks (names), file, position, time.
    """
    return audit.shared("mapped_tables", lambda: audit.keep(_find_mapped_tables(audit)))


def _find_mapped_tables(audit: Audit) -> DataFrame:
    maps = audit.read("table_maps", "file", "position", "time", "schema", "table", "table_map")
    first = (
        maps.where("table_map IS NOT NULL")
        .groupBy("schema", "table", "table_map")
        .agg(audit.first_of("position", "time").alias("first"))
        .selectExpr(
            "schema", "table", "table_map", "first.file AS file", "first.position AS position", "first.time AS time"
        )
    )
    told = F.udf(_read, _TOLD, useArrow=False)(F.col("table_map"))
    mapped = first.withColumn("told", told).selectExpr("schema", "table", "told.*", "file", "position", "time")
    recorded = audit.frame_of("schema string, table string, recorded boolean", _told_keys(audit))
    return (
        mapped.join(F.broadcast(recorded), ["schema", "table"], "left")
        .withColumn("has_primary_key", F.coalesce("has_primary_key", "recorded"))
        .drop("recorded")
    )


def _read(body: bytes) -> tuple[bool | None, bool, list[str]]:
    """Return the facts of a Table_map; this runs once for each distinct one."""
    try:
        table = read_table_map(bytes(body))
    except ProtocolError:  # The level findings has it
        return None, False, []
    return table.has_primary_key, table.has_dates, [check.name for check in table.checks()]
