"""The outcome of an audit: for programs (audit.json) and as a page."""

from dataclasses import dataclass
from pathlib import Path

from relay.audit.runner.audit_result import AuditFinding, AuditResult, Place
from relay.audit.runner.facts_read import iso
from relay.audit.runner.job import Job
from relay.report.content import Fact, IndexRow, Kind, Page, ReportTable, Section


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a job. `unread` is the number of places that could not be read; `complete` says so in a sentence."""

    job: Job
    result: AuditResult
    facts: list[Fact]
    unread: int
    complete: str
    report: Path

    @property
    def found(self) -> bool:
        """True if something was found that is worth exit code 1: an error or a warning."""
        return any(finding.severity != "note" for finding in self.result.findings)


def summary(outcome: Outcome) -> dict[str, object]:
    """Return the outcome for programs: numbers as numbers, with their units in the names; times in ISO 8601, UTC."""
    return {
        "job": outcome.job.name,
        "found": outcome.found,
        "verdict": outcome.result.verdict,
        "complete": outcome.complete,
        "unread_places": outcome.unread,
        "read": {name: value for fact in outcome.facts for name, value in fact.values.items()},
        "figures": outcome.result.figures,
        "findings": [
            {
                "name": finding.name,
                "severity": finding.severity,
                "title": finding.title,
                "count": finding.count,
                "places": [_place(place) for place in finding.places],
                "places_left_out": finding.left_out,
            }
            for finding in outcome.result.findings
        ],
        "frames": sorted(["findings", *outcome.result.frames]),
        "report": str(outcome.report),
    }


def _place(place: Place) -> dict[str, object]:
    told: dict[str, object] = {
        "file": place.file,
        "position": place.position,
        "time": iso(place.time),
        "text": place.text,
        "count": place.count,
    }
    if place.last:
        told |= {"last": place.last, "last_time": iso(place.last_time)}
    if place.example:
        told["example"] = place.example
    return told


def index_row(outcome: Outcome) -> IndexRow:
    """Return the outcome in the page over several audits."""
    findings = [(finding.severity, finding.title, finding.count) for finding in outcome.result.findings]
    job = outcome.job
    return IndexRow(job.name, job.title, outcome.result.verdict, outcome.complete, not outcome.found, findings)


def page_of(outcome: Outcome, *, index: bool = False) -> Page:
    """Return the report. A summary of the findings comes first, then the audit's own sections, then the cases of each finding."""
    result = outcome.result
    cases = [_cases(finding) for finding in result.findings if _has_cases(finding)]
    return Page(
        outcome.job.title,
        outcome.job.what,
        result.verdict,
        not outcome.found,
        outcome.complete,
        outcome.facts,
        [_findings_section(result.findings), *result.sections],
        cases,
        index,
    )


def _has_cases(finding: AuditFinding) -> bool:
    return len(finding.places) > 1 or any(place.text or place.position is not None for place in finding.places)


def _anchor(finding: AuditFinding) -> str:
    return f"cases-{finding.name}"


def _findings_section(findings: list[AuditFinding]) -> Section:
    if not findings:
        return Section("Findings", "Nothing was found.")
    overview = ReportTable(
        "",
        {"severity": "severity", "finding": "text", "cases": "count", "first at": "place", "what it means": "text"},
        [
            (
                finding.severity,
                finding.title,
                finding.count,
                (str(finding.places[0]) or None) if finding.places else None,
                finding.advice,
            )
            for finding in findings
        ],
    )
    links = [_anchor(finding) if _has_cases(finding) else "" for finding in findings]
    return Section("Findings", tables=[overview], links=links)


def _cases(finding: AuditFinding) -> ReportTable:
    """Return a row for each place; places that represent several cases show how many, and the last of them."""
    several = any(place.count > 1 for place in finding.places)
    examples = any(place.example for place in finding.places)
    columns: dict[str, Kind] = {"first" if several else "place": "place", "time": "time"}
    if several:
        columns |= {"cases": "count"}
    if any(place.last for place in finding.places):
        columns |= {"last": "place", "time of the last": "time"}
    columns |= {"what": "text"}
    if examples:
        columns |= {"example": "code"}
    rows = []
    for place in finding.places:
        row: list[object] = [str(place) or None, place.time]
        row += [place.count] if several else []
        row += [place.last or None, place.last_time] if "last" in columns else []
        row += [place.text]
        row += [place.example or None] if examples else []
        rows.append(row)
    note = "Cases that look alike are one row." if several else ""
    return ReportTable(finding.title, columns, rows, finding.left_out, note, _anchor(finding))
