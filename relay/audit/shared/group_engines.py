"""Groups by the engines of the tables that they change: for the audits `mixing` and `readiness`."""

from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from protocol.sql.engines import names_of_engines
from relay.audit.runner.audit import Audit
from relay.audit.shared.engines import (
    HIGH,
    Closed,
    EngineSpan,
    engine_spans,
    of_name,
    recorded_engines,
)
from relay.audit.shared.statement_tables import changed_table, defined_table, named_engine
from relay.binlog_tables.plan.packed_store import store_of

_PLACE: Final = "struct<number: int, offset: bigint>"

# These sums are over changes in a group: a change's table, how it was written, whether the table's engine has transactions.
_SUMS: Final = {
    "transactional": "coalesce(bool_or(transactional), false)",
    "plain": "coalesce(bool_or(NOT transactional), false)",
    "unknown": "coalesce(bool_or(transactional IS NULL), false)",
    "first_transactional": "min(CASE WHEN transactional THEN position END)",
    "first_statement": "min(CASE WHEN format = 'statement' THEN position END)",
    "late": "max(CASE WHEN NOT transactional AND format = 'statement' THEN position END)",
    "late_table": "max_by(table, CASE WHEN NOT transactional AND format = 'statement' THEN position END)",
    "tables": "array_sort(collect_set(table))",
    "formats": "array_sort(collect_set(format))",
    "time": "min(time)",
}


@dataclass(frozen=True, slots=True)
class ChangedGroups:
    """The groups: `all` of them, as level transactions has them; `judged`, (file, start, transactional, plain, unknown …) of those that
    change a table of --tables; `changes`, (file, start, position, time, table, format, transactional); and `engines`, what is known."""

    all: DataFrame
    judged: DataFrame
    changes: DataFrame
    engines: list[EngineSpan]


def changed_groups(audit: Audit) -> ChangedGroups:
    """Make one pass over transactions for how groups end, one over events and one over statements for what changes which table."""
    return audit.shared("changed_groups", lambda: _find_changed_groups(audit), by_tables=True)


def _find_changed_groups(audit: Audit) -> ChangedGroups:
    audit.step("Looking at how groups end")
    groups = audit.read("transactions", "file", "start", "first_time", "kind", "tables", "closed_by", "events")
    groups = groups.where("events IS NOT NULL")
    numbers = [(file.name, number) for number, file in enumerate(audit.files)]
    files = F.broadcast(audit.frame_of("file string, number int", numbers))
    alone = _closed(groups.where("kind = 'row'").selectExpr("file", "start", "closed_by", "tables"), files)
    audit.step("Reading statements")
    changes = audit.keep(_changes(audit, groups).join(files, "file", "left"))
    audit.step("Comparing engines")
    recorded = recorded_engines(store_of(audit.options.archive), audit.files)
    defined = _defined(changes)
    engines = engine_spans(recorded, defined, alone)
    made = _with_engines(audit, changes, engines)
    if made.where("transactional IS NULL").limit(1).collect():
        alone += _closed(_single(changes, groups), files)
        engines = engine_spans(recorded, defined, alone)
        made = _with_engines(audit, changes, engines)
    judged = (
        made.where("start IS NOT NULL")
        .withColumn("asked", audit.wants_table(F.col("table")))
        .groupBy("file", "start")
        .agg(*(F.expr(sql).alias(name) for name, sql in _SUMS.items()), F.bool_or("asked").alias("asked"))
        .where("asked")
        .drop("asked")
    )
    return ChangedGroups(groups, audit.keep(judged), made, engines)


