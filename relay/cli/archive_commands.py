"""`binlog-relay archive …`."""

import sys
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

import typer

from protocol.errors import ExitCode
from relay.cli.command_options import ConfigOption, JsonOption, loaded_config
from relay.commands.outcome import CommandFailed

commands = typer.Typer(help="Look after the archive.", no_args_is_help=True, rich_markup_mode=None)


@commands.command("list")
def archive_list(config: ConfigOption, json: JsonOption = False) -> None:
    """List the archived files."""
    from relay.commands.archive_command import list_files

    list_files(loaded_config(config).archive_directory, as_json=json)


@commands.command("verify")
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

    loaded = loaded_config(config, writes=cure)
    directory = loaded.archive_directory
    with archive_failures(directory), tier_checks(loaded, deep=deep, cure=cure) as tiers:
        in_bucket = bucket_findings(loaded, purged=purged, deep=deep, cure=cure) if tiers.alone else ()
        count = verify(
            directory, deep=deep, as_json=json, packed=lambda progress: chain(tiers.run(progress), in_bucket)
        )
    if count:
        raise typer.Exit(ExitCode.FINDINGS)


@commands.command("rebuild")
def archive_rebuild(config: ConfigOption, json: JsonOption = False) -> None:
    """Rebuild the catalog and the boundary indexes from the binlogs alone. The relay must be stopped."""
    from relay.commands.archive_command import rebuild

    rebuild(loaded_config(config, writes=True).archive_directory, as_json=json)


@commands.command("repair")
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

    loaded = loaded_config(config, writes=True)
    copies = partial(copies_of, loaded.archive, loaded.archive_directory)
    if repair(loaded, files or [], origin, copies, generation=generation, as_json=json):
        raise typer.Exit(ExitCode.FINDINGS)


@commands.command("accept-gap")
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
    """Continue although the source no longer has what comes next, from the next start on; what is missing is recorded."""
    from relay.commands.archive_accept_gap import accept_gap

    accept_gap(loaded_config(config, writes=True), config, to=to, as_json=json)


@commands.command("find")
def archive_find(
    config: ConfigOption,
    gtid: Annotated[str | None, typer.Option(help="The transaction uuid:number, uuid:tag:number or 0-1-100.")] = None,
    time: Annotated[
        str | None, typer.Option(help="The first one that began at this time or later: ISO 8601, UTC.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show file and position of a transaction."""
    from relay.commands.archive_find import find

    find(loaded_config(config).archive_directory, gtid=gtid, time=time, as_json=json)


@commands.command("cat")
def archive_cat(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As 'archive list' shows it.", show_default=False)],
    config: ConfigOption,
) -> None:
    """Write an archived binlog to standard output, also one that is packed or in a bucket: archive cat NAME | mysqlbinlog -."""
    from relay.commands.archive_cat import cat

    if sys.stdout.isatty():
        text = f"archive cat writes bytes, which no terminal shows: binlog-relay archive cat {name} | mysqlbinlog -"
        raise CommandFailed(text)
    cat(loaded_config(config).archive_directory, name, sys.stdout.buffer)


@commands.command("export")
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

    loaded = loaded_config(config)
    directory = loaded.archive_directory
    if view is not None:
        from relay.commands.view_command import configured_view

        directory = configured_view(loaded, view, may_differ=True).directory
    request = ExportRequest(out, begin, to, before, tuple(tables or ()), undecided, across_gaps)
    if export(directory, request, as_json=json):
        raise typer.Exit(ExitCode.FINDINGS)


@commands.command("mirror")
def archive_mirror(config: ConfigOption, json: JsonOption = False) -> None:
    """Check how complete the bucket's copy of the archive is. Only the relay writes there; it may be running."""
    from relay.mirror.mirror_command import show_mirror

    if show_mirror(loaded_config(config), as_json=json):
        raise typer.Exit(ExitCode.FINDINGS)


@commands.command("restore")
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
    accept_changed: Annotated[
        bool,
        typer.Option("--accept-changed", help="Take what is not as the bucket's manifest says, too; it is named."),
    ] = False,
    at_least: Annotated[
        int,
        typer.Option("--at-least", metavar="N", min=0, help="Refuse a manifest with a lower number: an older state."),
    ] = 0,
    holes: Annotated[
        Literal["refuse", "before", "behind", "keep"],
        typer.Option(
            metavar="WHAT",
            help="Where binlogs lack in the middle of the copy: refuse; or what is before, or behind, or all (keep).",
        ),
    ] = "refuse",
    json: JsonOption = False,
) -> None:
    """Rebuild a lost archive from the bucket that [archive.mirror] kept as its copy."""
    from relay.bucket_copy.checked_copy import WantedCopy
    from relay.mirror.restore_command import restore

    restore(
        loaded_config(config, writes=True),
        origin,
        download=download,
        holes=holes,
        wanted=WantedCopy(accept_unencrypted, accept_changed, at_least),
        as_json=json,
    )


@commands.command("claim")
def archive_claim(
    config: ConfigOption,
    owner: Annotated[
        str | None,
        typer.Option("--of", metavar="UUID|nobody", help="Whose it is, as the command says without this: take it."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show or take ownership of the place of [archive.bucket]; --of takes it. The relay must be stopped."""
    from relay.tiers.claim_command import claim

    claim(loaded_config(config, writes=True), owner, as_json=json)


@commands.command("purge")
def archive_purge(
    config: ConfigOption,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Needed: the running relay alone removes files.")] = False,
    json: JsonOption = False,
) -> None:
    """Show what [retention] would remove now and why, and what is kept and for whom. It removes nothing; the relay may be running."""
    from relay.commands.view_command import configured_views
    from relay.retention.purge_preview import preview_purge

    if not dry_run:
        text = "The running relay removes files, as [retention] says, or PURGE BINARY LOGS there. To see what would go: --dry-run."
        raise CommandFailed(text)
    loaded = loaded_config(config)
    preview_purge(loaded, configured_views(loaded) if loaded.views else (), as_json=json)


@commands.command("ledger")
def archive_ledger(config: ConfigOption, json: JsonOption = False) -> None:
    """Show the events in the archive's history that an operator should know."""
    from relay.commands.archive_command import show_ledger

    show_ledger(loaded_config(config).archive_directory, as_json=json)
