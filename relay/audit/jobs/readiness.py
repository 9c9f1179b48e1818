"""readiness: everything in the archive that would stop, or surprise, a newer replica."""

import functools
from dataclasses import replace
from typing import Final

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from protocol.sql.server_version import version_numbers
from relay.audit.jobs import readiness_cases as cases
from relay.audit.jobs.view_stops import left_out_section, view_cases, view_section, view_stops, view_stops_frame
from relay.audit.readiness.check import MARIADB, MIGRATION, MYSQL, Check, Effect
from relay.audit.readiness.checks import ALL, BY_NAME, ORDER
from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import AuditFinding, AuditResult, Place, Severity
from relay.audit.runner.job import Job
from relay.audit.shared.table_keys import mapped_tables
from relay.report.content import Bars, Fact, ReportTable, Section
from relay.report.text import number_of
from relay.source_tables.references import BY_THE_SERVER_SINCE
from relay.view.inspect.dry_run_stops import StopsFound
from relay.view.rules.targets.known.target import TARGETS_BY_NAME

_SEVERITIES: Final[dict[Effect, Severity]] = {
    Effect.STOPS: "error",
    Effect.MAY_DIFFER: "warning",
    Effect.TO_KNOW: "note",
}


def run(audit: Audit) -> AuditResult:
    """Judge statements, events and tables for newer servers of the source's own family, or for the requested ones."""
    family = family_of(audit)
    stops = view_stops(audit, of_mariadb=family == MIGRATION) if family != MARIADB else StopsFound()
    found = audit.keep(_cases(audit, family, stops))
    audit.step("Judging statements")
    totals: dict[str, int] = {}
    rows: dict[str, int] = {}
    for row in _totals(found):
        totals[row["check"]], rows[row["check"]] = row["total"], row["rows"]
    audit.step("Finding the first of each")
    places = _places(audit, found)
    result = _result(audit, family, found, totals, places)
    result.findings = [replace(finding, rows=rows[finding.name]) for finding in result.findings]
    if stops.left_out is not None and (stops.left_out.counts or stops.left_out.by_statement):
        result.sections.insert(0, left_out_section(stops.left_out))
    if stops.stops:
        result.sections.insert(0, view_section(audit, stops))
        result.frames["view_stops"] = view_stops_frame(audit, stops)
    return result


def family_of(audit: Audit) -> str:
    """Return the servers that the source's replicas become: MariaDB if the newest file is of MariaDB and no MySQL is requested, else
    MySQL."""
    flavours = [head.flavour for head in audit.heads if head.flavour]
    if not flavours or flavours[-1] != "mariadb":
        return MYSQL
    return MIGRATION if audit.options.target else MARIADB


def _cases(audit: Audit, family: str, stops: StopsFound) -> DataFrame:
    audit.step("Reading tables")
    mapped = mapped_tables(audit)
    digests = cases.statement_digests(audit)
    frames = [
        cases.statement_cases(audit, digests, family),
        cases.event_cases(audit, family),
        cases.table_cases(audit, mapped, family),
    ]
    dated = mapped.where("has_dates").select("schema", "table").distinct().collect()
    if dated:
        frames.append(cases.zero_date_cases(audit, [(row["schema"], row["table"]) for row in dated]))
    frames.append(cases.mixed_cases(audit, [(stop.file, stop.offset) for stop in stops.stops]))
    if family == MIGRATION:
        frames.append(cases.logged_changes_cases(digests))
    if family == MYSQL and audit.options.since is None and _is_of_older_server(audit):
        frames.append(cases.older_table_cases(digests))
    if stops.total or stops.unread:
        frames.append(view_cases(audit, stops))
    return functools.reduce(DataFrame.unionByName, frames)


def _is_of_older_server(audit: Audit) -> bool:
    """Return whether the newest file is of a server whose InnoDB enforces foreign keys."""
    return bool(audit.heads) and version_numbers(audit.heads[-1].version or "") < BY_THE_SERVER_SINCE


def _totals(found: DataFrame) -> list[Row]:
    return found.groupBy("check").agg(F.sum("count").alias("total"), F.count("*").alias("rows")).collect()


