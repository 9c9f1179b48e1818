"""`binlog-relay archive list | verify | rebuild | ledger`: tables on a terminal, plain lines elsewhere, or JSON."""

import json
import os
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Final

from protocol.position import is_binlog_name
from protocol.printable import printable
from relay.archive.catalog.catalog import CatalogNewer, CatalogUnreadable
from relay.archive.catalog.catalog_faults import system_number
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.catalog.generation_directories import FIRST, begun_generations, generation_path
from relay.archive.storage.archive_errors import ArchiveError, ArchiveLocked
from relay.archive.storage.archive_finding import ArchiveFinding
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.disk_advice import start_advice
from relay.archive.storage.files import CATALOG_NAME, FileLayer
from relay.archive_inspection.listing import (
    damaged_places,
    gaps_before,
    list_generations,
    read_ledgers,
    rebuild_archive,
)
from relay.archive_inspection.verify import verify_generations
from relay.commands.outcome import CommandFailed
from relay.commands.progress import bytes_progress
from relay.view.rules.kept_settings import VIEWS_DIRECTORY, damage_advice

_LONGEST_CELL: Final = 1 << 16
PackedChecks = Callable[[Callable[[str, int], None] | None], Iterable[tuple[int, ArchiveFinding]]]


def list_files(directory: Path, *, as_json: bool) -> None:
    """Print one line a file. The relay may be running. Raises: CommandFailed."""
    with archive_failures(directory):
        generations = list_generations(directory)
        damaged = damaged_places(directory)
        gaps = gaps_before(directory)
    held = [(number, file) for number, files in generations for file in files]
    behind = {(number, gap.to.file) for number, gap in gaps}
    if as_json:
        _print_lines(
            json.dumps(
                {
                    **_file_record(number, file, damaged.get((number, file.name))),
                    "behind_gap": (number, file.name) in behind,
                }
            )
            for number, file in held
        )
        return
    rows = [
        (
            shown_name(number, file.name),
            str(file.end),
            str(file.tier) if file.sealed else "open",
            time_text(file.first_timestamp),
            time_text(file.last_timestamp),
            str(file.events),
            str(file.groups),
            f"{file.flavour} {file.server_version}",
            "CRC32" if file.checksum else "none",
            _notes(file, damaged.get((number, file.name)), behind_gap=(number, file.name) in behind),
        )
        for number, file in held
    ]
    headings = ("file", "end", "tier", "first", "last", "events", "groups", "source", "checksum", "notes")
    print_table(headings, rows, numbers=(1, 5, 6))


def show_ledger(directory: Path, *, as_json: bool) -> None:
    """Print the ledger, oldest first. The relay may be running. Raises: CommandFailed."""
    with archive_failures(directory):
        ledger = read_ledgers(directory)
    if as_json:
        _print_lines(json.dumps(_ledger_record(number, row)) for number, row in ledger)
        return
    if not ledger and sys.stdout.isatty():
        sys.stdout.write("The ledger is empty: nothing happened that an operator should know.\n")
        return
    rows = [_ledger_cells(number, row) for number, row in ledger]
    print_table(("time", "what", "place", "text"), rows, numbers=())


def verify(directory: Path, *, deep: bool, as_json: bool, packed: PackedChecks | None = None) -> int:
    """Print what is wrong as it is found; return the number of findings. The relay may be running. Raises: CommandFailed.

    packed: checks packed files, on the disk and in the bucket.
    """
    count = 0
    with archive_failures(directory), _file_progress("verify", directory) as on_progress:
        found_in = verify_generations(directory, deep=deep, on_progress=on_progress)
        for number, finding in chain(found_in, () if packed is None else packed(on_progress)):
            count += 1
            if as_json:
                sys.stdout.write(json.dumps({**_finding_record(finding), "generation": number}) + "\n")
            else:
                name = shown_name(number, finding.file)
                place = name if finding.offset is None else f"{name}:{finding.offset}"
                sys.stdout.write(printable(f"{place}: {finding.text}", _LONGEST_CELL) + "\n")
        for view, finding in _view_findings(directory, deep=deep):
            count += 1
            if as_json:
                sys.stdout.write(json.dumps({**_finding_record(finding), "view": view}) + "\n")
            else:
                place = finding.file if finding.offset is None else f"{finding.file}:{finding.offset}"
                sys.stdout.write(printable(f"{VIEWS_DIRECTORY}/{view}/{place}: {finding.text}", _LONGEST_CELL) + "\n")
    if not as_json:
        found = "1 finding" if count == 1 else f"{count} findings"
        sys.stdout.write(f"{found}.\n" if count else "The archive is fine.\n")
        for number, gap in gaps_before(directory):
            sys.stdout.write(f"{shown_name(number, gap.to.file)} stands behind an accepted gap: {gap.text}\n")
    return count


