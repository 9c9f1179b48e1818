"""mixing: what WL#2687 is about. Groups that change tables with and without transactions, changes without transactions after
others in statement format, statements that ended with an error, groups closed by ROLLBACK.
"""

from collections import Counter
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from relay.audit.jobs.audit import Audit
from relay.audit.jobs.engines import Engine, best_of, evidence, of_name, recorded_engines
from relay.audit.jobs.job import AuditFinding, AuditResult, Job, Place
from relay.audit.jobs.statement_tables import changed_table, defined_table, named_engine
from relay.audit.report.content import Bars, Section, Shares, Table
from relay.audit.report.text import number_of

_STATEMENT_HEAD: Final = 300
_MOST_TABLES: Final = 20_000

# A change in a group: its table, how it was written, whether the table's engine has transactions.
_SUMS: Final = {
    "transactional": "coalesce(bool_or(transactional), false)",
    "plain": "coalesce(bool_or(NOT transactional), false)",
    "unknown": "coalesce(bool_or(transactional IS NULL), false)",
    "first_transactional": "min(CASE WHEN transactional THEN position END)",
    "late": "max(CASE WHEN NOT transactional AND format = 'statement' THEN position END)",
    "late_table": "max_by(table, CASE WHEN NOT transactional AND format = 'statement' THEN position END)",
    "tables": "array_sort(collect_set(table))",
    "formats": "array_sort(collect_set(format))",
    "time": "min(time)",
}


def run(audit: Audit) -> AuditResult:
    """One pass over transactions for how groups end, one over statements and Table_maps for who changes what."""
    audit.step("Looking at how groups end")
    groups = audit.read("transactions", "file", "start", "first_time", "kind", "tables", "closed_by", "events")
    groups = groups.where("events IS NOT NULL")
    ends = audit.keep(
        groups.groupBy("kind", "closed_by", F.expr("array_sort(tables)").alias("tables")).agg(
            F.count("*").alias("groups")
        )
    )
    audit.step("Reading statements")
    changes = audit.keep(_changes(audit, groups))
    engines = _engines(audit, groups, ends, changes)
    audit.step("Comparing engines")
    mixed = audit.keep(_groups(audit, changes, engines))
    counts = mixed.agg(
        F.count("*"),
        F.count_if(F.expr("transactional AND plain")),
        F.count_if(F.expr("late > first_transactional")),
        F.count_if(F.expr("NOT transactional AND NOT unknown")),
        F.count_if(F.expr("NOT plain AND NOT unknown")),
    ).collect()[0]
    every, both, late, plain, transactional = counts
    findings = [*_mixed(audit, mixed, both), *_late(audit, mixed, late)]
    audit.step("Looking at errors and rollbacks")
    findings += _errors(audit)
    findings += _rolled_back(audit, groups, ends)
    unknown = _unknown(changes, engines)
    if unknown:
        findings.append(_unknown_engines(unknown, audit.options.limit))
    frames = {
        "mixed_groups": mixed.where("transactional AND plain").drop("late", "late_table", "first_transactional"),
        "engines": audit.frame_of(
            "table string, engine string, transactional boolean, known_by string",
            [
                (table, engine.name or None, engine.transactional, engine.known_by)
                for table, engine in sorted(engines.items())
            ],
        ),
    }
    shares = {
        "only tables with transactions": transactional,
        "only tables without": plain,
        "both": both,
        "engines not known": every - transactional - plain - both,
    }
    sections = _sections(audit, mixed, engines, unknown, shares)
    return AuditResult(_verdict(every, both, late, findings, unknown), findings, sections, frames)


# ---- who changes what ------------------------------------------------------------------------------------------------


def _changes(audit: Audit, groups: DataFrame) -> DataFrame:
    """(file, group, position, time, table, format, engine): a row for each table a group's statement changes or defines."""
    events = audit.read("events", "file", "position", "time", "type", "transaction", "schema", "table")
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
    # Inside of compressed transactions Table_maps are no events; where in the group the rows stand does not matter there.
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


