"""The command line: `binlog-relay`.

Exit codes: 0 fine, 1 findings, 2 wrong use or configuration, or a file that the system refuses, 3 source unreachable or
refused, 4 archive damaged, 70 a bug. What a command needs is imported inside it, so that `--help` and `run` start at once.
"""

import contextlib
import io
import os
import sys
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from relay.commands.outcome import BUG, FINDINGS, WRONG_USE, CommandFailed

if TYPE_CHECKING:
    from relay.config import Config

app = typer.Typer(
    name="binlog-relay",
    help="Relays, checks, archives and serves MySQL and MariaDB binary logs.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
archive_app = typer.Typer(help="Look after the archive.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(archive_app, name="archive")
view_app = typer.Typer(
    help="Look after the views: other sets of binlogs, made from the archive.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(view_app, name="view")

feed_app = typer.Typer(
    help="Keep tables current, and their changes, in Delta or Iceberg: FEED.md.",
    no_args_is_help=False,
    rich_markup_mode=None,
)
app.add_typer(feed_app, name="feed")

_COMPLETE = "_BINLOG_RELAY_COMPLETE"
"""Set by the completions of shells, deploy/completions: the answer is what may come next."""
ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="The configuration file, TOML.")]
ViewArgument = Annotated[str, typer.Argument(metavar="NAME", help="Of the [[view]].", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line, for machines.")]


def main() -> None:
    """Runs the command line and ends the process. Nobody sees a traceback unless BINLOG_RELAY_DEBUG=1 is set."""
    if sys.stdout is None:
        # Started with a closed output (`>&-`): nobody reads it.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
    try:
        _run()
    except CommandFailed as failure:
        print(failure, file=sys.stderr)  # noqa: T201 - a command's own output
        sys.exit(failure.code)
    except SystemExit as ended:
        # The reader (head, less) has seen enough: typer ends with 1, which would mean findings here.
        if isinstance(ended.__context__, BrokenPipeError):
            sys.exit(0)
        raise
    except OSError as error:
        if _debugging():
            raise
        unnamed = "" if error.filename else " It names no file: look first at where the output goes."
        print(f"The system refused: {error}.{unnamed}", file=sys.stderr)  # noqa: T201
        with contextlib.suppress(OSError):
            _write_out()
        # Whoever calls must not take it for findings in a binlog.
        sys.exit(WRONG_USE)
    except Exception as error:
        if _debugging():
            raise
        print(_bug_report(error), file=sys.stderr)  # noqa: T201
        sys.exit(BUG)


def _run() -> None:
    """The command, and all of its output: what the system refuses of that must not come up behind the end."""
    if _COMPLETE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
    try:
        app()
    except SystemExit as ended:
        if not isinstance(ended.__context__, BrokenPipeError):
            _write_out()
        raise


def _write_out() -> None:
    """Raises: OSError; SystemExit, where nobody reads any more."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        sys.exit(0)
    except OSError:
        _drop_output()
        raise


def _drop_output() -> None:
    """What was not written: Python would try it once more as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _debugging() -> bool:
    return os.environ.get("BINLOG_RELAY_DEBUG") == "1"


def _bug_report(error: Exception) -> str:
    place = "an unknown place"
    trace = error.__traceback__
    while trace is not None:
        place = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return (
        f"Internal error: {type(error).__name__} at {place}: {error}. This is a bug in binlog-relay: please report it to "
        "its maintainers with this line and the command (BINLOG_RELAY_DEBUG=1 adds a traceback)."
    )


def _loaded(path: Path) -> "Config":
    from relay.config import ConfigError, load_config

    try:
        return load_config(path)
    except ConfigError as error:
        raise CommandFailed(str(error), WRONG_USE) from None


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"binlog-relay {version('binlog-relay')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Relays, checks, archives and serves MySQL and MariaDB binary logs."""


@app.command()
def run(
    config: ConfigOption,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    source: Annotated[
        str | None,
        typer.Option(
            metavar="HOST[:PORT]",
            help="Follow this source from now on, once it is known to have all that the archive has. Kept for later starts.",
        ),
    ] = None,
) -> None:
    """Run the relay. SIGTERM stops it cleanly."""
    from relay.process.interpreter import look_for_no_garbage

    look_for_no_garbage()
    loaded = _loaded(config)
    wanted = _source_address(source, loaded) if source is not None else None
    if log_level.lower() not in ("debug", "info", "warning", "error"):
        raise CommandFailed(f"--log-level {log_level}: write debug, info, warning or error.", WRONG_USE)
    from relay.process.log_setup import setup_logging

    setup_logging(log_level)
    import structlog

    log = structlog.get_logger()
    for warning in loaded.warnings:
        log.warning("configuration_advice", key=warning.key, what=warning.what, instead=warning.instead)
    from relay.app import run as run_relay

    raise typer.Exit(run_relay(loaded, config, wanted))


def _source_address(text: str, config: "Config") -> tuple[str, int]:
    """HOST, HOST:PORT or [ADDRESS]:PORT."""
    host, _, port = text.rpartition(":") if ":" in text and not text.endswith("]") else (text, "", "3306")
    host = host.removeprefix("[").removesuffix("]")
    if not config.sources:
        raise CommandFailed("--source: this relay follows a directory; source.path names it.", WRONG_USE)
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise CommandFailed(f"--source {text}: write HOST or HOST:PORT, such as db2.example:3306.", WRONG_USE)
    return host, int(port)


@app.command("check-config")
def check_config(config: ConfigOption) -> None:
    """Check a configuration file and name every mistake in it; try to write where the archive is to be."""
    from relay.commands.archive_place import try_archive_place
    from relay.retention.room_check import check_room

    loaded = _loaded(config)
    for warning in loaded.warnings:
        typer.echo(f"warning: {warning}", err=True)
    source = loaded.source
    origin = f"directory {source.path}" if source.kind == "directory" else f"{source.user}@{source.host}:{source.port}"
    if loaded.others:
        others = ", ".join(f"{other.host}:{other.port}" for other in loaded.others)
        origin += f" (failover to {others}: {loaded.failover.mode})"
    accounts = "1 account" if len(loaded.accounts) == 1 else f"{len(loaded.accounts)} accounts"
    try_archive_place(loaded.archive_directory)
    check_room(loaded)
    typer.echo(
        f"{config} is fine: source {origin}, archive {loaded.archive_directory}, "
        f"listening on {loaded.listen.host}:{loaded.listen.port}, {accounts}."
    )


@app.command()
def init(
    config: Annotated[Path, typer.Option("--config", "-c", help="The file to write; it must not be there yet.")],
    source_host: Annotated[str | None, typer.Option(help="Host of the source.")] = None,
    source_port: Annotated[int | None, typer.Option(min=1, max=65535, help="Its port; 3306.")] = None,
    source_user: Annotated[str | None, typer.Option(help="The relay's account there; repl.")] = None,
    source_password_file: Annotated[
        Path | None, typer.Option(help="Its password; where there is no such file, one is made with a new password.")
    ] = None,
    ssl_mode: Annotated[str | None, typer.Option(help="disabled, preferred or required.")] = None,
    server_id: Annotated[
        int | None, typer.Option(min=1, max=2**32 - 1, help="The relay's; a free one is chosen.")
    ] = None,
    ask_user: Annotated[
        str | None, typer.Option(help="Ask the source by this account, while the relay has none.")
    ] = None,
    ask_password_file: Annotated[Path | None, typer.Option(help="Its password.")] = None,
    archive: Annotated[Path | None, typer.Option(help="Directory of the archive; /var/lib/binlog-relay.")] = None,
    listen_host: Annotated[str | None, typer.Option(help="Where to listen for replicas; 0.0.0.0.")] = None,
    listen_port: Annotated[int | None, typer.Option(min=1, max=65535, help="At which port; 3307.")] = None,
    relay_host: Annotated[
        str | None, typer.Option(help="By which name replicas find the relay; this machine's.")
    ] = None,
    replica_user: Annotated[str | None, typer.Option(help="The replicas' account at the relay; replica.")] = None,
    replica_password_file: Annotated[Path | None, typer.Option(help="As --source-password-file.")] = None,
    replica_version: Annotated[str | None, typer.Option(help="mysql-9.7, mariadb-10.11, ...; as the source.")] = None,
    view: Annotated[str | None, typer.Option(help="Make a view for replicas of this version: mysql-9.7, ...")] = None,
) -> None:
    """Write a first relay.toml and the statements for source and replica. Overwrites nothing, changes nothing there."""
    given = {name: value for name, value in locals().items() if name != "config"}
    from relay.setup.init_command import init as set_up
    from relay.setup.setup_questions import answered

    set_up(answered(config, given))


@app.command()
def doctor(
    config: ConfigOption,
    replica: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST:PORT,USER,FILE", help="Also ask this replica; FILE has the password. May be repeated."
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(min=1, max=600, help="Seconds for the answers of each server.")] = 30.0,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 for warnings too.")] = False,
    json: JsonOption = False,
) -> None:
    """Ask source, machine and replicas what the relay needs; say what is wrong and the cure. Changes nothing there."""
    from relay.doctor.doctor_command import doctor as report

    raise typer.Exit(report(_loaded(config), replica or [], limit_s=timeout, strict=strict, as_json=json))


@app.command()
def status(
    config: ConfigOption,
    watch: Annotated[bool, typer.Option("--watch", help="Look again and again, until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option(min=0.5, max=3600, help="Seconds between two looks with --watch.")] = 2.0,
    json: JsonOption = False,
) -> None:
    """Show source, archive, views, replicas and ledger on one screen, of a relay that runs or not; 1 for a problem."""
    from relay.status.status_command import status as show_status

    raise typer.Exit(show_status(_loaded(config), watch_s=every if watch else None, as_json=json))


@feed_app.callback(invoke_without_command=True)
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
        raise CommandFailed("feed needs --config FILE, see docs/FEED.md", WRONG_USE)
    follow(config, once=once)


FeedConfigOption = Annotated[Path, typer.Option("--config", "-c", help="The feed's settings, feed.toml.")]


@feed_app.command(name="snapshot")
def feed_snapshot(
    config: FeedConfigOption,
    table: Annotated[list[str] | None, typer.Option(help="SCHEMA.TABLE; may be repeated.")] = None,
    all: Annotated[bool, typer.Option("--all", help="All tables that are fed and have a key.")] = False,
    server: Annotated[
        str | None, typer.Option(help="HOST:PORT of a server that has the data of --position: a loaded dump.")
    ] = None,
    position: Annotated[str | None, typer.Option(help="FILE:POSITION of the source, as the dump has it.")] = None,
) -> None:
    """Load tables from the source, chunk by chunk, while all others are fed; one that was broken off goes on."""
    from relay.feed.command.feed_command import SnapshotRequest, snapshot

    snapshot(config, SnapshotRequest(tuple(table or ()), all, server, position))


@feed_app.command(name="status")
def feed_status(config: FeedConfigOption, json: JsonOption = False) -> None:
    """Each table's place, state, and how far it is behind; 1 where one is not current."""
    from relay.feed.command.feed_command import status

    raise typer.Exit(FINDINGS if status(config, as_json=json) else 0)


@feed_app.command(name="report")
def feed_report(
    config: FeedConfigOption,
    out: Annotated[Path, typer.Option(help="The page.")] = Path("feed-report.html"),
    days: Annotated[int, typer.Option(min=1, help="Changes of so many days are in its charts.")] = 7,
) -> None:
    """Write a page of what was fed: each table's state, what is to be done, changes over time."""
    from relay.feed.command.feed_command import report

    report(config, out, days)


@feed_app.command(name="verify")
def feed_verify(
    config: FeedConfigOption,
    table: Annotated[list[str] | None, typer.Option(help="SCHEMA.TABLE; may be repeated. Without: all.")] = None,
    json: JsonOption = False,
) -> None:
    """Compare tables with the source, by ranges of keys; 1 where something differs."""
    from relay.feed.command.feed_command import verify

    raise typer.Exit(FINDINGS if verify(config, tuple(table or ()), as_json=json) else 0)


@feed_app.command(name="compact")
def feed_compact(
    config: FeedConfigOption,
    target_mb: Annotated[int, typer.Option(min=1, help="Files of about this size.")] = 128,
    keep_hours: Annotated[int, typer.Option(min=0, help="Versions of so many hours stay readable.")] = 168,
    keep_changes_days: Annotated[
        int | None, typer.Option(min=1, help="Changes of so many days stay, today's included; without it all do.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Make larger files of small ones, and remove what only old versions have, and old changes."""
    from relay.feed.command.feed_command import compact

    compact(config, target_mb=target_mb, keep_hours=keep_hours, changes_days=keep_changes_days, as_json=json)


@app.command()
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
    """List events, one line each, with their transaction boundaries; say where they break the rules."""
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
        # Statements hold any character; a terminal of another encoding gets escapes instead of a crash.
        out.reconfigure(errors="backslashreplace", line_buffering=False)
    total = 0 if out.isatty() else sum(path.stat().st_size for path in files if path.is_file())
    try:
        with bytes_progress("events", total) as on_progress:
            findings = list_events(files, wanted, out, as_json=json, detail=not no_detail, on_progress=on_progress)
        out.flush()
    except Unreadable as error:
        out.flush()
        raise CommandFailed(str(error), WRONG_USE) from None
    if findings:
        noun = "finding" if findings == 1 else "findings"
        typer.echo(f"{findings} {noun}: see the lines with WARNING, ERROR, bad or unreadable.", err=True)
        raise typer.Exit(FINDINGS)


@app.command()
def annotate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The binlog that mysqlbinlog read.", show_default=False)],
) -> None:
    """Add each event's boundary to the output of mysqlbinlog: mysqlbinlog FILE | binlog-relay annotate FILE."""
    from relay.binlog_file.binlog_scan import Unreadable
    from relay.commands.binlogs.annotate import annotate as annotate_output

    if sys.stdin.isatty():
        raise CommandFailed(
            f"annotate reads mysqlbinlog's output: mysqlbinlog {file} | binlog-relay annotate {file}", WRONG_USE
        )
    # Statements hold any bytes: they go through as they are.
    source = io.TextIOWrapper(sys.stdin.buffer, encoding="latin-1", newline="\n")
    target = io.TextIOWrapper(sys.stdout.buffer, encoding="latin-1", newline="\n")
    try:
        violations, tally, broken = annotate_output(file, source, target)
        target.flush()
        target.detach()
    except Unreadable as error:
        raise CommandFailed(str(error), WRONG_USE) from None
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
        raise typer.Exit(FINDINGS)


@app.command()
def positions(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A binlog file.", show_default=False)],
    offset: Annotated[int | None, typer.Argument(metavar="[OFFSET]", min=0, help="Judge this offset.")] = None,
    all: Annotated[bool, typer.Option("--all", help="List every valid position.")] = False,
    json: JsonOption = False,
) -> None:
    """Show which offsets a replica may start from, and why another one is none."""
    from relay.binlog_file.binlog_scan import Unreadable
    from relay.commands.binlogs.positions_command import Standing, report_position, summarise_positions
    from relay.commands.progress import bytes_progress

    try:
        with bytes_progress(file.name, file.stat().st_size if file.is_file() else 0) as on_progress:
            if offset is not None:
                report = report_position(file, offset, on_progress)
            else:
                summary = summarise_positions(
                    file, (lambda place: typer.echo(str(place))) if all else None, on_progress
                )
    except Unreadable as error:
        raise CommandFailed(str(error), WRONG_USE) from None
    if offset is not None:
        typer.echo(_json_of(report) if json else str(report))
        if report.standing is not Standing.VALID or not report.readable:
            raise typer.Exit(FINDINGS)
        return
    typer.echo(_json_of(summary) if json else str(summary), err=all and not json)
    if summary.broken is not None or summary.wrong_checksums:
        raise typer.Exit(FINDINGS)


def _json_of(record: object) -> str:
    import json
    from dataclasses import asdict
    from enum import Enum

    def plain(value: object) -> object:
        return value.value if isinstance(value, Enum) else str(value)

    return json.dumps(asdict(record), default=plain)  # type: ignore[call-overload]


@app.command()
def audit(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Which audit; 'audit list' names them.", show_default=False)
    ],
    archive: Annotated[
        str,
        typer.Argument(
            metavar="ARCHIVE", help="An archive, a directory of binlogs, a pattern or a binlog.", show_default=False
        ),
    ] = "",
    out: Annotated[
        Path | None, typer.Option(help="The directory to make: a report and Parquet files.", show_default=False)
    ] = None,
    since: Annotated[str | None, typer.Option(help="Only what happened from this time on: ISO 8601, UTC.")] = None,
    until: Annotated[str | None, typer.Option(help="Only what happened before this time.")] = None,
    tables: Annotated[
        list[str] | None, typer.Option(help="Only these tables: shop.orders, shop.*; with commas, or repeated.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Most rows of one listing.")] = 100,
    replace: Annotated[bool, typer.Option("--replace", help="Write an audit that is in --out anew.")] = False,
    cores: Annotated[int | None, typer.Option(min=1, help="Cores to use here; all by default.")] = None,
    target: Annotated[
        str | None, typer.Option("--for", help="For readiness: the replicas' version, such as mysql-9.7.")
    ] = None,
    table: Annotated[
        str | None, typer.Option(help="For history: the row's table, shop.orders.", show_default=False)
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="For history: the row's primary key, 42, or columns as JSON, '{\"id\": 42}'.", show_default=False
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Ask an archive a question, on Spark: writes a report with charts, and Parquet files. Needs the extra `audit`."""
    from relay.commands.audit_command import AuditRequest, listed_jobs
    from relay.commands.audit_command import audit as run_audit

    if name == "list" and not archive:
        typer.echo(listed_jobs())
        return
    if not archive or out is None:
        raise CommandFailed(
            "audit takes a name, an archive and --out: binlog-relay audit NAME ARCHIVE --out DIR", WRONG_USE
        )
    request = AuditRequest(
        name, archive, out, since, until, tuple(tables or ()), limit, replace, cores, target, table, key
    )
    if run_audit(request, as_json=json):
        raise typer.Exit(FINDINGS)


@archive_app.command("list")
def archive_list(config: ConfigOption, json: JsonOption = False) -> None:
    """List the archived files."""
    from relay.commands.archive_command import list_files

    list_files(_loaded(config).archive_directory, as_json=json)


@archive_app.command("verify")
def archive_verify(
    config: ConfigOption,
    deep: Annotated[bool, typer.Option("--deep", help="Read every byte and check every event.")] = False,
    cure: Annotated[
        bool, typer.Option("--cure", help="Remove what moves and purges that did not end have left.")
    ] = False,
    purged: Annotated[
        bool,
        typer.Option("--purged", help="What the mirror has of purged binlogs is left over too: --cure removes it."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Check the archive's files against its catalog and indexes."""
    from relay.commands.archive_command import archive_failures, verify
    from relay.mirror.mirror_setup import bucket_findings
    from relay.tiers.tier_checks import tier_checks

    loaded = _loaded(config)
    directory = loaded.archive_directory
    with archive_failures(directory), tier_checks(loaded, deep=deep, cure=cure) as tiers:
        in_bucket = bucket_findings(loaded, purged=purged, deep=deep, cure=cure) if tiers.alone else ()
        count = verify(
            directory, deep=deep, as_json=json, packed=lambda progress: chain(tiers.run(progress), in_bucket)
        )
    if count:
        raise typer.Exit(FINDINGS)


@archive_app.command("rebuild")
def archive_rebuild(config: ConfigOption, json: JsonOption = False) -> None:
    """Make the catalog and the boundary indexes again from the binlogs alone. The relay must be stopped."""
    from relay.commands.archive_command import rebuild

    rebuild(_loaded(config).archive_directory, as_json=json)


@archive_app.command("repair")
def archive_repair(
    config: ConfigOption,
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", help="These; none: all known to be damaged.")
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="DIR|HOST:PORT|URL",
            help="Copies, another relay, or the mirror's bucket; else the source.",
        ),
    ] = None,
    generation: Annotated[int | None, typer.Option(help="Of these files, as `archive list` shows it.")] = None,
    json: JsonOption = False,
) -> None:
    """Fetch damaged or missing files again and put them in place. The relay must be stopped; in a running one use CALL."""
    from relay.commands.archive_repair import repair
    from relay.mirror.mirror_setup import copies_of

    loaded = _loaded(config)
    copies = partial(copies_of, loaded.archive)
    if repair(loaded, files or [], origin, copies, generation=generation, as_json=json):
        raise typer.Exit(FINDINGS)


@archive_app.command("accept-gap")
def archive_accept_gap(
    config: ConfigOption,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="FILE:POSITION",
            help="Go on there; by default with the first file of the source that is not archived.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Go on although the source no longer has what comes next, from the next start on; what is missing is recorded."""
    from relay.commands.archive_accept_gap import accept_gap

    accept_gap(_loaded(config), config, to=to, as_json=json)


@archive_app.command("find")
def archive_find(
    config: ConfigOption,
    gtid: Annotated[str | None, typer.Option(help="The transaction uuid:number, uuid:tag:number or 0-1-100.")] = None,
    time: Annotated[
        str | None, typer.Option(help="The first one that began at this time or later: ISO 8601, UTC.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Name file and position of a transaction."""
    from relay.commands.archive_find import find

    find(_loaded(config).archive_directory, gtid=gtid, time=time, as_json=json)


@archive_app.command("cat")
def archive_cat(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As 'archive list' shows it.", show_default=False)],
    config: ConfigOption,
) -> None:
    """Write an archived binlog to standard output, also one that is packed or in a bucket: archive cat NAME | mysqlbinlog -."""
    from relay.commands.archive_cat import cat

    if sys.stdout.isatty():
        text = f"archive cat writes bytes, which no terminal shows: binlog-relay archive cat {name} | mysqlbinlog -"
        raise CommandFailed(text, WRONG_USE)
    cat(_loaded(config).archive_directory, name, sys.stdout.buffer)


@archive_app.command("export")
def archive_export(
    config: ConfigOption,
    out: Annotated[Path, typer.Option(help="The directory to make.", show_default=False)],
    begin: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="PLACE", help="FILE:POSITION, a GTID or a time; by default the oldest transaction."
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE", help="The end: FILE:POSITION, a GTID, which is included, or a time, which is not."
        ),
    ] = None,
    before: Annotated[
        str | None, typer.Option(metavar="PLACE", help="Instead: the end is before this transaction.")
    ] = None,
    tables: Annotated[
        list[str] | None, typer.Option(help="Only these tables: shop.orders, shop.*; with commas, or repeated.")
    ] = None,
    undecided: Annotated[
        str, typer.Option(metavar="RULE", help="With --tables, for what is no rows: refuse, keep or leave-out.")
    ] = "refuse",
    across_gaps: Annotated[
        bool, typer.Option("--across-gaps", help="Go on where the archive knows that something is missing.")
    ] = False,
    view: Annotated[str | None, typer.Option(metavar="NAME", help="Of this [[view]], not of the source.")] = None,
    json: JsonOption = False,
) -> None:
    """Write a stretch as plain binlogs that mysqlbinlog reads: whole transactions, for a point-in-time recovery."""
    from relay.export.export_command import ExportRequest, export

    loaded = _loaded(config)
    directory = loaded.archive_directory
    if view is not None:
        from relay.commands.view_command import configured_view

        directory = configured_view(loaded, view, may_differ=True).directory
    request = ExportRequest(out, begin, to, before, tuple(tables or ()), undecided, across_gaps)
    if export(directory, request, as_json=json):
        raise typer.Exit(FINDINGS)


@archive_app.command("mirror")
def archive_mirror(config: ConfigOption, json: JsonOption = False) -> None:
    """Ask the bucket how far it is as the archive's copy. The relay alone writes there; it may run."""
    from relay.mirror.mirror_command import show_mirror

    if show_mirror(_loaded(config), as_json=json):
        raise typer.Exit(FINDINGS)


@archive_app.command("restore")
def archive_restore(
    config: ConfigOption,
    origin: Annotated[
        str | None,
        typer.Option("--from", metavar="URL", help="s3://BUCKET/PREFIX; by default that of [archive.bucket]."),
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Bring all binlogs back; else whole ones stay in the bucket.")
    ] = False,
    accept_unencrypted: Annotated[
        bool,
        typer.Option("--accept-unencrypted", help="Take binlogs from before [archive.encryption] had a key, too."),
    ] = False,
    holes: Annotated[
        Literal["refuse", "before", "behind", "keep"],
        typer.Option(
            metavar="WHAT",
            help="Where binlogs lack in the middle of the copy: refuse; or what is before, or behind, or all (keep).",
        ),
    ] = "refuse",
    json: JsonOption = False,
) -> None:
    """Make the archive again from the bucket that [archive.mirror] kept as its copy, where the disk is lost."""
    from relay.mirror.restore_command import restore

    restore(
        _loaded(config), origin, download=download, holes=holes, accept_unencrypted=accept_unencrypted, as_json=json
    )


@archive_app.command("claim")
def archive_claim(
    config: ConfigOption,
    owner: Annotated[
        str | None,
        typer.Option("--of", metavar="UUID|nobody", help="Whose it is, as the command says without this: take it."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Say whose binlogs are in the place of [archive.bucket]; with --of it becomes this archive's. The relay must be stopped."""
    from relay.tiers.claim_command import claim

    claim(_loaded(config), owner, as_json=json)


@archive_app.command("purge")
def archive_purge(
    config: ConfigOption,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Needed: the running relay alone removes files.")] = False,
    json: JsonOption = False,
) -> None:
    """Say what [retention] would remove now and why, and what is kept and for whom. Removes nothing; the relay may run."""
    from relay.commands.view_command import configured_views
    from relay.retention.purge_preview import preview_purge

    if not dry_run:
        text = "The running relay removes files, as [retention] says, or PURGE BINARY LOGS there. To see what would go: --dry-run."
        raise CommandFailed(text, WRONG_USE)
    loaded = _loaded(config)
    preview_purge(loaded, configured_views(loaded) if loaded.views else (), as_json=json)


@archive_app.command("ledger")
def archive_ledger(config: ConfigOption, json: JsonOption = False) -> None:
    """Show what happened to the archive that an operator should know."""
    from relay.commands.archive_command import show_ledger

    show_ledger(_loaded(config).archive_directory, as_json=json)


@view_app.command("list")
def view_list(config: ConfigOption, json: JsonOption = False) -> None:
    """List the views: whose GTIDs, for whom, how far they are made, what stops them."""
    from relay.commands.view_command import configured_views, list_views

    list_views(configured_views(_loaded(config)), as_json=json)


@view_app.command("find")
def view_find(
    config: ConfigOption,
    name: ViewArgument,
    source: Annotated[
        str | None, typer.Option(metavar="FILE:POSITION", help="The place in the source's binlogs.")
    ] = None,
    position: Annotated[str | None, typer.Option(metavar="FILE:POSITION", help="The place in the view's.")] = None,
    gtid: Annotated[str | None, typer.Option(metavar="UUID:NUMBER", help="Behind this transaction.")] = None,
    json: JsonOption = False,
) -> None:
    """Name one place in the source's binlogs and in the view's, and the GTIDs that are executed there."""
    from relay.commands.view_command import configured_view, find_place

    find_place(configured_view(_loaded(config), name), source=source, position=position, gtid=gtid, as_json=json)


@view_app.command("seed")
def view_seed(
    config: ConfigOption,
    name: ViewArgument,
    at: Annotated[
        str | None, typer.Option(metavar="FILE:POSITION", help="Where the data were copied, in the source's binlogs.")
    ] = None,
    dump: Annotated[
        Path | None,
        typer.Option(metavar="FILE|DIRECTORY", help="A dump that says so itself: mysqldump, mydumper, xtrabackup."),
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="For a replica of the mirror that keeps its data.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Print the statements that make a server with restored data a replica of the view."""
    from relay.commands.view_command import configured_view
    from relay.commands.view_seed import relay_address, seed

    loaded = _loaded(config)
    view = configured_view(loaded, name)
    hosts = [source.host for source in loaded.sources]
    seed(view, relay_address(loaded, name), hosts, at=at, dump=dump, in_place=in_place, as_json=json)


@view_app.command("skip")
def view_skip(
    config: ConfigOption,
    name: ViewArgument,
    at: Annotated[
        str,
        typer.Option(
            metavar="FILE:POSITION", help="Where the view stands stopped, in the source's binlogs.", show_default=False
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: JsonOption = False,
) -> None:
    """Leave out the transaction that the view has stopped at. The relay must be stopped; in a running one use CALL."""
    from relay.commands.view_changes import skip
    from relay.commands.view_command import configured_view

    skip(configured_view(_loaded(config), name), at=at, yes=yes, as_json=json)


@view_app.command("rebuild")
def view_rebuild(
    config: ConfigOption,
    name: ViewArgument,
    renumber: Annotated[
        bool, typer.Option("--renumber", help="Other numbers are right: no replica has GTIDs of the view.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: JsonOption = False,
) -> None:
    """Remove the view's files, so that the next start makes them again. The relay must be stopped."""
    from relay.commands.view_changes import rebuild
    from relay.commands.view_command import configured_view, next_uuid

    loaded = _loaded(config)
    view = configured_view(loaded, name, may_differ=True)
    rebuild(view, next_uuid(loaded, name), as_json=json, renumber=renumber, yes=yes)


@view_app.command("check")
def view_check(config: ConfigOption, name: ViewArgument, json: JsonOption = False) -> None:
    """List all that will stop the view in what is archived, with the ways on. Nothing is made; the relay may run."""
    from relay.commands.view_command import check_view, configured_view

    if check_view(configured_view(_loaded(config), name), as_json=json):
        raise typer.Exit(FINDINGS)


@view_app.command("verify")
def view_verify(config: ConfigOption, name: ViewArgument, json: JsonOption = False) -> None:
    """Make the view again, in memory, and compare its files with that."""
    from relay.commands.view_command import configured_view, verify_view

    if verify_view(configured_view(_loaded(config), name), as_json=json):
        raise typer.Exit(FINDINGS)


if __name__ == "__main__":
    main()
