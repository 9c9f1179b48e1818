"""Runs a job in the tests' session, and reads what it leaves."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from relay.audit.history.row_asked import RowAsked
from relay.audit.runner.audit_outcome import Outcome, page_of
from relay.audit.runner.audit_result import AuditFinding, AuditOptions
from relay.audit.runner.run_job import load_job, run_job
from tests.audit.checked_page import CheckedPage


@dataclass
class JobRun:
    """What a job left in `out`."""

    outcome: Outcome
    out: Path

    @property
    def names(self) -> set[str]:
        """Names of the findings that make exit code 1."""
        return {finding.name for finding in self.outcome.result.findings if finding.severity != "note"}

    @property
    def page(self) -> CheckedPage:
        """The report."""
        return CheckedPage((self.out / "report.html").read_text(encoding="utf-8"))

    @property
    def summary(self) -> Any:
        """audit.json."""
        return json.loads((self.out / "audit.json").read_text())

    def finding(self, name: str) -> AuditFinding:
        """The finding of this name."""
        return next(finding for finding in self.outcome.result.findings if finding.name == name)

    @property
    def figures(self) -> Any:
        """The audit's own numbers, as audit.json has them."""
        return self.summary["figures"]

    def places(self, name: str) -> list[str]:
        """Where the cases of a finding are."""
        return [str(place) for place in self.finding(name).places]

    def parquet(self, name: str) -> list[dict[str, Any]]:
        """The rows of one of the files."""
        rows: list[dict[str, Any]] = pq.read_table(self.out / f"{name}.parquet").to_pylist()
        return rows

    def table(self, title: str) -> list[tuple[Any, ...]]:
        """The rows of a table of the report."""
        return next(rows for name, rows in self._tables() if name == title)

    def _tables(self) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        for section in self.outcome.result.sections:
            for table in section.tables:
                yield table.title or section.title, [tuple(row) for row in table.rows]
        for table in page_of(self.outcome).cases:
            yield table.title, [tuple(row) for row in table.rows]


def run(
    spark: Any,
    name: str,
    archive: Path | str,
    directory: Path,
    *,
    tables: tuple[str, ...] = (),
    limit: int = 100,
    since: datetime | None = None,
    until: datetime | None = None,
    target: str = "",
    row: RowAsked | None = None,
) -> JobRun:
    """Runs the job, and checks that its report is a page that stands alone."""
    out = directory / f"audit-{name}-{len(list(directory.glob('audit-*')))}"
    options = AuditOptions(str(archive), since, until, tables, limit, target, row)
    outcome = run_job(spark, load_job(name), options, out)
    done = JobRun(outcome, out)
    assert done.page.text
    assert done.summary["found"] is bool(done.names)
    return done
