"""A run of several audits of one archive in one Spark session: what more than one of them reads is read once."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_outcome import Outcome, index_row, summary
from relay.audit.runner.audit_result import AuditOptions
from relay.audit.runner.facts_read import facts_read
from relay.audit.runner.job import Job
from relay.audit.runner.output import INDEX, write_summary, write_text, written_whole
from relay.audit.runner.run_job import run_in
from relay.disk.file_calls import make_new_directory
from relay.report.content import Fact
from relay.report.page import index_html
from relay.report.text import number_of, span


@dataclass(frozen=True, slots=True)
class SeveralOutcomes:
    """The outcomes, in order. `left_out` maps the name of an omitted audit to the reason."""

    archive: str
    outcomes: Sequence[Outcome]
    facts: Sequence[Fact]
    left_out: Mapping[str, str]
    report: Path

    @property
    def found(self) -> bool:
        """True if one of them found something that is worth exit code 1."""
        return any(outcome.found for outcome in self.outcomes)

    @property
    def verdict(self) -> str:
        """A sentence about which of them found something."""
        found = [outcome.job.name for outcome in self.outcomes if outcome.found]
        of = number_of(len(self.outcomes), "audit")
        return f"{of}: errors or warnings in {', '.join(found)}." if found else f"{of}: nothing was found."


def run_all(
    spark: SparkSession,
    jobs: Sequence[Job],
    options: AuditOptions,
    out: Path,
    on_step: Callable[[str], None] = lambda step: None,
    *,
    replace: bool = True,
) -> SeveralOutcomes:
    """Run the jobs one after the other and leave `out`: a directory for each, and a page over them.

    Jobs that need --tables are left out if no table is named. With `replace` an existing audit is overwritten. Raises: as `run_job`.
    """
    begun = time.monotonic()
    audit = Audit(spark, options, on_step)
    left_out = {
        job.name: job.not_in_all for job in jobs if job.not_in_all and not (options.tables and job.takes_tables)
    }
    try:
        with written_whole(out, replace=replace) as directory:
            outcomes = []
            for job in jobs:
                if job.name not in left_out:
                    make_new_directory(directory / job.name)
                    outcomes.append(_run(audit, job, directory, out))
            took = time.monotonic() - begun
            facts = [*facts_read(audit), Fact("took", span(took), {"took_seconds": round(took, 3)})]
            done = SeveralOutcomes(options.archive, outcomes, facts, left_out, out / INDEX)
            rows = [index_row(outcome) for outcome in outcomes]
            write_text(
                directory / INDEX, index_html(options.archive, done.verdict, facts, rows, list(left_out.items()))
            )
            write_summary(directory, summary_of_all(done))
            return done
    finally:
        audit.release()


def _run(audit: Audit, job: Job, directory: Path, out: Path) -> Outcome:
    """Run a job with those of the options that it takes."""
    options = audit.options
    own = replace(
        options, tables=options.tables if job.takes_tables else (), target=options.target if job.takes_target else ""
    )
    audit.step(job.title)
    return run_in(audit.for_job(own), job, directory / job.name, out / job.name, index=True)


def summary_of_all(done: SeveralOutcomes) -> dict[str, object]:
    """Return the outcomes for programs."""
    return {
        "job": "all",
        "found": done.found,
        "verdict": done.verdict,
        "read": {name: value for fact in done.facts for name, value in fact.values.items()},
        "audits": [summary(outcome) for outcome in done.outcomes],
        "left_out": dict(done.left_out),
        "report": str(done.report),
    }
