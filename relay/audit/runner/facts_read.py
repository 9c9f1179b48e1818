"""The input that an audit read, as lines for people and as values for programs, and whether that was everything."""

from datetime import UTC, datetime
from typing import Final

from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import AuditFinding
from relay.audit.runner.row_findings import ROW_FINDINGS
from relay.report.content import Fact
from relay.report.text import moment, number_of, size

_SHOWN_VERSIONS: Final = 5

# The event was read all the same, and is counted.
_NOTHING_IS_MISSING: Final = frozenset(
    {"boundary_violation", "position_chain_broken", "checksum_mismatch", "source_changed", "transaction_cut"}
)
_ROWS_ARE_MISSING: Final = frozenset(ROW_FINDINGS)


def facts_read(audit: Audit) -> list[Fact]:
    """Return the archive, its files, and the options."""
    heads = audit.heads
    options = audit.options
    facts = [Fact("archive", options.archive, {"archive": options.archive})]
    if heads:
        names = heads[0].name if len(heads) == 1 else f"{heads[0].name} to {heads[-1].name}"
        ends = {"files": len(heads), "first_file": heads[0].name, "last_file": heads[-1].name}
        facts.append(Fact("files", f"{number_of(len(heads), 'file')}: {names}", ends))
        total = sum(head.bytes for head in heads)
        facts.append(Fact("bytes", size(total), {"bytes": total}))
        versions = list(dict.fromkeys(head.version for head in heads if head.version))
        shown = ", ".join(versions[:_SHOWN_VERSIONS]) + (" and others" if len(versions) > _SHOWN_VERSIONS else "")
        facts.append(Fact("source", shown or "unknown", {"source_versions": versions}))
        begun = [head.begun for head in heads if head.begun]
        if begun:
            text = f"{moment(begun[0])} UTC" + (f" to {moment(begun[-1])} UTC" if len(begun) > 1 else "")
            facts.append(Fact("begun", text, {"first_file_begun": iso(begun[0]), "last_file_begun": iso(begun[-1])}))
    if options.since or options.until:
        since = moment(options.since) if options.since else "the start"
        until = moment(options.until) if options.until else "the end"
        facts.append(
            Fact("times", f"{since} to {until}, UTC", {"since": iso(options.since), "until": iso(options.until)})
        )
    if options.tables:
        facts.append(Fact("tables", ", ".join(options.tables), {"tables": list(options.tables)}))
    facts.append(Fact("limit", f"{options.limit} rows of a listing", {"limit_rows": options.limit}))
    return facts


def iso(time: datetime | None) -> str | None:
    """Return a time for programs: ISO 8601, UTC."""
    return None if time is None else time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def unread_places(audit: Audit, findings: list[AuditFinding]) -> int:
    """Return how many places of the archive could not be read."""
    unread = {finding.name for finding in audit.unreadable} - _NOTHING_IS_MISSING | _ROWS_ARE_MISSING | {"file_purged"}
    return sum(finding.count for finding in findings if finding.name in unread)


def completeness(audit: Audit, unread: int) -> str:
    """Return a sentence on whether the numbers cover everything."""
    if not audit.files:
        return "No file was written at that time: nothing was read."
    growing = [file.name for file in audit.files if file.growing]
    tail = f" {growing[-1]} is being written: it was read up to its last whole transaction." if growing else ""
    if not unread:
        return f"All bytes of {'this file' if len(audit.files) == 1 else 'these files'} were read.{tail}"
    return (
        f"Not everything could be read: {number_of(unread, 'place')} of the archive, listed among the findings. "
        f"What stands there is not in the numbers below.{tail}"
    )
