"""`binlog-relay archive list | verify | rebuild | ledger`: tables on a terminal, plain lines elsewhere, or JSON."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from relay.archive.archive import list_archive, read_ledger, rebuild_archive
from relay.archive.archived_file import ArchivedFile
from relay.archive.catalog import LedgerRow
from relay.archive.errors import ArchiveError, ArchiveLocked
from relay.archive.verify import verify_archive
from relay.commands.outcome import ARCHIVE_DAMAGED, WRONG_USE, CommandFailed
from relay.commands.progress import bytes_progress


def list_files(directory: Path, *, as_json: bool) -> None:
    """Prints one line a file. Works beside a running relay. Raises: CommandFailed."""
    with _archive_failures(directory):
        files = list_archive(directory)
    if as_json:
        _print_lines(json.dumps(_file_record(file)) for file in files)
        return
    rows = [
        (
            file.name,
            str(file.end),
            "sealed" if file.sealed else "open",
            _time_text(file.first_timestamp),
            _time_text(file.last_timestamp),
            str(file.events),
            str(file.groups),
            f"{file.flavour} {file.server_version}",
            "CRC32" if file.checksum else "none",
            ", ".join(word for word, there in (("cut", file.cut), ("damaged", file.damaged)) if there),
        )
        for file in files
    ]
    headings = ("file", "end", "state", "first", "last", "events", "groups", "source", "checksum", "notes")
    _print_table(headings, rows, numbers=(1, 5, 6))


def show_ledger(directory: Path, *, as_json: bool) -> None:
    """Prints the ledger, oldest first. Works beside a running relay. Raises: CommandFailed."""
    with _archive_failures(directory):
        ledger = read_ledger(directory)
    if as_json:
        _print_lines(json.dumps(_ledger_record(row)) for row in ledger)
        return
    rows = [_ledger_cells(row) for row in ledger]
    _print_table(("time", "what", "place", "text"), rows, numbers=())


def verify(directory: Path, *, deep: bool, as_json: bool) -> int:
    """Prints what is wrong as it is found; returns how many findings. Works beside a running relay. Raises: CommandFailed."""
    count = 0
    with _archive_failures(directory), _file_progress("verify", directory) as on_progress:
        for finding in verify_archive(directory, deep=deep, on_progress=on_progress):
            count += 1
            if as_json:
                sys.stdout.write(json.dumps(asdict(finding)) + "\n")
            else:
                place = finding.file if finding.offset is None else f"{finding.file}:{finding.offset}"
                sys.stdout.write(f"{place}: {finding.what}\n")
    if not as_json:
        sys.stdout.write(f"{count} findings.\n" if count else "The archive is fine.\n")
    return count


def rebuild(directory: Path, *, as_json: bool) -> None:
    """Makes catalog and indexes again; prints what was found on the way. Raises: CommandFailed."""
    with _archive_failures(directory), _file_progress("rebuild", directory) as on_progress:
        recovered = rebuild_archive(directory, on_progress)
    if as_json:
        _print_lines(json.dumps(_ledger_record(row)) for row in recovered.findings)
        return
    _print_table(("time", "what", "place", "text"), [_ledger_cells(row) for row in recovered.findings], numbers=())
    sys.stdout.write(f"{len(recovered.files)} files, catalog and indexes made again.\n")


@contextmanager
def _archive_failures(directory: Path) -> Iterator[None]:
    """Turns the archive's errors into sentences with an exit code."""
    if not directory.is_dir():
        message = f"There is no archive in {directory}. Check [archive] dir and [source] name, or start the relay once."
        raise CommandFailed(message, WRONG_USE)
    try:
        yield
    except ArchiveLocked as error:
        raise CommandFailed(f"{error} Stop the relay that uses {directory} first.", WRONG_USE) from error
    except ArchiveError as error:
        raise CommandFailed(f"{directory}: {error}", ARCHIVE_DAMAGED) from error


@contextmanager
def _file_progress(title: str, directory: Path) -> Iterator[Callable[[str, int], None] | None]:
    total = sum(path.stat().st_size for path in directory.iterdir() if path.suffix[1:].isdigit())
    with bytes_progress(title, total) as advance:
        if advance is None:
            yield None
        else:
            forward = advance
            yield lambda _name, count: forward(count)


def _time_text(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if timestamp else "-"


def _file_record(file: ArchivedFile) -> dict[str, object]:
    return {
        "file": file.name,
        "end": file.end,
        "sealed": file.sealed,
        "first_time": _time_text(file.first_timestamp) if file.first_timestamp else None,
        "last_time": _time_text(file.last_timestamp) if file.last_timestamp else None,
        "events": file.events,
        "groups": file.groups,
        "flavour": file.flavour,
        "server_version": file.server_version,
        "server_id": file.server_id,
        "checksum": "crc32" if file.checksum else "none",
        "cut": file.cut,
        "damaged": file.damaged,
        "digest": file.digest,
    }


def _ledger_record(row: LedgerRow) -> dict[str, object]:
    offset = row.offset if row.offset >= 0 else None
    return {"time": _time_text(row.time), "kind": row.kind, "file": row.file, "offset": offset, "text": row.text}


def _ledger_cells(row: LedgerRow) -> tuple[str, ...]:
    place = f"{row.file}:{row.offset}" if row.offset >= 0 else row.file
    return _time_text(row.time), row.kind, place or "-", row.text


def _print_lines(lines: Iterator[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")


def _print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int]) -> None:
    """A rich table on a terminal; elsewhere a line a row, cells separated by tabs, empty cells as '-'."""
    if not sys.stdout.isatty():
        _print_lines("\t".join(cell or "-" for cell in row) for row in rows)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for column, heading in enumerate(headings):
        table.add_column(heading, justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        # As Text: a "[" in a name or message is no markup.
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)
