"""continuity: whether an archive is complete from its first byte to its last, and what is missing if it is not.

CRCs and positions are checked by the reader of all events (the frame's own findings). This job checks the chain of files, who wrote
them, times that go back, GTIDs, and the gaps in the archive's ledger. With --since and --until the files of that time are checked as a
whole: a part of a file has no head and no end.
"""

from typing import Final

from pyspark.sql import Row

from relay.audit.continuity.file_chain import chain_findings, file_ends, files_frame, files_section, identity_findings
from relay.audit.continuity.gtid_ranges import gtid_findings, gtid_sections, gtids_of
from relay.audit.continuity.ledger import ledger_findings, ledger_sections, read_ledgers
from relay.audit.continuity.times_back import times_back
from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import AuditFinding, AuditResult
from relay.audit.runner.job import Job
from relay.binlog_tables.plan.series_head import SeriesHead
from relay.report.text import moment

_TRANSACTIONS: Final = ("file", "start", "last_time", "gtid", "events")


def run(audit: Audit) -> AuditResult:
    """Make one pass over events for the files' ends, two over transactions for times and GTIDs, and the frame's over all bytes."""
    limit = audit.options.limit
    audit.step("Looking at the ends of files")
    ends = {row["file"]: row for row in audit.keep(file_ends(audit)).collect()}
    heads = audit.heads
    ledger = read_ledgers(audit.options.archive, audit.files, of_these=audit.options.timed)
    findings = [*chain_findings(audit, heads, ends, ledger), *identity_findings(heads, ledger, limit)]
    audit.step("Looking at times")
    findings += times_back(audit, audit.read_whole("transactions", *_TRANSACTIONS).where("events IS NOT NULL"))
    audit.step("Comparing GTIDs")
    gtids = gtids_of(audit, audit.read_whole("transactions", *_TRANSACTIONS).where("events IS NOT NULL"), heads)
    findings += gtid_findings(gtids, limit)
    findings += ledger_findings(ledger, limit)
    broken = [finding for finding in [*findings, *audit.unreadable, *audit.gone()] if finding.severity != "note"]
    sections = [files_section(heads, ends, limit), *gtid_sections(gtids, limit), *ledger_sections(ledger, limit)]
    return AuditResult(_verdict(heads, ends, broken), findings, sections, {"files": files_frame(audit, heads, ends)})


def _verdict(heads: list[SeriesHead], ends: dict[str, Row], broken: list[AuditFinding]) -> str:
    if not heads:
        return "No file was read."
    first, last = heads[0], heads[-1]
    end = ends.get(last.name)
    from_ = f"{first.name}:4 ({moment(first.begun)})"
    to = f"{last.name}:{'?' if end is None else end['last_end']} ({moment(None if end is None else end['last_time'])} UTC)"
    if not broken:
        return f"Complete from {from_} to {to}."
    kinds = "; ".join(f"{finding.title.lower()}: {finding.count}" for finding in broken[:4])
    return f"Not complete from {from_} to {to}: {kinds}{' and more' if len(broken) > 4 else ''}."


JOB: Final = Job(
    "continuity",
    "Continuity",
    "Checksums, positions, the chain of files, the identity of the source, times, GTIDs, and the archive's ledger.",
    run,
)
