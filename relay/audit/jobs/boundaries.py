"""boundaries: stamps against inference, impossible transitions, stretches without stamps; per file and per type."""

from collections import Counter
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from relay.audit.runner.audit import Audit, place_of
from relay.audit.runner.audit_result import AuditFinding, AuditResult, Place
from relay.audit.runner.job import Job
from relay.audit.shared.event_counts import VIOLATES, event_counts
from relay.report.content import Bars, ReportTable, Section, Shares
from relay.report.text import number_of

_DIFFERS: Final = "stamped AND boundary <> inferred"


def run(audit: Audit) -> AuditResult:
    """Count in one pass; files with findings are read again for the places."""
    events = audit.read(
        "events", "file", "position", "end", "time", "type", "boundary", "inferred", "stamped", "finding"
    )
    events = events.where("type IS NOT NULL")
    counted = (
        event_counts(audit)
        .groupBy("file", "type", "boundary", "inferred", "stamped")
        .agg(
            F.sum("events").alias("events"),
            F.sum("violations").alias("violations"),
            F.min("first_position").alias("first_position"),
        )
    )
    audit.step("Counting boundaries")
    return _result(audit, events, counted)


def _result(audit: Audit, events: DataFrame, counted: DataFrame) -> AuditResult:
    whole = F.sum("events").alias("events")
    stamped = F.sum(F.when(F.col("stamped"), F.col("events")).otherwise(0)).alias("stamped")
    differing = F.sum(F.when(F.expr(_DIFFERS), F.col("events")).otherwise(0)).alias("differing")
    violations = F.sum("violations").alias("violations")
    by_file = audit.keep(counted.groupBy("file").agg(whole, stamped, differing, violations))
    total = by_file.agg(
        *(F.coalesce(F.sum(name), F.lit(0)) for name in ("events", "stamped", "differing", "violations")), F.count("*")
    )
    all_events, all_stamped, all_differing, all_violations, all_files = total.collect()[0]
    findings: list[AuditFinding] = []
    frames = {"by_file_and_type": counted}
    sections: list[Section] = []
    if all_differing:
        audit.step("Reading what is stamped differently")
        findings.append(_differences(audit, events, by_file, all_differing))
    if all_violations:
        audit.step("Reading what cannot follow each other")
        findings.append(_transitions(audit, events, by_file, all_violations))
    if 0 < all_stamped < all_events:
        audit.step("Reading stretches without stamps")
        stretches = audit.keep(_stretches(audit, events, by_file))
        frames["unstamped_stretches"] = stretches
        findings.append(_unstamped(audit, stretches))
    elif all_events and not all_stamped:
        findings.append(
            AuditFinding(
                "never_stamped",
                "note",
                "Files in which no event is stamped",
                "These are a server's own files, or the relay's with stamping off. The boundaries below are inferred.",
                all_files,
                [Place(file.name) for file in audit.files[: min(audit.options.limit, all_files)]],
            )
        )
    sections += _sections(audit, counted, by_file, all_files)
    bad = all_differing + all_violations
    if not all_events:
        verdict = "No event was read."
    elif bad:
        verdict = (
            f"{number_of(all_events, 'event')}: {number_of(all_violations, 'transition')} that cannot be, "
            f"{number_of(all_differing, 'stamp')} against the inference."
        )
    else:
        verdict = f"{number_of(all_events, 'event')}, {number_of(all_stamped, 'stamp')}: no boundary is wrong."
    figures: dict[str, object] = {
        "events": all_events,
        "stamped_events": all_stamped,
        "differing_stamps": all_differing,
        "boundary_violations": all_violations,
    }
    return AuditResult(verdict, findings, sections, frames, figures=figures)


def _differences(audit: Audit, events: DataFrame, by_file: DataFrame, count: int) -> AuditFinding:
    wrong = events.join(F.broadcast(by_file.where("differing > 0").select("file")), "file", "left_semi").where(_DIFFERS)
    rows = wrong.orderBy(*audit.file_order, "position").limit(audit.options.limit).collect()
    return AuditFinding(
        "stamp_differs",
        "error",
        "Stamps that differ from what the events say",
        "The mark in the event's header and the inference from its content do not agree: one of both is wrong, "
        "or the stream was changed after it was stamped.",
        count,
        [
            place_of(row, f"{row['type']} is stamped {row['boundary']}, by its content it is {row['inferred']}")
            for row in rows
        ],
    )


