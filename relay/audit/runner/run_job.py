"""Runs one job: reads, computes, writes Parquet and the report, and says what was found."""

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from relay.audit.report.content import Page, ReportTable, Section
from relay.audit.report.page import html
from relay.audit.report.text import moment, number_of, size, span
from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import SEVERITIES, AuditFinding, AuditOptions, AuditResult
from relay.audit.runner.job import Job
from relay.audit.runner.output import REPORT, write_summary, write_text, written_whole
from relay.audit.runner.row_findings import ROW_FINDINGS
from relay.audit.runner.written_frame import write_frame

_FINDINGS_SCHEMA = "name string, severity string, title string, count bigint, file string, position bigint, time timestamp, text string"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended. `found`: an error or a warning is among the findings."""

    job: Job
    result: AuditResult
    facts: list[tuple[str, str]]
    complete: str
    report: Path

    @property
    def found(self) -> bool:
        """Whether something was found that is worth exit code 1."""
        return any(finding.severity != "note" for finding in self.result.findings)


def load_job(name: str) -> Job:
    """The job of this name, one of JOBS."""
    job: Job = importlib.import_module(f"relay.audit.jobs.{name}").JOB
    return job


def run_job(
    spark: SparkSession,
    job: Job,
    options: AuditOptions,
    out: Path,
    on_step: Callable[[str], None] = lambda step: None,
    *,
    replace: bool = True,
) -> Outcome:
    """Runs `job` and leaves `out`. `replace`: over an audit that is there. Raises: NothingToRead, OutputRefused, ArchiveError,
    OSError.
    """
    begun = time.monotonic()
    audit = Audit(spark, options, on_step)
    try:
        return _run(audit, job, out, begun, replace)
    finally:
        audit.release()


def _run(audit: Audit, job: Job, out: Path, begun: float, replace: bool) -> Outcome:
    facts = _facts(audit)
    with written_whole(out, replace=replace) as directory:
        result = job.run(audit)
        named = {finding.name for finding in result.findings}
        result.findings += [finding for finding in audit.unreadable if finding.name not in named]
        audit.step("Writing")
        for name, frame in result.frames.items():
            write_frame(frame, directory / f"{name}.parquet")
        # Behind everything that reads: what was purged meanwhile may be missing anywhere.
        result.findings += audit.gone()
        result.findings.sort(key=lambda finding: (SEVERITIES.index(finding.severity), -finding.count))
        _write_findings(audit, result, directory)
        facts += [*result.facts, ("took", span(time.monotonic() - begun))]
        complete = _completeness(audit, result.findings)
        outcome = Outcome(job, result, facts, complete, out / REPORT)
        write_text(directory / REPORT, html(_page(outcome)))
        write_summary(directory, summary(outcome))
    return outcome


def summary(outcome: Outcome) -> dict[str, object]:
    """The outcome for programs."""
    return {
        "job": outcome.job.name,
        "found": outcome.found,
        "verdict": outcome.result.verdict,
        "complete": outcome.complete,
        "read": dict(outcome.facts),
        "findings": [
            {
                "name": finding.name,
                "severity": finding.severity,
                "title": finding.title,
                "count": finding.count,
                "places": [
                    {"file": place.file, "position": place.position, "text": place.text} for place in finding.places
                ],
            }
            for finding in outcome.result.findings
        ],
        "frames": sorted(["findings", *outcome.result.frames]),
        "report": str(outcome.report),
    }


def _facts(audit: Audit) -> list[tuple[str, str]]:
    heads = audit.heads
    options = audit.options
    facts = [("archive", options.archive)]
    if heads:
        names = heads[0].name if len(heads) == 1 else f"{heads[0].name} to {heads[-1].name}"
        facts.append(("files", f"{number_of(len(heads), 'file')}: {names}"))
        facts.append(("bytes", size(sum(head.bytes for head in heads))))
        versions = dict.fromkeys(head.version for head in heads if head.version)
        shown = list(versions)[:5]
        facts.append(
            ("source", ", ".join(shown) + (" and others" if len(versions) > 5 else "") if shown else "unknown")
        )
        begun = [head.begun for head in heads if head.begun]
        if begun:
            facts.append(
                ("begun", f"{moment(begun[0])} UTC" + (f" to {moment(begun[-1])} UTC" if len(begun) > 1 else ""))
            )
    if options.since or options.until:
        since = moment(options.since) if options.since else "the start"
        until = moment(options.until) if options.until else "the end"
        facts.append(("times", f"{since} to {until}, UTC"))
    if options.tables:
        facts.append(("tables", ", ".join(options.tables)))
    facts.append(("limit", f"{options.limit} rows of a listing"))
    return facts


def _completeness(audit: Audit, findings: list[AuditFinding]) -> str:
    """Whether the numbers are of all that there is."""
    if not audit.files:
        return "No file was written at that time: nothing was read."
    growing = [file.name for file in audit.files if file.growing]
    tail = f" {growing[-1]} is being written: it was read up to its last whole transaction." if growing else ""
    unread = {finding.name for finding in audit.unreadable} - _NOTHING_IS_MISSING | _ROWS_ARE_MISSING | {"file_purged"}
    holes = [finding for finding in findings if finding.name in unread]
    if not holes:
        return f"All bytes of {'this file' if len(audit.files) == 1 else 'these files'} were read.{tail}"
    count = sum(finding.count for finding in holes)
    return (
        f"Not everything could be read: {number_of(count, 'place')} of the archive, listed among the findings. "
        f"What stands there is not in the numbers below.{tail}"
    )


# The event was read all the same, and is counted.
_NOTHING_IS_MISSING = frozenset(
    {"boundary_violation", "position_chain_broken", "checksum_mismatch", "source_changed", "transaction_cut"}
)
_ROWS_ARE_MISSING = frozenset(ROW_FINDINGS)


def _write_findings(audit: Audit, result: AuditResult, directory: Path) -> None:
    rows = [
        (
            finding.name,
            finding.severity,
            finding.title,
            finding.count,
            place.file,
            place.position,
            place.time,
            place.text,
        )
        for finding in result.findings
        for place in finding.places
    ]
    frame = audit.frame_of(_FINDINGS_SCHEMA, rows).coalesce(1)
    write_frame(frame, directory / "findings.parquet")


def _page(outcome: Outcome) -> Page:
    result = outcome.result
    sections = [_findings_section(result.findings), *result.sections]
    return Page(
        f"{outcome.job.title}",
        outcome.job.what,
        result.verdict,
        not outcome.found,
        outcome.complete,
        outcome.facts,
        sections,
    )


def _findings_section(findings: list[AuditFinding]) -> Section:
    if not findings:
        return Section("Findings", "Nothing was found.")
    overview = ReportTable(
        "",
        {"severity": "severity", "finding": "text", "cases": "count", "first at": "code", "what it means": "text"},
        [
            (
                finding.severity,
                finding.title,
                finding.count,
                str(finding.places[0]) if finding.places else None,
                finding.advice,
            )
            for finding in findings
        ],
    )
    tables = [overview]
    for finding in findings:
        if any(place.text or place.position is not None for place in finding.places):
            tables.append(
                ReportTable(
                    finding.title,
                    {"place": "code", "time": "time", "what": "text"},
                    [(str(place), place.time, place.text) for place in finding.places],
                    left_out=finding.count - len(finding.places),
                )
            )
    return Section("Findings", tables=tables)