def _places(audit: Audit, found: DataFrame) -> dict[str, list[Row]]:
    """Return the first --limit cases of each check."""
    order = Window.partitionBy("check").orderBy(*audit.file_order, "position", "text")
    first = found.withColumn("nth", F.row_number().over(order)).where(F.col("nth") <= audit.options.limit)
    places: dict[str, list[Row]] = {}
    for row in first.orderBy("check", "nth").collect():
        places.setdefault(row["check"], []).append(row)
    return places


def _result(
    audit: Audit, family: str, found: DataFrame, totals: dict[str, int], places: dict[str, list[Row]]
) -> AuditResult:
    checks = sorted(
        (BY_NAME[name] for name in totals), key=lambda check: (ORDER.index(check.effect), -totals[check.name])
    )
    findings = [
        AuditFinding(
            check.name,
            _SEVERITIES[check.effect],
            check.title,
            f"{check.effect.value.capitalize()}: {check.concerns}. {check.advice}{_of_view(check)} Source: {check.source}.",
            totals[check.name],
            [Place(row["file"], row["position"], row["text"], row["time"], row["count"]) for row in places[check.name]],
        )
        for check in checks
    ]
    server = "MariaDB" if family == MARIADB else "MySQL"
    title = TARGETS_BY_NAME[audit.options.target].title if audit.options.target else ""
    frame = found.withColumn("effect", _effects(checks)) if checks else found.withColumn("effect", F.lit(""))
    return AuditResult(
        _verdict(checks, server),
        findings,
        _sections(family, checks, totals, places),
        {"cases": frame},
        [
            Fact(
                "judged for",
                f"replicas of {title}" if title else f"newer {server} replicas",
                {"judged_for": audit.options.target or family},
            )
        ],
        {"cases_by_check": totals},
    )


def _of_view(check: Check) -> str:
    return f" A [[view]] that stops there names it {check.stop}." if check.stop else ""


def _effects(checks: list[Check]) -> Column:
    column = F.lit("")
    for check in checks:
        column = F.when(F.col("check") == check.name, check.effect.value).otherwise(column)
    return column


def _verdict(checks: list[Check], server: str) -> str:
    stops = [check for check in checks if check.effect is Effect.STOPS]
    differs = [check for check in checks if check.effect is Effect.MAY_DIFFER]
    if stops:
        more = f", {number_of(len(differs), 'other')} may make it differ" if differs else ""
        return f"{number_of(len(stops), 'kind')} of things here stop a newer {server} replica{more}."
    if differs:
        return f"Nothing here stops a newer {server} replica; {number_of(len(differs), 'kind')} of things may make it differ."
    return f"Nothing here is known to stop a newer {server} replica, or to make it differ."


def _sections(family: str, checks: list[Check], totals: dict[str, int], places: dict[str, list[Row]]) -> list[Section]:
    sections = []
    for effect in ORDER:
        chosen = [check for check in checks if check.effect is effect]
        if not chosen:
            continue
        rows = []
        for check in chosen:
            first = places[check.name][0]
            place = str(Place(first["file"], first["position"]))
            rows.append((check.title, check.concerns, totals[check.name], place, first["text"]))
        columns = {"what": "text", "concerns": "text", "cases": "count", "first": "place", "sample": "code"}
        sections.append(
            Section(
                f"What {_HEADINGS[effect]}",
                charts=[Bars("Cases", [(check.title, totals[check.name]) for check in chosen])],
                tables=[ReportTable(effect.value, columns, rows)],  # type: ignore[arg-type]
            )
        )
    looked = [
        (check.name, check.effect.value, check.title, check.concerns, totals.get(check.name, 0))
        for check in ALL
        if check.concerns_servers(family)
    ]
    sections.append(
        Section(
            "What was looked for",
            "Statements are judged once for each text without its literals, and shown so.",
            tables=[
                ReportTable(
                    "Checks",
                    {"name": "code", "effect": "text", "what": "text", "concerns": "text", "cases": "count"},
                    looked,
                )
            ],
        )
    )
    return sections


_HEADINGS: Final = {
    Effect.STOPS: "stops a newer replica",
    Effect.MAY_DIFFER: "may make it differ",
    Effect.TO_KNOW: "is good to know",
}

JOB: Final = Job(
    "readiness",
    "Readiness for a newer replica",
    "Statements, events and tables of the archive were held against what newer servers refuse, or take otherwise.",
    run,
    takes_target=True,
)