def _engines(audit: Audit, groups: DataFrame, ends: DataFrame, changes: DataFrame) -> dict[str, Engine]:
    """What is known of each table that is changed."""
    defined = (
        changes.where("engine IS NOT NULL")
        .groupBy("table")
        .agg(F.max_by("engine", F.struct(F.expr("length(file)"), "file", "position")).alias("engine"))
        .limit(_MOST_TABLES)
        .collect()
    )
    alone = (
        ends.where("kind = 'row' AND size(tables) = 1")
        .groupBy(F.expr("tables[0]").alias("table"), "closed_by")
        .agg(F.sum("groups").alias("groups"))
        .limit(_MOST_TABLES)
        .collect()
    )
    known = best_of(
        recorded_engines(audit.files),
        {row["table"]: of_name(row["engine"], "a statement in the archive") for row in defined},
        evidence((row["table"], row["closed_by"], row["groups"]) for row in alone),
    )
    if not _unknown(changes, known):
        return known
    one = F.expr("array_sort(collect_set(table))").alias("tables")
    single = changes.where("format = 'statement' AND start IS NOT NULL").groupBy("file", "start").agg(one)
    closed = (
        single.where("size(tables) = 1")
        .join(groups.where("kind = 'statement'").select("file", "start", "closed_by"), ["file", "start"])
        .groupBy(F.expr("tables[0]").alias("table"), "closed_by")
        .count()
        .limit(_MOST_TABLES)
        .collect()
    )
    return best_of(known, evidence((row["table"], row["closed_by"], row["count"]) for row in closed))


def _groups(audit: Audit, changes: DataFrame, engines: dict[str, Engine]) -> DataFrame:
    """A row for each group that changes a table (of --tables), with what its tables' engines are."""
    known = F.broadcast(
        audit.frame_of(
            "table string, transactional boolean", [(table, engine.transactional) for table, engine in engines.items()]
        )
    )
    made = changes.where("format <> 'definition' AND start IS NOT NULL").withColumn(
        "asked", audit.wants_table(F.col("table"))
    )
    summed = made.join(known, "table", "left").groupBy("file", "start")
    return (
        summed.agg(*(F.expr(sql).alias(name) for name, sql in _SUMS.items()), F.bool_or("asked").alias("asked"))
        .where("asked")
        .drop("asked")
    )


def _unknown(changes: DataFrame, engines: dict[str, Engine]) -> list[tuple[str, int]]:
    counted = (
        changes.where("format <> 'definition'")
        .groupBy("table")
        .count()
        .orderBy(F.desc("count"), "table")
        .limit(_MOST_TABLES)
    )
    return [(row["table"], row["count"]) for row in counted.collect() if row["table"] not in engines]


# ---- findings --------------------------------------------------------------------------------------------------------


def _mixed(audit: Audit, mixed: DataFrame, count: int) -> list[AuditFinding]:
    if not count:
        return []
    places = audit.first_places(
        mixed.where("transactional AND plain"),
        lambda row: f"{', '.join(row['tables'][:8])} ({' and '.join(row['formats'])} format)",
        "start",
    )
    advice = (
        "They change tables with transactions and tables without in one group. The old source applied the changes to tables "
        "without transactions at once, and wrote them at the end of the group: other sessions saw, and changed, those rows in "
        "between. A replica may end with other rows; newer servers refuse or write such groups in another order."
    )
    return [AuditFinding("mixed_group", "warning", "Groups that mix engines", advice, count, places)]


def _late(audit: Audit, mixed: DataFrame, count: int) -> list[AuditFinding]:
    if not count:
        return []
    late = mixed.where("late > first_transactional").withColumnRenamed("late", "position")
    places = audit.first_places(late, lambda row: f"{row['late_table']}, in the group at {row['start']}")
    advice = (
        "A statement changes a table without transactions behind one that changed a table with them. WL#2687 calls it "
        "unsafe: the change was made at once and written only when the transaction ended, so the order of the binlog is "
        "not the order in which other sessions saw it. Newer servers write it in row format, and at once."
    )
    return [
        AuditFinding(
            "late_change", "warning", "Changes without transactions after others, as statements", advice, count, places
        )
    ]


def _wanted(audit: Audit, statement_table: Column) -> Column:
    """Without --tables everything, with it what names one of them."""
    return audit.wants_table(F.coalesce(statement_table, F.lit(""))) if audit.options.tables else F.lit(True)


def _errors(audit: Audit) -> list[AuditFinding]:
    wrong = audit.keep(
        audit.read("statements", "file", "position", "time", "schema", "digest_text", "error_code")
        .where("error_code <> 0")
        .where(_wanted(audit, changed_table()))
        .select(
            "file", "position", "time", "error_code", F.substring("digest_text", 1, _STATEMENT_HEAD).alias("statement")
        )
    )
    count = wrong.count()
    if not count:
        return []
    places = audit.first_places(wrong, lambda row: f"error {row['error_code']}: {row['statement']}")
    advice = (
        "The statement failed on the source half-way, and what it had changed in tables without transactions stayed. A "
        "replica runs it and expects the same error: with other rows, another engine or another version it gets another "
        "one, or none, and stops."
    )
    return [
        AuditFinding("statement_with_error", "warning", "Statements that ended with an error", advice, count, places)
    ]


