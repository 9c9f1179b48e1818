"""The command `binlog-relay archive export`: a stretch of the archive as plain binlogs, and what was written, as text or JSON lines."""

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relay.archive.whole_directory import DirectoryBusy, whole_directory
from relay.commands.archive_command import archive_failures, print_table, shown_name, time_text
from relay.commands.outcome import CommandFailed
from relay.commands.progress import bytes_progress
from relay.disk.file_calls import make_directory
from relay.export.export_errors import ExportRefused
from relay.export.export_place import PlaceSearch
from relay.export.export_plan import ExportPlan, plan_export
from relay.export.export_tally import ExportedTransaction, ExportTally
from relay.export.exporting import WrittenFile, write_export
from relay.export.filter_report import MOST_LISTED, FilterReport
from relay.export.filtered_copy import TableFilter
from relay.export.filtered_transaction import Fate, XaStatements
from relay.export.readable_files import readable_files
from relay.export.table_choice import TableChoice
from relay.packed_reads.archive_layer import layer_of

UNDECIDED_RULES: Final = ("refuse", "keep", "leave-out")
_UNFINISHED: Final = ".exporting"
_SHOWN_STATEMENTS: Final = 20


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The request. `begin` is --from; `to` and `before` say where it ends, at most one of them. `undecided` is one of
    UNDECIDED_RULES."""

    out: Path
    begin: str | None
    to: str | None
    before: str | None
    tables: tuple[str, ...]
    undecided: str
    across_gaps: bool


@dataclass(frozen=True, slots=True)
class ExportOutcome:
    """The result. `filter` is None if all transactions were wanted."""

    out: Path
    plan: ExportPlan
    files: Sequence[WrittenFile]
    tally: ExportTally
    filter: TableFilter | None


def export(directory: Path, request: ExportRequest, *, as_json: bool) -> bool:
    """Write the export and report it; return whether something needs attention. `directory` is that of the archive or of a view.

    It works beside a running relay. Raises: CommandFailed; ExportRefused.
    """
    if request.undecided not in UNDECIDED_RULES:
        raise CommandFailed(f"--undecided {request.undecided}: write one of {', '.join(UNDECIDED_RULES)}.")
    if request.to is not None and request.before is not None:
        raise CommandFailed("Write either --to or --before.")
    with archive_failures(directory):
        outcome = _export(directory, request)
    if as_json:
        for line in _records(outcome):
            sys.stdout.write(json.dumps(line) + "\n")
    else:
        _print(outcome)
    if outcome.tally.transactions:
        return False
    sys.stderr.write(f"{_nothing(outcome)}\n")
    return True


def _export(directory: Path, request: ExportRequest) -> ExportOutcome:
    layer = layer_of(directory)
    files = readable_files(directory, layer)
    if not files:
        raise ExportRefused(f"The archive in {directory} holds no file yet.")
    places = PlaceSearch(files, layer)
    begin = places.beginning("--from", request.begin)
    if request.before is not None:
        end = places.end("--before", request.before, included=False)
    else:
        end = places.end("--to", request.to, included=True)
    filter = None
    if request.tables:
        choice = TableChoice.from_texts(request.tables)
        filter = TableFilter(choice, request.undecided == "keep", FilterReport(), XaStatements())
    plan = plan_export(directory, files, begin, end, layer, across_gaps=request.across_gaps)
    tally = ExportTally()
    total = sum(piece.stop - piece.start for piece in plan.pieces)
    with export_target(request.out) as target:
        with bytes_progress("export", total) as advance:
            written = write_export(plan, target, tally, filter, layer, advance)
        if filter is not None and request.undecided == "refuse":
            _check_decided(filter.report)
    return ExportOutcome(request.out, plan, written, tally, filter)


def _check_decided(report: FilterReport) -> None:
    """Check that every statement was decided. Raises: ExportRefused."""
    count = report.count(Fate.UNDECIDED, decided=False)
    if not count:
        return
    listed = [one for one in report.listed if one.statement.fate is Fate.UNDECIDED]
    lines = [
        f"  {shown_name(one.generation, one.file)}:{one.statement.offset}: {one.statement.text}"
        for one in listed[:_SHOWN_STATEMENTS]
    ]
    if count > len(lines):
        lines.append(f"  ... and {count - len(lines)} more")
    raise ExportRefused(
        f"{count} event(s) are no rows, and whether they change one of the tables cannot be told. Nothing was written.\n"
        + "\n".join(lines)
        + "\nSay what becomes of them: --undecided keep, or --undecided leave-out; both list them."
    )


def _nothing(outcome: ExportOutcome) -> str:
    if outcome.filter is None:
        return "There is no transaction in this stretch: the files hold nothing to apply."
    seen = sorted(outcome.filter.report.tables)
    names = ", ".join(f"{schema}.{table}" for schema, table in seen[:10]) or "none"
    more = f" and {len(seen) - 10} more" if len(seen) > 10 else ""
    return (
        f"No transaction in this stretch changes {outcome.filter.choice}: the files hold nothing to apply. "
        f"Tables with rows there: {names}{more}."
    )


# --- what was written ----------------------------------------------------------------------------------------------------


def _records(outcome: ExportOutcome) -> Iterator[dict[str, object]]:
    for file in outcome.files:
        piece = file.piece
        yield {
            "kind": "file",
            "name": piece.name,
            "bytes": file.size,
            "file": piece.source.name,
            "generation": piece.source.generation,
            "start": piece.start,
            "end": piece.stop,
            "shift": file.shift,
            "transactions": file.transactions,
            "executed_before": file.executed,
            "repeated": [list(span) for span in piece.repeated],
        }
    for seam in outcome.plan.seams:
        yield {
            "kind": "seam",
            "seam": seam.kind,
            "leads_on": seam.leads_on,
            "before": str(seam.before),
            "behind": str(seam.after),
            "text": seam.text,
        }
    filter = outcome.filter
    if filter is not None:
        for one in filter.report.listed:
            yield {
                "kind": "statement",
                "file": one.file,
                "generation": one.generation,
                "offset": one.statement.offset,
                "fate": _fate(one.statement.fate),
                "decided_by": "tables" if one.statement.decided else "rule",
                "text": one.statement.text,
            }
    yield {
        "kind": "export",
        "out": str(outcome.out),
        "files": len(outcome.files),
        "transactions": outcome.tally.transactions,
        "first": _transaction_record(outcome.tally.first),
        "last": _transaction_record(outcome.tally.last),
        "filter": None if filter is None else _filter_record(outcome, filter),
    }


def _transaction_record(transaction: ExportedTransaction | None) -> dict[str, object] | None:
    if transaction is None:
        return None
    return {
        "file": transaction.file,
        "generation": transaction.generation,
        "position": transaction.start,
        "end": transaction.end,
        "gtid": transaction.gtid,
        "time": time_text(transaction.timestamp),
    }


def _filter_record(outcome: ExportOutcome, filter: TableFilter) -> dict[str, object]:
    report = filter.report
    return {
        "tables": str(filter.choice),
        "undecided": "keep" if filter.keeps_undecided else "leave-out",
        "transactions_left_out": outcome.tally.left_out,
        "row_events_kept": report.rows_kept,
        "row_events_left_out": report.rows_left_out,
        "definitions_kept": report.count(Fate.KEPT, decided=True),
        "definitions_left_out": report.count(Fate.LEFT_OUT, decided=True),
        "undecided_kept": report.count(Fate.KEPT, decided=False),
        "undecided_left_out": report.count(Fate.UNDECIDED, decided=False),
    }


def _fate(fate: Fate) -> str:
    return str(Fate.LEFT_OUT if fate is Fate.UNDECIDED else fate)


def _print(outcome: ExportOutcome) -> None:
    rows = [
        (
            file.piece.name,
            str(file.size),
            shown_name(file.piece.source.generation, file.piece.source.name),
            str(file.piece.start),
            str(file.piece.stop),
            str(file.transactions),
            "-" if file.shift is None else f"{file.shift:+d}",
        )
        for file in outcome.files
    ]
    headings = ("written", "bytes", "of", "from", "to", "transactions", "shift")
    print_table(headings, rows, numbers=(1, 3, 4, 5, 6))
    out = sys.stdout.write
    for seam in outcome.plan.seams:
        out(f"{seam.text}\n")
    filter = outcome.filter
    if filter is not None:
        _print_filter(outcome, filter)
    first, last = outcome.tally.first, outcome.tally.last
    if first is not None and last is not None:
        out(f"First transaction: {_shown(first)}.\nLast transaction, included: {_shown(last)}.\n")
    count = outcome.tally.transactions
    out(f"{count} transaction{'' if count == 1 else 's'} in {outcome.out}: mysqlbinlog {outcome.out}/* | mysql\n")


def _shown(transaction: ExportedTransaction) -> str:
    name = shown_name(transaction.generation, transaction.file)
    gtid = f", {transaction.gtid}" if transaction.gtid else ""
    return f"{name}:{transaction.start}-{transaction.end}{gtid}, begun {time_text(transaction.timestamp)}"


def _print_filter(outcome: ExportOutcome, filter: TableFilter) -> None:
    report, out = filter.report, sys.stdout.write
    for one in report.listed:
        by = "its tables" if one.statement.decided else "--undecided"
        place = f"{shown_name(one.generation, one.file)}:{one.statement.offset}"
        out(f"{place}: {_fate(one.statement.fate)} by {by}: {one.statement.text}\n")
    for (fate, decided), count in sorted(report.counts.items()):
        if count > MOST_LISTED:
            by = "by their tables" if decided else "by --undecided"
            out(f"{count} statements {_fate(Fate(fate))} {by}; the first {MOST_LISTED} are listed.\n")
    out(
        f"Of {filter.choice}: {report.rows_kept} events with rows were written, {report.rows_left_out} of other tables were left "
        f"out; {outcome.tally.left_out} transactions have none of it and were left out.\n"
    )


@contextlib.contextmanager
def export_target(out: Path) -> Iterator[Path]:
    """Yield a directory to write into, which durably becomes `out` after the block; after an error it is removed.

    The remains of an earlier export that was killed are removed first. Raises: ExportRefused; OSError.
    """
    out = out.absolute()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ExportRefused(
            f"{out} is there already and is not empty: an export makes its own directory. Name another --out."
        )
    making = out.with_name(f".{out.name}{_UNFINISHED}")
    make_directory(making)
    try:
        with whole_directory(making, out):
            yield making
    except DirectoryBusy:
        raise ExportRefused(f"Another export is writing to {out}. Wait for it, or name another --out.") from None
