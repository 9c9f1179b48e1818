"""`binlog-relay view seed`: what to type at a new replica of a view, for the place at which its data were copied."""

import json
import sys
from pathlib import Path
from typing import Final

from relay.commands.outcome import FINDINGS, WRONG_USE, CommandFailed
from relay.commands.view_command import place_of, place_record, view_failures
from relay.config import Config
from relay.view.inspect.named_view import NamedView
from relay.view.inspect.view_listing import mirrored_file
from relay.view.seeding.dump_head import DumpPlace, DumpRefused, shown
from relay.view.seeding.dump_place import dump_place
from relay.view.seeding.seed_statements import RelayAddress, SeedStatements, seed_statements

_EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})
_ANY_HOST: Final = "RELAY_HOST"


def relay_address(config: Config, view: str) -> RelayAddress:
    """Where replicas of the view connect to, as far as the configuration says."""
    listen = config.listen
    host = _ANY_HOST if listen.host in _EVERYWHERE else listen.host
    user = next((account.user for account in config.accounts if account.view == view), "")
    return RelayAddress(host, listen.port, user, listen.tls_cert is not None)


def seed(
    view: NamedView, relay: RelayAddress, *, at: str | None, dump: Path | None, in_place: bool, as_json: bool
) -> None:
    """Prints the statements. Works beside a running relay. Raises: CommandFailed, also for a place that is none."""
    if (at is None) == (dump is None):
        raise CommandFailed("Write either --at FILE:POSITION or --dump FILE|DIRECTORY.", WRONG_USE)
    if in_place and at is None:
        raise CommandFailed("--in-place is for a replica that runs: say with --at what it has applied.", WRONG_USE)
    taken = _taken(dump) if dump is not None else None
    with view_failures(view):
        place = place_of(view, "--at", at or str(taken.position if taken is not None else ""))
        executed = view.executed(place)
        doubts = _doubts(view, taken)
    seeded = seed_statements(view.settings, place, executed, relay, in_place=in_place)
    if as_json:
        record = place_record(view, place, executed)
        record |= {"statements": list(seeded.statements), "hints": [*doubts, *seeded.hints]}
        sys.stdout.write(json.dumps(record) + "\n")
        return
    source = f"{place.source_text}, the view's {place.view_text}"
    _print([f"For data as of {source}. Executed there: {executed.count} transactions."], taken, doubts, seeded)


def _taken(dump: Path) -> DumpPlace:
    try:
        return dump_place(dump)
    except DumpRefused as refused:
        raise CommandFailed(str(refused), FINDINGS) from None


def _doubts(view: NamedView, taken: DumpPlace | None) -> list[str]:
    """What does not fit together, and is no error by itself."""
    if taken is None:
        return []
    if taken.is_statement:
        text = (
            f"line {taken.line} is carried out when the dump is restored, and MySQL from 8.4 on does not know CHANGE MASTER. "
            f"Restore it without: sed {taken.line}d dump.sql"
        )
        return [text, *_doubts(view, taken._replace(is_statement=False))]
    if not taken.server_version:
        return []
    found = mirrored_file(view.archive, taken.position.file)
    if found is None or found[1].server_version == taken.server_version:
        return []
    return [
        f"the dump is of a server {shown(taken.server_version)}, the archived {taken.position.file} of one {found[1].server_version}: "
        "was it taken at the source?"
    ]


def _print(begin: list[str], taken: DumpPlace | None, doubts: list[str], seeded: SeedStatements) -> None:
    if taken is not None:
        host = f" of host {shown(taken.host)}" if taken.host else ""
        begin.append(f"From {taken.path}, line {taken.line}: {taken.made_by}{host}.")
    lines = [f"-- {text}" for text in (*begin, *(f"Look at this: {doubt}" for doubt in doubts), *seeded.hints)]
    lines += [f"{statement};" for statement in seeded.statements]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
