"""mixing: the subject of WL#2687. It covers groups that change tables with and without transactions, changes without transactions after
others in statement format, statements that ended with an error, and groups closed by ROLLBACK."""

from collections import Counter
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from relay.audit.readiness.checks import shown
from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import AuditFinding, AuditResult, Place
from relay.audit.runner.job import Job
from relay.audit.runner.look_alikes import look_alikes
from relay.audit.shared.engines import EngineSpan
from relay.audit.shared.group_engines import ChangedGroups, changed_groups
from relay.audit.shared.statement_tables import changed_table
from relay.report.content import Bars, ReportTable, Section, Shares
from relay.report.text import number_of

_STATEMENT_HEAD: Final = 300


def run(audit: Audit) -> AuditResult:
    """Find the groups that change tables, then make one pass over the statements for errors."""
    groups = changed_groups(audit)
    mixed = groups.judged
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
    findings += _rolled_back(audit, groups)
    unknown = _unknown_engines(audit, groups.changes)
    findings += unknown
    frames = {
        "mixed_groups": mixed.where("transactional AND plain").drop(
            "late", "late_table", "first_transactional", "first_statement"
        ),
        "engines": audit.frame_of(
            "table string, engine string, transactional boolean, known_by string, `from` string",
            [
                (one.table, one.engine.name or None, one.engine.transactional, one.engine.known_by, _from(audit, one))
                for one in groups.engines
            ],
        ),
    }
    shares = {
        "only tables with transactions": transactional,
        "only tables without": plain,
        "both": both,
        "engines not known": every - transactional - plain - both,
    }
    sections = _sections(audit, mixed, groups.engines, shares)
    verdict = _verdict(every, findings, sum(one.count for one in unknown))
    figures: dict[str, object] = {
        "groups": every,
        "groups_of_transactional_tables": transactional,
        "groups_of_other_tables": plain,
        "mixed_groups": both,
        "late_changes": late,
    }
    return AuditResult(verdict, findings, sections, frames, figures=figures)


def _from(audit: Audit, span: EngineSpan) -> str | None:
    """Return the place from which the table has the engine; None if it has it from the archive's beginning."""
    number, offset = span.first
    return f"{audit.files[number].name}:{offset}" if 0 <= number < len(audit.files) else None


# ---- findings --------------------------------------------------------------------------------------------------------


def _mixed(audit: Audit, mixed: DataFrame, count: int) -> list[AuditFinding]:
    if not count:
        return []
    places, rows = look_alikes(
        audit,
        mixed.where("transactional AND plain").withColumn("example", F.coalesce("late", "first_statement")),
        ("tables", "formats"),
        lambda row: f"{', '.join(row['tables'][:8])} ({' and '.join(row['formats'])} format)",
        example="example",
    )
    advice = (
        "They change tables with transactions and tables without in one group. The old source applied the changes to tables "
        "without transactions at once, and wrote them at the end of the group: other sessions saw, and changed, those rows in "
        "between. A replica may end with other rows; newer servers refuse or write such groups in another order."
    )
    return [AuditFinding("mixed_group", "warning", "Groups that mix engines", advice, count, places, rows)]


def _late(audit: Audit, mixed: DataFrame, count: int) -> list[AuditFinding]:
    if not count:
        return []
    late = mixed.where("late > first_transactional").withColumnRenamed("late", "position")
    places, rows = look_alikes(
        audit,
        late,
        ("late_table", "tables"),
        lambda row: f"{row['late_table']}, in a group that changes {', '.join(row['tables'][:8])}",
        position="position",
        example="position",
    )
    advice = (
        "A statement changes a table without transactions behind one that changed a table with them. WL#2687 calls it "
        "unsafe: the change was made at once and written only when the transaction ended, so the order of the binlog is "
        "not the order in which other sessions saw it. Newer servers write it in row format, and at once."
    )
    return [
        AuditFinding(
            "late_change",
            "warning",
            "Changes without transactions after others, as statements",
            advice,
            count,
            places,
            rows,
        )
    ]