def _changes(audit: Audit, groups: DataFrame) -> DataFrame:
    """Return (file, start, position, time, table, format, engine): a row for each table that a group's statement changes or defines."""
    events = audit.once(audit.read("events", "file", "position", "time", "type", "transaction", "schema", "table"))
    rows = events.where("type = 'Table_map'").select(
        "file",
        F.col("transaction").alias("start"),
        "position",
        "time",
        F.concat_ws(".", "schema", "table").alias("table"),
        F.lit("row").alias("format"),
        F.lit(None).cast("string").alias("engine"),
    )
    texts = audit.read("statements", "file", "position", "time", "transaction", "schema", "digest_text")
    texts = texts.where("digest_text IS NOT NULL")
    texts = texts.withColumn("changed", changed_table()).withColumn("defined", defined_table())
    statements = texts.where("changed IS NOT NULL OR defined IS NOT NULL").select(
        "file",
        F.col("transaction").alias("start"),
        "position",
        "time",
        F.coalesce("changed", "defined").alias("table"),
        F.when(F.col("changed").isNotNull(), "statement").otherwise("definition").alias("format"),
        F.when(F.col("changed").isNull(), named_engine()).alias("engine"),
    )
    # Table_maps inside compressed transactions are no events; the place of the rows in the group does not matter there.
    packed = groups.select(
        "file",
        "start",
        F.lit(None).cast("bigint").alias("position"),
        F.col("first_time").alias("time"),
        F.explode("tables").alias("table"),
        F.lit("row").alias("format"),
        F.lit(None).cast("string").alias("engine"),
    )
    return rows.unionByName(statements).unionByName(packed)


def _place(offset: Column) -> Column:
    """Return a place; files that appeared while the audit ran come after the others."""
    number = F.coalesce("number", F.lit(HIGH[0] - 1))
    return F.struct(number.alias("number"), F.coalesce(offset, F.lit(0)).cast("bigint").alias("offset"))


def _defined(changes: DataFrame) -> list[EngineSpan]:
    """Return the statements that give a table an engine of another kind than before, each up to the next such statement."""
    name = F.lower("engine")
    kind = F.when(name.isin(_names(True)), True).when(name.isin(_names(False)), False)
    order = Window.partitionBy("table").orderBy("place")
    turns = (
        changes.where("format = 'definition' AND engine IS NOT NULL")
        .select("table", "engine", _place(F.col("position")).alias("place"), kind.alias("kind"))
        .where("kind IS NOT NULL")
        .withColumn("before", F.lag("kind").over(order))
        .where("before IS NULL OR before <> kind")
        .withColumn("next", F.lead("place").over(order))
    )
    return [
        EngineSpan(
            row["table"],
            tuple(row["place"]),
            HIGH if row["next"] is None else tuple(row["next"]),
            of_name(row["engine"], "a statement in the archive"),
        )
        for row in turns.orderBy("table", "place").collect()
    ]


def _single(changes: DataFrame, groups: DataFrame) -> DataFrame:
    """Return groups in statement format whose statements change one table, with that table."""
    tables = (
        changes.where("format = 'statement' AND start IS NOT NULL")
        .groupBy("file", "start")
        .agg(F.collect_set("table").alias("tables"))
    )
    closed = groups.where("kind = 'statement'").select("file", "start", "closed_by")
    return tables.join(closed, ["file", "start"])


def _closed(groups: DataFrame, files: DataFrame) -> list[Closed]:
    """Return how groups of one table end."""
    rows = (
        groups.where("size(tables) = 1")
        .join(files, "file", "left")
        .groupBy(F.expr("tables[0]").alias("table"), "closed_by")
        .agg(F.min(_place(F.col("start"))).alias("first"))
        .collect()
    )
    return [Closed(row["table"], row["closed_by"], tuple(row["first"])) for row in rows]


def _with_engines(audit: Audit, changes: DataFrame, engines: list[EngineSpan]) -> DataFrame:
    """Return the changes, each with the kind of engine that its table had there."""
    known = audit.frame_of(
        f"known string, first {_PLACE}, stop {_PLACE}, transactional boolean",
        [(span.table, span.first, span.stop, span.engine.transactional) for span in engines],
    )
    made = changes.where("format <> 'definition'").withColumn("place", _place(F.coalesce("start", "position")))
    there = F.expr("table = known AND place >= first AND place < stop")
    return made.join(F.broadcast(known), there, "left").select(
        "file", "start", "position", "time", "table", "format", "transactional"
    )


def _names(transactions: bool) -> list[str]:
    return sorted(names_of_engines(lambda engine: engine.transactions is transactions))