def _finding_record(finding: ArchiveFinding) -> dict[str, object]:
    """Return the finding for JSON."""
    record = asdict(finding)
    del record["advice"]
    return record


def _view_findings(directory: Path, *, deep: bool) -> Iterator[tuple[str, ArchiveFinding]]:
    """Yield the findings of each existing view, with its name: it is an archive like another. `view verify` compares it with the
    archive."""
    for catalog in sorted((directory / VIEWS_DIRECTORY).glob(f"[!.]*/{CATALOG_NAME}")):
        for _number, finding in verify_generations(catalog.parent, deep=deep):
            name = catalog.parent.name
            yield name, replace(finding, advice=damage_advice(name))


def rebuild(directory: Path, *, as_json: bool) -> None:
    """Rebuild catalog and indexes; print what was found on the way. Raises: CommandFailed."""
    with archive_failures(directory, catalog=False), _file_progress("rebuild", directory) as on_progress:
        recovered = [(number, rebuild_archive(path, on_progress)) for number, path in begun_generations(directory)]
    findings = [(number, row) for number, one in recovered for row in one.findings]
    if as_json:
        _print_lines(json.dumps(_ledger_record(number, row)) for number, row in findings)
        return
    if findings:
        rows = [_ledger_cells(number, row) for number, row in findings]
        print_table(("time", "what", "place", "text"), rows, numbers=())
    count = sum(len(one.files) for _number, one in recovered)
    of = f" in {len(recovered)} generations" if len(recovered) > 1 else ""
    sys.stdout.write(f"{count} files{of}, catalog and indexes made again.\n")


@contextmanager
def archive_failures(directory: Path, *, catalog: bool = True) -> Iterator[None]:
    """Add the archive's directory to errors about it. catalog: whether it must be readable.

    Raises: CommandFailed; other errors as they are.
    """
    if not directory.is_dir():
        raise CommandFailed(_no_archive(directory))
    # SQLite reports a database that may not be read as one that cannot be opened: that is no damage.
    for path, wanted in ((directory, os.R_OK | os.X_OK), (directory / CATALOG_NAME, os.R_OK))[: 1 + catalog]:
        if os.access(directory, os.X_OK) and not path.exists():
            continue
        if not os.access(path, wanted):
            raise CommandFailed(_not_permitted(path))
    if not any(path.name == CATALOG_NAME or is_binlog_name(path.name) for path in directory.iterdir()):
        # An archive whose catalog and binlogs are both missing leaves nothing either: nothing can be rebuilt from that.
        raise CommandFailed(_no_archive(directory))
    try:
        yield
    except ArchiveLocked as error:
        raise CommandFailed(f"The archive is in use: {error}", error.exit_code) from error
    except PermissionError as error:
        raise CommandFailed(_not_permitted(error.filename or directory)) from error
    except CatalogUnreadable as error:
        message = f"{directory}: {error} Stop the relay and run 'binlog-relay archive rebuild'."
        raise CommandFailed(message, error.exit_code) from error
    except CatalogNewer:  # it names the archive
        raise
    except ArchiveError as error:
        raise CommandFailed(f"{directory}: {error}", error.exit_code) from error
    except sqlite3.Error as error:
        path = directory / CATALOG_NAME
        number = system_number(error, path, FileLayer().free_bytes(directory))
        advice = start_advice(FileLayer(), directory, number)
        raise CommandFailed(f"{path} cannot be used: {error}. {advice}") from error