def _wanted(audit: Audit, statement_table: Column) -> Column:
    """Return true for everything without --tables, with it for what names one of them."""
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
    places, rows = look_alikes(
        audit,
        wrong,
        ("error_code", "statement"),
        lambda row: f"error {row['error_code']}: {shown(row['statement'], _STATEMENT_HEAD)}",
        position="position",
    )
    advice = (
        "The statement failed on the source half-way, and what it had changed in tables without transactions stayed. A "
        "replica runs it and expects the same error: with other rows, another engine or another version it gets another "
        "one, or none, and stops."
    )
    return [
        AuditFinding(
            "statement_with_error", "warning", "Statements that ended with an error", advice, count, places, rows
        )
    ]


def _rolled_back(audit: Audit, groups: ChangedGroups) -> list[AuditFinding]:
    rows = groups.all.where("closed_by = 'rollback'")
    if audit.options.tables:
        rows = rows.join(groups.judged.select("file", "start"), ["file", "start"], "left_semi")
    rows = audit.keep(rows)
    count = rows.count()
    if not count:
        return []
    places, patterns = look_alikes(
        audit,
        rows.withColumn("tables", F.array_sort("tables")),
        ("kind", "tables"),
        lambda row: f"{row['kind']} format" + (f", {', '.join(row['tables'][:8])}" if row["tables"] else ""),
        time="first_time",
    )
    advice = (
        "The source wrote the group although it was rolled back, since a table without transactions had been changed. A "
        "replica undoes only what its own engines can undo: where its tables are all of an engine with transactions, "
        "as after an upgrade to InnoDB, the change is lost there."
    )
    return [AuditFinding("closed_by_rollback", "warning", "Groups closed by ROLLBACK", advice, count, places, patterns)]


def _unknown_engines(audit: Audit, changes: DataFrame) -> list[AuditFinding]:
    unknown = audit.keep(
        changes.where("transactional IS NULL")
        .where(audit.wants_table(F.col("table")))
        .groupBy("table")
        .agg(F.count_distinct("file", F.coalesce("start", "position")).alias("groups"))
    )
    count = unknown.count()
    if not count:
        return []
    first = unknown.orderBy(F.desc("groups"), "table").limit(audit.options.limit).collect()
    return [
        AuditFinding(
            "engine_unknown",
            "note",
            "Tables whose engine is not known",
            "Neither the recorded schema nor a CREATE TABLE in the archive names the engine, and no group tells it by its end: "
            "groups with these tables are not judged. A relay that is connected to the source records engines.",
            count,
            [Place("", None, f"{row['table']}: {number_of(row['groups'], 'group')}") for row in first],
        )
    ]


# ---- the report ------------------------------------------------------------------------------------------------------


def _sections(audit: Audit, mixed: DataFrame, engines: list[EngineSpan], shares: dict[str, Any]) -> list[Section]:
    limit = audit.options.limit
    sets = (
        mixed.where("transactional AND plain")
        .groupBy("tables")
        .agg(F.count("*").alias("groups"), audit.first_of("start").alias("first"))
        .orderBy(F.desc("groups"), "tables")
        .limit(limit)
        .collect()
    )
    involved: Counter[str] = Counter()
    for row in sets:
        for table in row["tables"]:
            involved[table] += row["groups"]
    listed = [
        (
            one.table,
            one.engine.name or None,
            "yes" if one.engine.transactional else "no",
            one.engine.known_by,
            _from(audit, one),
        )
        for one in engines[:limit]
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
                ReportTable(
                    "Tables that are mixed",
                    {"tables": "code", "groups": "count", "first at": "place"},
                    [
                        (", ".join(row["tables"]), row["groups"], f"{row['first']['file']}:{row['first']['start']}")
                        for row in sets
                    ],
                )
            ],
        ),
        Section(
            "Engines",
            "As the relay recorded them; else as the last CREATE or ALTER TABLE before says; else by how groups end that change "
            "the table alone. A table that had engines of both kinds stands here more than once.",
            tables=[
                ReportTable(
                    "",
                    {"table": "code", "engine": "text", "transactions": "text", "known by": "text", "from": "place"},
                    listed,
                    len(engines) - len(listed),
                )
            ],
        ),
    ]


def _verdict(every: int, findings: list[AuditFinding], unknown: int) -> str:
    of_unknown = f" {number_of(unknown, 'table')} could not be judged." if unknown else ""
    if not every and not any(finding.severity != "note" for finding in findings):
        return f"No group changes a table.{of_unknown}"
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
