"""`binlog-relay view …`."""

from pathlib import Path
from typing import Annotated

import typer

from protocol.errors import ExitCode
from relay.cli.command_options import ConfigOption, JsonOption, ViewArgument, loaded_config

commands = typer.Typer(
    help="Look after the views: other sets of binlogs, made from the archive.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@commands.command("list")
def view_list(config: ConfigOption, json: JsonOption = False) -> None:
    """List the views: their GTIDs, target, progress, and what stops them."""
    from relay.commands.view_command import configured_views, list_views

    list_views(configured_views(loaded_config(config)), as_json=json)


@commands.command("find")
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
    """Show one place in the source's binlogs and in the view's, and the GTIDs that are executed there."""
    from relay.commands.view_command import configured_view, find_place

    find_place(configured_view(loaded_config(config), name), source=source, position=position, gtid=gtid, as_json=json)


@commands.command("seed")
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

    loaded = loaded_config(config)
    view = configured_view(loaded, name)
    hosts = [source.host for source in loaded.sources]
    seed(view, relay_address(loaded, name), hosts, at=at, dump=dump, in_place=in_place, as_json=json)


@commands.command("skip")
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
    """Leave out the transaction at which the view has stopped. The relay must be stopped; in a running one use CALL."""
    from relay.commands.view_changes import skip
    from relay.commands.view_command import configured_view

    skip(configured_view(loaded_config(config, writes=True), name), at=at, yes=yes, as_json=json)


@commands.command("rebuild")
def view_rebuild(
    config: ConfigOption,
    name: ViewArgument,
    renumber: Annotated[
        bool, typer.Option("--renumber", help="Other numbers are right: no replica has GTIDs of the view.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: JsonOption = False,
) -> None:
    """Remove the view's files, so that the next start rebuilds them. The relay must be stopped."""
    from relay.commands.view_changes import rebuild
    from relay.commands.view_command import configured_view, next_uuid

    loaded = loaded_config(config, writes=True)
    view = configured_view(loaded, name, may_differ=True)
    rebuild(view, next_uuid(loaded, name), as_json=json, renumber=renumber, yes=yes)


@commands.command("check")
def view_check(config: ConfigOption, name: ViewArgument, json: JsonOption = False) -> None:
    """List everything in the archive that will stop the view, with the ways to continue. Nothing is written; the relay may be
    running."""
    from relay.commands.view_command import check_view, configured_view

    if check_view(configured_view(loaded_config(config), name), as_json=json):
        raise typer.Exit(ExitCode.FINDINGS)


@commands.command("verify")
def view_verify(config: ConfigOption, name: ViewArgument, json: JsonOption = False) -> None:
    """Rebuild the view in memory, and compare its files with that."""
    from relay.commands.view_command import configured_view, verify_view

    if verify_view(configured_view(loaded_config(config), name), as_json=json):
        raise typer.Exit(ExitCode.FINDINGS)