def _rolled_back(audit: Audit, groups: DataFrame, ends: DataFrame) -> list[AuditFinding]:
    closed = "closed_by = 'rollback'"
    if not ends.where(closed).limit(1).collect():
        return []
    rows = groups.where(closed).where(audit.wants_any_table(F.col("tables")))
    count = rows.count()
    if not count:
        return []
    places = audit.first_places(
        rows,
        lambda row: f"{row['kind']} format" + (f", {', '.join(row['tables'][:8])}" if row["tables"] else ""),
        "start",
    )
    advice = (
        "The source wrote the group although it was rolled back, since a table without transactions had been changed. A "
        "replica undoes only what its own engines can undo: where its tables are all of an engine with transactions, "
        "as after an upgrade to InnoDB, the change is lost there."
    )
    return [AuditFinding("closed_by_rollback", "warning", "Groups closed by ROLLBACK", advice, count, places)]


def _unknown_engines(unknown: list[tuple[str, int]], limit: int) -> AuditFinding:
    return AuditFinding(
        "engine_unknown",
        "note",
        "Tables whose engine is not known",
        "Neither the recorded schema nor a CREATE TABLE in the archive names the engine, and no group tells it by its end: "
        "groups with these tables are not judged. A relay that is connected to the source records engines.",
        len(unknown),
        [Place("", None, f"{table}: {number_of(count, 'change')}") for table, count in unknown[:limit]],
    )


# ---- the report ------------------------------------------------------------------------------------------------------


def _sections(
    audit: Audit, mixed: DataFrame, engines: dict[str, Engine], unknown: list[tuple[str, int]], shares: dict[str, Any]
) -> list[Section]:
    limit = audit.options.limit
    sets = (
        mixed.where("transactional AND plain")
        .groupBy("tables")
        .agg(F.count("*").alias("groups"), F.min(F.expr("struct(length(file) AS length, file, start)")).alias("first"))
        .orderBy(F.desc("groups"), "tables")
        .limit(limit)
        .collect()
    )
    involved: Counter[str] = Counter()
    for row in sets:
        for table in row["tables"]:
            involved[table] += row["groups"]
    listed = [
        *((table, engine.name or None, _word(engine), engine.known_by) for table, engine in sorted(engines.items())),
        *((table, None, "not known", None) for table, _ in unknown),
    ]
    return [
        Section(
            "Groups by the engines of their tables",
            "Only groups that change tables. A statement counts for the table that it names first; what triggers and "
            "functions change is not seen in statement format.",
            charts=[
                Shares("Groups", list(shares.items())),
                Bars("Tables in groups that mix engines", involved.most_common()),
            ],
            tables=[
                Table(
                    "Tables that are mixed",
                    {"tables": "code", "groups": "count", "first at": "code"},
                    [
                        (", ".join(row["tables"]), row["groups"], f"{row['first']['file']}:{row['first']['start']}")
                        for row in sets
                    ],
                )
            ],
        ),
        Section(
            "Engines",
            "As the relay recorded them; else as the last CREATE or ALTER TABLE in the archive says; else by how groups end "
            "that change the table alone.",
            tables=[
                Table(
                    "",
                    {"table": "code", "engine": "text", "transactions": "text", "known by": "text"},
                    listed[:limit],
                    max(len(listed) - limit, 0),
                )
            ],
        ),
    ]


def _word(engine: Engine) -> str:
    return "yes" if engine.transactional else "no"


def _verdict(every: int, both: int, late: int, findings: list[AuditFinding], unknown: list[tuple[str, int]]) -> str:
    if not every:
        return "No group changes a table."
    of_unknown = f" {number_of(len(unknown), 'table')} could not be judged." if unknown else ""
    if not any(finding.severity != "note" for finding in findings):
        return f"{number_of(every, 'group')}: nothing mixes tables with and without transactions.{of_unknown}"
    parts = [f"{finding.title.lower()}: {finding.count}" for finding in findings if finding.severity != "note"]
    return f"{number_of(every, 'group')}; {', '.join(parts)}.{of_unknown}"


JOB: Final = Job(
    "mixing",
    "Mixed engines",
    "What an old source writes of tables with and without transactions that newer replicas may not reproduce (WL#2687).",
    run,
    takes_tables=True,
)