def _no_archive(directory: Path) -> str:
    return f"There is no archive in {directory}. Check [archive] dir and [source] name, or start the relay once."


def _not_permitted(path: object) -> str:
    return f"{path} may not be used by this user. Run the command as the user that the relay runs as."


@contextmanager
def _file_progress(title: str, directory: Path) -> Iterator[Callable[[str, int], None] | None]:
    held = [path for _number, one in begun_generations(directory) for path in one.iterdir()]
    total = sum(path.stat().st_size for path in held if path.suffix[1:].isdigit())
    with bytes_progress(title, total) as advance:
        if advance is None:
            yield None
        else:
            forward = advance
            yield lambda _name, count: forward(count)


def time_text(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if timestamp else "-"


def shown_name(number: int, name: str) -> str:
    """Return a file's path in the archive's directory."""
    return name if number == FIRST or not name else f"{generation_path(Path(), number)}/{name}"


def _notes(file: ArchivedFile, damaged_at: int | None, *, behind_gap: bool) -> str:
    notes = ["behind an accepted gap"] if behind_gap else []
    if file.cut:
        notes.append("cut")
    if damaged_at is not None:
        notes.append(f"damaged at {damaged_at}")
    elif file.damaged:
        notes.append(f"damaged from {file.end} on")
    return ", ".join(notes)


def _file_record(number: int, file: ArchivedFile, damaged_at: int | None) -> dict[str, object]:
    return {
        "file": file.name,
        "generation": number,
        "end": file.end,
        "sealed": file.sealed,
        "first_time": time_text(file.first_timestamp) if file.first_timestamp else None,
        "last_time": time_text(file.last_timestamp) if file.last_timestamp else None,
        "events": file.events,
        "groups": file.groups,
        "flavour": file.flavour,
        "server_version": file.server_version,
        "server_id": file.server_id,
        "checksum": "crc32" if file.checksum else "none",
        "cut": file.cut,
        "damaged": file.damaged or damaged_at is not None,
        "damaged_at": damaged_at,
        "digest": file.digest,
        "tier": str(file.tier),
        "stored_bytes": file.stored_bytes,
        "stored_as": None if file.place is None else file.place.stored_name,
        "key": None if file.place is None else file.place.key_id,
    }


def _ledger_record(number: int, row: LedgerRow) -> dict[str, object]:
    return {
        "time": time_text(row.time),
        "kind": row.kind,
        "file": row.file,
        "generation": number,
        "offset": row.offset if row.offset >= 0 else None,
        "text": row.text,
        "details": json.loads(row.details) if row.details else None,
    }


def _ledger_cells(number: int, row: LedgerRow) -> tuple[str, ...]:
    name = shown_name(number, row.file)
    place = f"{name}:{row.offset}" if row.offset >= 0 else name
    return time_text(row.time), row.kind, place or "-", row.text


def _print_lines(lines: Iterator[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int]) -> None:
    """Print a rich table on a terminal; elsewhere a line a row, cells separated by tabs, empty cells as '-'."""
    rows = [[printable(cell, _LONGEST_CELL) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        _print_lines("\t".join(cell or "-" for cell in row) for row in rows)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for column, heading in enumerate(headings):
        longest = max(len(heading), *(len(row[column]) for row in rows)) if rows else len(heading)
        # Only a text in the last column is folded: a file name or a number over several lines can be neither read nor copied.
        table.add_column(
            heading,
            justify="right" if column in numbers else "left",
            overflow="fold",
            min_width=longest if column < len(headings) - 1 else min(longest, 40),
        )
    for row in rows:
        # As Text: a "[" in a name or message is no markup.
        table.add_row(*(Text(cell) for cell in row))
    console = Console()
    # A terminal that is too narrow gets long lines, which it wraps itself.
    needed = console.measure(table, options=console.options.update(max_width=1000)).minimum
    console.print(table, width=max(console.width, needed), crop=False, soft_wrap=True)
