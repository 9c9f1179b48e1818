"""The commands of the relay itself: run it, set it up, show its state."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relay.cli.command_options import ConfigOption, JsonOption, loaded_config
from relay.commands.outcome import CommandFailed

if TYPE_CHECKING:
    from relay.config import Config

commands = typer.Typer(rich_markup_mode=None)


@commands.command()
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
    user = os.geteuid()
    loaded = loaded_config(config, writes=True, stays=True)
    wanted = _source_address(source, loaded) if source is not None else None
    if log_level.lower() not in ("debug", "info", "warning", "error"):
        raise CommandFailed(f"--log-level {log_level}: write debug, info, warning or error.")
    from relay.process.log_setup import setup_logging

    setup_logging(log_level)
    import structlog

    log = structlog.get_logger()
    if os.geteuid() != user:
        log.warning(
            "running_as_archive_owner",
            user=os.geteuid(),
            advice="Start it as that user: what only root may read is missing.",
        )
    for warning in loaded.warnings:
        log.warning("configuration_advice", key=warning.key, what=warning.what, instead=warning.instead)
    from relay.service.app import run as run_relay

    raise typer.Exit(run_relay(loaded, config, wanted))


def _source_address(text: str, config: "Config") -> tuple[str, int]:
    """Parse HOST, HOST:PORT or [ADDRESS]:PORT."""
    host, _, port = text.rpartition(":") if ":" in text and not text.endswith("]") else (text, "", "3306")
    host = host.removeprefix("[").removesuffix("]")
    if not config.sources:
        raise CommandFailed("--source: this relay follows a directory; source.path names it.")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise CommandFailed(f"--source {text}: write HOST or HOST:PORT, such as db2.example:3306.")
    return host, int(port)


@commands.command("check-config")
def check_config(config: ConfigOption) -> None:
    """Check a configuration file and name every mistake in it; try to write at the archive's future place."""
    from relay.commands.archive_place import try_archive_place
    from relay.commands.memory_need import MemoryNeed
    from relay.retention.room_check import check_room
    from relay.row_format.row_replica import logged_format

    loaded = loaded_config(config, writes=True)
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
    logged = logged_format(loaded.archive_directory) if loaded.views else None
    if logged is not None and logged.logs_statements:
        typer.echo(f"warning: the source: {logged.warning()}. {logged.answer()}", err=True)
    typer.echo(
        f"{config} is fine: source {origin}, archive {loaded.archive_directory}, "
        f"listening on {loaded.listen.host}:{loaded.listen.port}, {accounts}."
    )
    asked = ", ".join(f"{one.address} as {one.user}" for one in loaded.replicas)
    shown = "" if loaded.http.enabled else " by `status` alone, as http.enabled is false"
    typer.echo(
        f"How far replicas have applied is asked of {asked}{shown}."
        if asked
        else "How far replicas have applied is not known: there is no [[replica]]."
    )
    typer.echo(MemoryNeed.of(loaded).text())


@commands.command()
def init(
    config: Annotated[Path, typer.Option("--config", "-c", help="The file to write; it must not be there yet.")],
    source_host: Annotated[str | None, typer.Option(help="Host of the source.")] = None,
    source_port: Annotated[int | None, typer.Option(min=1, max=65535, help="Its port; 3306.")] = None,
    source_user: Annotated[str | None, typer.Option(help="The relay's account there; repl.")] = None,
    source_password_file: Annotated[
        Path | None, typer.Option(help="Its password; where there is no such file, one is made with a new password.")
    ] = None,
    ssl_mode: Annotated[
        str | None, typer.Option(help="disabled, preferred, required, verify_ca or verify_identity.")
    ] = None,
    ssl_ca: Annotated[
        Path | None, typer.Option(help="A copy of the source's ca.pem; MySQL 8.0 and later need it, or --public-key.")
    ] = None,
    public_key: Annotated[
        Path | None, typer.Option(help="A copy of the source's public_key.pem, for a way to it without TLS.")
    ] = None,
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


@commands.command()
def doctor(
    config: ConfigOption,
    replica: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST:PORT,USER,FILE[,KEY=VALUE]",
            help="Also ask this replica; FILE has the password. KEY: ssl_mode, ssl_ca, ssl_cert, ssl_key, public_key. May be repeated.",
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(min=1, max=600, help="Seconds for the answers of each server.")] = 30.0,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 for warnings too.")] = False,
    json: JsonOption = False,
) -> None:
    """Check the source, this host and replicas, and print how to fix each problem. It changes nothing there."""
    from relay.doctor.doctor_command import doctor as report

    raise typer.Exit(report(loaded_config(config), replica or [], limit_s=timeout, strict=strict, as_json=json))


@commands.command()
def compare(
    config: ConfigOption,
    replica: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT,USER,FILE[,KEY=VALUE]",
            help="The new server; FILE has the password. KEY as for doctor. SELECT, SHOW VIEW, TRIGGER, EVENT, REPLICATION CLIENT.",
        ),
    ],
    source: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT,USER,FILE[,KEY=VALUE]",
            help="The source, by an account with the same privileges; without it [source] of relay.toml.",
        ),
    ] = None,
    view: Annotated[
        str | None, typer.Option(help="The view whose GTIDs the new server has; else it is looked up.")
    ] = None,
    table: Annotated[
        list[str] | None, typer.Option(help="SCHEMA.TABLE, shop.*; may be repeated. Without: all.")
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Not these; may be repeated.")] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(help="auto_increment, definer, comment, engine, view, ...; may be repeated.")
    ] = None,
    script: Annotated[Path | None, typer.Option(help="Write the SQL that repairs the new server.")] = None,
    state: Annotated[Path | None, typer.Option(help="Keep how far it is there; an interrupted run goes on.")] = None,
    chunk_seconds: Annotated[
        float, typer.Option(min=0.01, max=60, help="How long a server may need for a chunk.")
    ] = 0.5,
    rows_per_second: Annotated[int, typer.Option(min=0, help="Not more than so many; 0: no limit.")] = 0,
    lag_limit: Annotated[float, typer.Option(min=0, help="Pause while the new server is so many seconds late.")] = 30.0,
    wait: Annotated[float, typer.Option(min=1, help="Seconds to wait until the new server has a place.")] = 300.0,
    most_differences: Annotated[int, typer.Option(min=1, help="Leave a table after so many.")] = 10_000,
    json: JsonOption = False,
) -> None:
    """Compare the tables of a new server with the source's, under traffic, by SELECT only; 1 if something differs, 3: not known."""
    from relay.compare.compare_command import CompareOptions
    from relay.compare.compare_command import compare as compare_servers
    from relay.compare.comparison import Request
    from relay.compare.rows.load_limits import LoadLimits
    from relay.compare.rows.table_shape import ComparedTables

    request = Request(
        ComparedTables(table or (), exclude or ()),
        frozenset(ignore or ()),
        LoadLimits(chunk_seconds, rows_per_second, lag_limit, wait),
        most_differences,
    )
    options = CompareOptions(replica, source, view, script, state, json, request)
    raise typer.Exit(compare_servers(loaded_config(config), options))


@commands.command()
def status(
    config: ConfigOption,
    watch: Annotated[bool, typer.Option("--watch", help="Look again and again, until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option(min=0.5, max=3600, help="Seconds between two looks with --watch.")] = 2.0,
    json: JsonOption = False,
) -> None:
    """Show source, archive, views, replicas and ledger on one screen, of a relay that runs or not; 1 for a problem."""
    from relay.status.status_command import status as show_status

    raise typer.Exit(show_status(loaded_config(config), watch_s=every if watch else None, as_json=json))
