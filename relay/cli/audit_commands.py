"""`binlog-relay audit`."""

from pathlib import Path
from typing import Annotated

import typer

from protocol.errors import ExitCode
from relay.cli.command_options import JsonOption
from relay.commands.outcome import CommandFailed

commands = typer.Typer(rich_markup_mode=None)


@commands.command()
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
    replace: Annotated[bool, typer.Option("--replace", help="Write an audit that is in --out again.")] = False,
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
    from relay.audit.audit_command import AuditRequest, listed_jobs
    from relay.audit.audit_command import audit as run_audit

    if name == "list" and not archive:
        typer.echo(listed_jobs())
        return
    if not archive or out is None:
        raise CommandFailed("audit takes a name, an archive and --out: binlog-relay audit NAME ARCHIVE --out DIR")
    request = AuditRequest(
        name, archive, out, since, until, tuple(tables or ()), limit, replace, cores, target, table, key
    )
    if run_audit(request, as_json=json):
        raise typer.Exit(ExitCode.FINDINGS)
