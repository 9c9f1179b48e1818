"""`binlog-relay feed …`."""

from pathlib import Path
from typing import Annotated

import typer

from protocol.errors import ExitCode
from relay.cli.command_options import JsonOption
from relay.commands.outcome import CommandFailed

FeedConfigOption = Annotated[Path, typer.Option("--config", "-c", help="The feed's settings, feed.toml.")]
commands = typer.Typer(
    help="Keep tables current, and their changes, in Delta or Iceberg: FEED.md.", rich_markup_mode=None
)


@commands.callback(invoke_without_command=True)
def feed(
    context: typer.Context,
    config: Annotated[Path | None, typer.Option("--config", "-c", help="The feed's settings, feed.toml.")] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Up to what is there now, then end: for cron and Airflow.")
    ] = False,
) -> None:
    """Follow an archive: tables kept current, and their changes, in Delta or Iceberg."""
    if context.invoked_subcommand is not None:
        return
    from relay.feed.command.feed_command import follow

    if config is None:
        raise CommandFailed("feed needs --config FILE, see docs/FEED.md")
    follow(config, once=once)


@commands.command(name="snapshot")
def feed_snapshot(
    config: FeedConfigOption,
    table: Annotated[list[str] | None, typer.Option(help="SCHEMA.TABLE; may be repeated.")] = None,
    all: Annotated[bool, typer.Option("--all", help="All tables that are fed and have a key.")] = False,
    server: Annotated[
        str | None, typer.Option(help="HOST:PORT of a server that has the data of --position: a loaded dump.")
    ] = None,
    position: Annotated[str | None, typer.Option(help="FILE:POSITION of the source, as the dump has it.")] = None,
) -> None:
    """Load tables from the source, chunk by chunk, while all others are fed; an interrupted one is continued."""
    from relay.feed.command.feed_command import SnapshotRequest, snapshot

    snapshot(config, SnapshotRequest(tuple(table or ()), all, server, position))


@commands.command(name="rebuild")
def feed_rebuild(
    config: FeedConfigOption,
    table: Annotated[list[str] | None, typer.Option(help="SCHEMA.TABLE; may be repeated.")] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="FILE:POSITION of the archive, or first. Without: where the table was created, or its snapshot.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Make tables and their changes from the archive again, beside the old ones, which they replace; a killed one is continued."""
    from relay.feed.command.feed_command import rebuild

    rebuild(config, tuple(table or ()), start, as_json=json)


@commands.command(name="status")
def feed_status(config: FeedConfigOption, json: JsonOption = False) -> None:
    """Show how far the archive and each table are; 1 if a table is not current, or the relay does not follow its source."""
    from relay.feed.command.feed_command import status

    raise typer.Exit(ExitCode.FINDINGS if status(config, as_json=json) else 0)


@commands.command(name="report")
def feed_report(
    config: FeedConfigOption,
    out: Annotated[Path, typer.Option(help="The page.")] = Path("feed-report.html"),
    days: Annotated[int, typer.Option(min=1, help="Changes of so many days are in its charts.")] = 7,
) -> None:
    """Write a page about what was fed: each table's state, the next steps, changes over time."""
    from relay.feed.command.feed_command import report

    report(config, out, days)


@commands.command(name="verify")
def feed_verify(
    config: FeedConfigOption,
    table: Annotated[list[str] | None, typer.Option(help="SCHEMA.TABLE; may be repeated. Without: all.")] = None,
    json: JsonOption = False,
) -> None:
    """Compare tables with the source, by ranges of keys; 1 if something differs."""
    from relay.feed.command.feed_command import verify

    raise typer.Exit(ExitCode.FINDINGS if verify(config, tuple(table or ()), as_json=json) else 0)


@commands.command(name="compact")
def feed_compact(
    config: FeedConfigOption,
    target_mb: Annotated[int, typer.Option(min=1, help="Files of about this size.")] = 128,
    keep_hours: Annotated[int, typer.Option(min=0, help="Versions of so many hours stay readable.")] = 168,
    keep_changes_days: Annotated[
        int | None, typer.Option(min=1, help="Changes of so many days stay, today's included; without it all do.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Merge small files into larger ones, and remove data of old versions only, and old changes."""
    from relay.feed.command.feed_command import compact

    compact(config, target_mb=target_mb, keep_hours=keep_hours, changes_days=keep_changes_days, as_json=json)
