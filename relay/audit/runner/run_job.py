"""A run of one job: it reads, computes, writes Parquet and the report, and reports what was found."""

import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_outcome import Outcome, page_of, summary
from relay.audit.runner.audit_result import SEVERITIES, AuditOptions, AuditResult
from relay.audit.runner.facts_read import completeness, facts_read, unread_places
from relay.audit.runner.job import Job
from relay.audit.runner.output import REPORT, write_summary, write_text, written_whole
from relay.commands.outcome import CommandFailed
from relay.report.content import Fact
from relay.report.page import html
from relay.report.text import span

_MODULES: Final = {"history": "row_history", "hot-keys": "hot_keys"}
"""Jobs whose module has another name."""
_FINDINGS_SCHEMA = (
    "name string, severity string, title string, count bigint, file string, position bigint, time timestamp, text string, "
    "cases bigint, last string"
)


def load_job(name: str) -> Job:
    """Return the job of this name, one of JOBS."""
    job: Job = importlib.import_module(f"relay.audit.jobs.{_MODULES.get(name, name)}").JOB
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
    """Run `job` and leave `out`. With `replace` an existing audit is overwritten. Raises: NothingToRead, CommandFailed, ArchiveError,
    OSError."""
    audit = Audit(spark, options, on_step)
    try:
        with written_whole(out, replace=replace) as directory:
            return run_in(audit, job, directory, out)
    finally:
        audit.release()


def run_in(audit: Audit, job: Job, directory: Path, out: Path, *, index: bool = False) -> Outcome:
    """Run `job` and write to `directory`, which will be `out`. With `index` there is a page over several audits above it.

    Raises: as `run_job`.
    """
    begun = time.monotonic()
    facts = facts_read(audit)
    result = job.run(audit)
    named = {finding.name for finding in result.findings}
    result.findings += [finding for finding in audit.unreadable if finding.name not in named]
    audit.step("Writing")
    for name, frame in result.frames.items():
        write_frame(frame, directory / f"{name}.parquet")
    # This comes after everything that reads: what was purged meanwhile may be missing anywhere.
    result.findings += audit.gone()
    result.findings.sort(key=lambda finding: (SEVERITIES.index(finding.severity), -finding.count))
    _write_findings(audit, result, directory)
    took = time.monotonic() - begun
    facts += [*result.facts, Fact("took", span(took), {"took_seconds": round(took, 3)})]
    unread = unread_places(audit, result.findings)
    outcome = Outcome(job, result, facts, unread, completeness(audit, unread), out / REPORT)
    write_text(directory / REPORT, html(page_of(outcome, index=index)))
    write_summary(directory, summary(outcome))
    return outcome


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
            place.count,
            place.last or None,
        )
        for finding in result.findings
        for place in finding.places
    ]
    frame = audit.frame_of(_FINDINGS_SCHEMA, rows).coalesce(1)
    write_frame(frame, directory / "findings.parquet")


def write_frame(frame: DataFrame, path: Path) -> None:
    """Write a frame, and check that all of it exists.

    If the directory is not shared by the whole cluster, each executor writes to its own disk, and Spark reports success. Raises:
    CommandFailed.
    """
    counted = Observation()
    observed = frame.observe(counted, F.count(F.lit(1)).alias("rows"))
    observed.write.mode("error").parquet(path.absolute().as_uri())
    rows = int(counted.get["rows"])
    found = sum(pq.read_metadata(part).num_rows for part in path.glob("*.parquet"))
    if found != rows:
        raise CommandFailed(
            f"executors wrote {rows} rows to {path.name}, and {found} of them are in {path.parent.parent} here: the directory is "
            "not the same for all of the cluster. Name one, with --out, that the driver and all executors mount at the same path."
        )
