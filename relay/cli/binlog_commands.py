"""The commands that read binlogs: events, annotate, positions."""

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from protocol.errors import ExitCode
from relay.cli.command_options import JsonOption
from relay.commands.outcome import CommandFailed

commands = typer.Typer(rich_markup_mode=None)


@commands.command()
def events(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Binlog files.", show_default=False)],
    json: JsonOption = False,
    start_position: Annotated[int, typer.Option(min=0, help="Skip events before this offset of the first file.")] = 0,
    stop_position: Annotated[
        int | None, typer.Option(min=0, help="Stop at the first event at or behind this offset of the last file.")
    ] = None,
    since: Annotated[str | None, typer.Option(help="Only events from this time on: ISO 8601, UTC.")] = None,
    until: Annotated[str | None, typer.Option(help="Only events before this time.")] = None,
    type: Annotated[list[str] | None, typer.Option(help="Only this event type; may be repeated.")] = None,
    boundary: Annotated[
        list[str] | None, typer.Option(help="Only ignore, self, start, inside or end; may be repeated.")
    ] = None,
    no_detail: Annotated[bool, typer.Option("--no-detail", help="Leave out statements, tables and GTIDs.")] = False,
) -> None:
    """List events, one line each, with their transaction boundaries, and report violations of the boundary rules."""
    from relay.binlog_file.binlog_scan import Unreadable
    from relay.commands.arguments import boundary_code, event_type_code, timestamp
    from relay.commands.binlogs.events_command import EventFilter, list_events
    from relay.commands.progress import bytes_progress

    wanted = EventFilter(
        start=start_position,
        stop=stop_position,
        since=None if since is None else timestamp("--since", since),
        until=None if until is None else timestamp("--until", until),
        types=frozenset(event_type_code(text) for text in type or ()),
        boundaries=frozenset(boundary_code(text) for text in boundary or ()),
    )
    out = sys.stdout
    if hasattr(out, "reconfigure"):
        # Statements contain any character; a terminal of another encoding gets escapes instead of a crash.
        out.reconfigure(errors="backslashreplace", line_buffering=False)
    total = 0 if out.isatty() else sum(path.stat().st_size for path in files if path.is_file())
    try:
        with bytes_progress("events", total) as on_progress:
            findings = list_events(files, wanted, out, as_json=json, detail=not no_detail, on_progress=on_progress)
        out.flush()
    except Unreadable:
        out.flush()
        raise
    if findings:
        noun = "finding" if findings == 1 else "findings"
        typer.echo(f"{findings} {noun}: see the lines with WARNING, ERROR, bad or unreadable.", err=True)
        raise typer.Exit(ExitCode.FINDINGS)


@commands.command()
def annotate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The binlog that mysqlbinlog read.", show_default=False)],
) -> None:
    """Add each event's boundary to the output of mysqlbinlog: mysqlbinlog FILE | binlog-relay annotate FILE."""
    from relay.commands.binlogs.annotate import annotate as annotate_output

    if sys.stdin.isatty():
        raise CommandFailed(f"annotate reads mysqlbinlog's output: mysqlbinlog {file} | binlog-relay annotate {file}")
    # Statements contain any bytes: they are passed on as they are.
    source = io.TextIOWrapper(sys.stdin.buffer, encoding="latin-1", newline="\n")
    target = io.TextIOWrapper(sys.stdout.buffer, encoding="latin-1", newline="\n")
    violations, tally, broken = annotate_output(file, source, target)
    target.flush()
    target.detach()
    if violations:
        typer.echo(f"{violations} violations: see the lines with WARNING.", err=True)
    if broken is not None:
        typer.echo(f"{file}: offset {broken.offset}: {broken.text}", err=True)
    if tally.foreign:
        typer.echo(
            f"{tally.foreign} of {tally.printed} events that mysqlbinlog printed are not in {file}: is it the same binlog?",
            err=True,
        )
    if violations or tally.foreign or broken is not None:
        raise typer.Exit(ExitCode.FINDINGS)


@commands.command()
def positions(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A binlog file.", show_default=False)],
    offset: Annotated[int | None, typer.Argument(metavar="[OFFSET]", min=0, help="Judge this offset.")] = None,
    all: Annotated[bool, typer.Option("--all", help="List every valid position.")] = False,
    json: JsonOption = False,
) -> None:
    """Show the offsets from which a replica may start, and why another one is not valid."""
    from relay.commands.binlogs.positions_command import Standing, report_position, summarise_positions
    from relay.commands.progress import bytes_progress

    with bytes_progress(file.name, file.stat().st_size if file.is_file() else 0) as on_progress:
        if offset is not None:
            report = report_position(file, offset, on_progress)
        else:
            summary = summarise_positions(file, (lambda place: typer.echo(str(place))) if all else None, on_progress)
    if offset is not None:
        typer.echo(_json_of(report) if json else str(report))
        if report.standing is not Standing.VALID or not report.readable:
            raise typer.Exit(ExitCode.FINDINGS)
        return
    typer.echo(_json_of(summary) if json else str(summary), err=all and not json)
    if summary.broken is not None or summary.wrong_checksums:
        raise typer.Exit(ExitCode.FINDINGS)


def _json_of(record: object) -> str:
    import json
    from dataclasses import asdict
    from enum import Enum

    def plain(value: object) -> object:
        return value.value if isinstance(value, Enum) else str(value)

    return json.dumps(asdict(record), default=plain)  # type: ignore[call-overload]