def _transitions(audit: Audit, events: DataFrame, by_file: DataFrame, count: int) -> AuditFinding:
    """Return a finding about transitions, with the preceding event: the newest one that is not Ignore, in the same file."""
    order = Window.partitionBy("file").orderBy("position")
    within = events.join(F.broadcast(by_file.where("violations > 0").select("file")), "file", "left_semi")
    before = within.where("boundary <> 'Ignore Boundary'").withColumn("before", F.lag("boundary").over(order))
    rows = before.where(VIOLATES).orderBy(*audit.file_order, "position").limit(audit.options.limit).collect()
    return AuditFinding(
        "boundary_violation",
        "error",
        "Transitions that cannot be",
        "By WL#4162's table no transaction goes on like this: events are missing, or were added, before the place.",
        count,
        [
            place_of(
                row,
                f"{row['type']}: unable to change boundary parser from {row['before'] or 'Not Defined'} to {row['boundary']}",
            )
            for row in rows
        ],
    )


def _stretches(audit: Audit, events: DataFrame, by_file: DataFrame) -> DataFrame:
    """Return runs of events without a stamp; of a file without any, the whole file at once."""
    order = Window.partitionBy("file").orderBy("position")
    mixed = by_file.where("stamped > 0 AND stamped < events").select("file")
    marked = (
        events.join(F.broadcast(mixed), "file", "left_semi")
        .select("file", "position", "end", "stamped", F.lag("stamped").over(order).alias("before"))
        .withColumn("turn", F.expr("CAST(before IS NULL OR before <> stamped AS INT)"))
        .withColumn("stretch", F.sum("turn").over(order))
    )
    parts = (
        marked.where("NOT stamped")
        .groupBy("file", "stretch")
        .agg(F.min("position").alias("position"), F.max("end").alias("end"), F.count("*").alias("events"))
        .drop("stretch")
    )
    none = by_file.where("stamped = 0").selectExpr("file", "4L AS position", "CAST(NULL AS BIGINT) AS end", "events")
    return parts.unionByName(none).orderBy(*audit.file_order, "position")


def _unstamped(audit: Audit, stretches: DataFrame) -> AuditFinding:
    rows = stretches.limit(audit.options.limit).collect()
    return AuditFinding(
        "unstamped_stretch",
        "warning",
        "Stretches without stamps",
        "Part of the archive is stamped, these parts are not: they were written by another program or another version, "
        "or the relay ran with stamping off.",
        stretches.count(),
        [
            place_of(
                row, f"{number_of(row['events'], 'event')} up to {'its end' if row['end'] is None else row['end']}"
            )
            for row in rows
        ],
    )


def _sections(audit: Audit, counted: DataFrame, by_file: DataFrame, all_files: int) -> list[Section]:
    types = (
        counted.groupBy("type", "boundary")
        .agg(
            F.sum("events").alias("events"),
            F.sum(F.when(F.col("stamped"), F.col("events")).otherwise(0)).alias("stamped"),
            F.sum(F.when(F.expr(_DIFFERS), F.col("events")).otherwise(0)).alias("differing"),
            F.sum("violations").alias("violations"),
            audit.first_of("first_position").alias("first"),
        )
        .orderBy("type", F.desc("events"))
        .collect()
    )
    per_type: Counter[str] = Counter()
    per_boundary: Counter[str] = Counter()
    for row in types:
        per_type[row["type"]] += row["events"]
        per_boundary[row["boundary"]] += row["events"]
    worst_first = (F.expr("differing + violations = 0"), F.expr("stamped = events"), *audit.file_order)
    files = by_file.orderBy(*worst_first).limit(audit.options.limit).collect()
    return [
        Section(
            "Boundaries",
            "As they are stamped, and inferred where there is no stamp.",
            charts=[
                Shares("Events by boundary", per_boundary.most_common()),
                Bars("Events by type", per_type.most_common()),
            ],
            tables=[
                ReportTable(
                    "By type",
                    {
                        "type": "text",
                        "boundary": "text",
                        "events": "count",
                        "stamped": "count",
                        "differ": "count",
                        "cannot be": "count",
                        "first at": "place",
                    },
                    [
                        (
                            row["type"],
                            row["boundary"],
                            row["events"],
                            row["stamped"],
                            row["differing"],
                            row["violations"],
                            f"{row['first']['file']}:{row['first']['first_position']}",
                        )
                        for row in types
                    ],
                ),
                ReportTable(
                    "By file",
                    {"file": "code", "events": "count", "stamped": "count", "differ": "count", "cannot be": "count"},
                    [
                        (row["file"], row["events"], row["stamped"], row["differing"], row["violations"])
                        for row in files
                    ],
                    left_out=all_files - len(files),
                    note="Files in which something is wrong come first.",
                ),
            ],
        )
    ]


JOB: Final = Job(
    "boundaries",
    "Transaction boundaries",
    "Stamps in the event headers against what the events say, by the parser of WL#4162.",
    run,
)
