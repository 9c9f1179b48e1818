"""`binlog-relay view seed`: the statements for a new replica of a view, for the place at which its data were copied."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import ExitCode
from protocol.position import Position
from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.generation_directories import generation_path
from relay.archive.storage.files import CATALOG_NAME
from relay.commands.outcome import CommandFailed
from relay.commands.view_command import place_of, place_record, view_failures
from relay.config import Config
from relay.view.inspect.named_view import NamedView
from relay.view.inspect.view_listing import files_of
from relay.view.seeding.dump_head import DumpPlace, shown
from relay.view.seeding.dump_place import dump_place
from relay.view.seeding.dumped_server import ArchivedServer, is_another_server, server_doubts
from relay.view.seeding.seed_statements import RelayAddress, SeedStatements, seed_statements
from relay.view.view_place import PlaceUnknown, ViewPlace

_EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})
_ANY_HOST: Final = "RELAY_HOST"


def relay_address(config: Config, view: str) -> RelayAddress:
    """Return the address to which replicas of the view connect, as far as the configuration names it."""
    listen = config.listen
    host = _ANY_HOST if listen.host in _EVERYWHERE else listen.host
    user = next((account.user for account in config.accounts if account.view == view), "")
    return RelayAddress(host, listen.port, user, listen.tls_cert is not None)


def seed(
    view: NamedView,
    relay: RelayAddress,
    hosts: Sequence[str] = (),
    *,
    at: str | None,
    dump: Path | None,
    in_place: bool,
    as_json: bool,
) -> None:
    """Print the statements. hosts: the sources that relay.toml names. The relay may be running.

    Raises: CommandFailed, also for a place that does not exist, and for a dump of another server than the source; DumpRefused.
    """
    if (at is None) == (dump is None):
        raise CommandFailed("Write either --at FILE:POSITION or --dump FILE|DIRECTORY.")
    if in_place and at is None:
        raise CommandFailed("--in-place is for a replica that runs: say with --at what it has applied.")
    taken = dump_place(dump) if dump is not None else None
    with view_failures(view):
        place = place_of(view, "--at", at or str(taken.position if taken is not None else ""))
        executed = view.executed(place)
        doubts = _doubts(view, place, taken, hosts) if taken is not None else []
    seeded = seed_statements(view.settings, place, executed, relay, in_place=in_place, taken=taken)
    if as_json:
        record = place_record(view, place, executed)
        record |= {"statements": list(seeded.statements), "hints": [*doubts, *seeded.hints]}
        sys.stdout.write(json.dumps(record) + "\n")
        return
    source = f"{place.source_text}, the view's {place.view_text}"
    _print([f"For data as of {source}. Executed there: {executed.count} transactions."], taken, doubts, seeded)


def _doubts(view: NamedView, place: ViewPlace, taken: DumpPlace, hosts: Sequence[str]) -> list[str]:
    """Return the facts that leave open whether the dump is of the source, and are no error by themselves. Raises: CommandFailed; as
    `files_of`."""
    directory = generation_path(view.archive, place.source_generation)
    file = next((file for file in files_of(directory) if file.name == place.source.file), None)
    if file is None:
        return []
    catalog = Catalog.open_read_only(directory / CATALOG_NAME)
    try:
        identity = catalog.identity()
    finally:
        catalog.close()
    uuid = (identity.server_uuid or "") if identity is not None else ""
    archived = ArchivedServer(file.server_id, file.server_version, uuid.lower(), hosts)
    if is_another_server(taken, archived):
        text = (
            f"{taken.path}: {taken.position} is a position of {_named(taken.server_id, taken.server_uuid)}, the server that was "
            f"dumped. The archived {file.name} is of {_named(file.server_id, archived.server_uuid)}. Was the backup taken at a "
            "replica? Give the position that it had in the source's binlogs with --at."
        )
        raise CommandFailed(text, ExitCode.FINDINGS)
    return server_doubts(taken, archived, begins_file=_begins_file(view, place))


def _named(server_id: int, uuid: str) -> str:
    return ", ".join([f"server_id {server_id}"] * bool(server_id) + [f"server_uuid {uuid}"] * bool(uuid))


def _begins_file(view: NamedView, place: ViewPlace) -> bool:
    """Return whether no transaction with a number of the view's is before it in its file."""
    if view.settings.gtids != "assign":
        return False
    try:
        first = view.of_source(Position(place.source.file, FIRST_EVENT))
        if view.settings.counts:
            return first.gno == place.gno
        # The numbers of a MariaDB are counted by domain: the place itself says it.
        return view.executed(first) == view.executed(place)
    except PlaceUnknown:  # the view begins in this file
        return False


def _print(begin: list[str], taken: DumpPlace | None, doubts: list[str], seeded: SeedStatements) -> None:
    if taken is not None:
        host = f" of host {shown(taken.host)}" if taken.host else ""
        begin.append(f"From {taken.path}, line {taken.line}: {taken.made_by}{host}.")
    lines = [f"-- {text}" for text in (*begin, *(f"Look at this: {doubt}" for doubt in doubts), *seeded.hints)]
    lines += [f"{statement};" for statement in seeded.statements]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
