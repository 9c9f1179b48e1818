"""The statements that make a server with restored data a replica of a view, in the syntax of its version."""

import shlex
from collections.abc import Sequence
from typing import Final, NamedTuple

from protocol.gtid.gtid_set import GtidSet
from relay.view.rules.settings import ViewSettings
from relay.view.seeding.dump_head import DumpPlace
from relay.view.seeding.replica_retries import retry_options
from relay.view.seeding.restore_advice import restore_advice
from relay.view.view_place import ViewPlace

_SOURCE_WORDS: Final = (8, 0)
"""The version from which (8.0.23) CHANGE REPLICATION SOURCE TO is used; 8.4 knows nothing else."""
_RESET_BINARY_LOGS: Final = (8, 4)
"""The version from which RESET BINARY LOGS AND GTIDS, known since 8.2, is used; RESET MASTER is removed from 8.4 on."""
_AUTO_POSITION: Final = (5, 6)
"""The version from which (5.6.5) MASTER_AUTO_POSITION is used."""
_ASSIGNS: Final = (8, 0)
"""The version from which (8.0.23) ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS is used."""
_GTIDS_WANT_OPTIONS: Final = (5, 7)
"""The last version in which a server with GTIDs must be started with log_bin and log_slave_updates, at least for 5.6."""

_SQL_DUMPS: Final = ("mysqldump", "mariadb-dump")
_PERSISTS: Final = (8, 0)
_DEFINER: Final = "'DEFINER=`[^`]*`@`[^`]*`'"

_IN_PLACE: Final = "The server keeps its data."
_STEPPED_UP: Final = (
    "Its gtid_mode must be ON by now: step it up first, OFF, OFF_PERMISSIVE, ON_PERMISSIVE, "
    "ON, while it does not replicate."
)


class RelayAddress(NamedTuple):
    """The relay's address for the replica. `user` is an account that sees the view; empty: none is configured. `tls`: it may
    use TLS.
    """

    host: str
    port: int
    user: str
    tls: bool


class SeedStatements(NamedTuple):
    """The `statements` in their order, without semicolons, and `hints`, a sentence each."""

    statements: Sequence[str]
    hints: Sequence[str]


def seed_statements(
    settings: ViewSettings,
    place: ViewPlace,
    executed: GtidSet,
    relay: RelayAddress,
    *,
    in_place: bool = False,
    taken: DumpPlace | None = None,
) -> SeedStatements:
    """Return the statements. `executed` is what is executed before `place`. `in_place`: the server is a replica already and keeps its
    data and binlogs. `taken` is the dump that must be restored before; None: it is not known.
    """
    by_gtid = settings.gtids != "anonymous" and bool(executed or settings.gtids == "assign")
    statements = [f"STOP {_replica(settings)}"] if in_place else []
    if by_gtid:
        statements += _gtids(settings, executed, in_place=in_place)
    statements.append(_change(settings, place, relay, by_gtid=by_gtid))
    statements.append(f"START {_replica(settings)}")
    first = restore_advice(taken, without_mode=settings.target_version >= _SOURCE_WORDS)
    if in_place:
        first = f"{_IN_PLACE} {_STEPPED_UP}" if by_gtid else _IN_PLACE
    return SeedStatements(statements, _hints(settings, relay, first, by_gtid=by_gtid, taken=taken))


def _gtids(settings: ViewSettings, executed: GtidSet, *, in_place: bool) -> list[str]:
    if in_place:
        # A plus adds to its own GTIDs. Before 8.0 there is none: gtid_purged is set where nothing is executed.
        plus = "+" if settings.target_version >= _SOURCE_WORDS else ""
        return [f"SET GLOBAL gtid_purged = '{plus}{executed.line}'"] if executed else []
    new = settings.target_version >= _RESET_BINARY_LOGS
    reset = "RESET BINARY LOGS AND GTIDS" if new else "RESET MASTER"
    return [reset, f"SET GLOBAL gtid_purged = '{executed.line}'"] if executed else [reset]


def _change(settings: ViewSettings, place: ViewPlace, relay: RelayAddress, *, by_gtid: bool) -> str:
    new = settings.target_version >= _SOURCE_WORDS
    prefix = "SOURCE" if new else "MASTER"
    options = [
        f"{prefix}_HOST = {_quoted(relay.host)}",
        f"{prefix}_PORT = {relay.port}",
        f"{prefix}_USER = {_quoted(relay.user or 'REPLICA')}",
        f"{prefix}_PASSWORD = 'PASSWORD'",
    ]
    if relay.tls:
        options.append(f"{prefix}_SSL = 1")
    elif settings.target_version >= _SOURCE_WORDS:
        # Newer ones demand TLS unless configured otherwise; then they must request the key that passwords are sent with.
        options += ["SOURCE_SSL = 0", "GET_SOURCE_PUBLIC_KEY = 1"]
    options += retry_options(prefix, "mysql", settings.target_version)
    if by_gtid:
        options.append(f"{prefix}_AUTO_POSITION = 1")
    else:
        options += [
            f"{prefix}_LOG_FILE = {_quoted(place.view.file)}",
            f"{prefix}_LOG_POS = {place.view.offset}",
        ]
        if settings.target_version >= _AUTO_POSITION:
            options.append(f"{prefix}_AUTO_POSITION = 0")
        if settings.gtids == "anonymous" and settings.target_version >= _ASSIGNS:
            options.append("ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = LOCAL")
    verb = "CHANGE REPLICATION SOURCE TO" if new else "CHANGE MASTER TO"
    return f"{verb}\n  " + ",\n  ".join(options)


def _hints(
    settings: ViewSettings, relay: RelayAddress, first: str, *, by_gtid: bool, taken: DumpPlace | None
) -> list[str]:
    hints = [first]
    if not relay.user:
        hints.append(
            f'No account sees this view yet: an [[account]] with view = "{settings.name}" in relay.toml is needed.'
        )
    if taken is not None and taken.made_by in _SQL_DUMPS:
        cat = "zcat" if taken.is_packed else "cat"
        hints.append(
            "Triggers, views and programs run as their definers, and accounts are not in such a dump: make each of these on "
            f"the new server, or replicas stop with 1449: {cat} {shlex.quote(str(taken.path))} | grep -o {_DEFINER} | sort -u"
        )
        keeps = "PERSIST" if settings.target_version >= _PERSISTS else "GLOBAL"
        hints.append(
            "Events of the dump run on the new server, too, beside their changes that come through the view: "
            f"SET {keeps} event_scheduler = OFF there before the dump is restored, ON when it is promoted."
        )
    if by_gtid and settings.target_version <= _GTIDS_WANT_OPTIONS:
        hints.append(
            "The server has to be started with gtid_mode=ON, enforce_gtid_consistency=ON, log_bin and log_slave_updates."
        )
    if not by_gtid and settings.gtids == "anonymous" and settings.target_version >= _ASSIGNS:
        hints.append(
            "LOCAL needs gtid_mode=ON and gives numbers of the replica's own. With gtid_mode=OFF_PERMISSIVE write OFF "
            "in place of LOCAL."
        )
    if not by_gtid and settings.gtids == "keep":
        hints.append(
            "No transaction before this place has a GTID, so the replica follows by file and position of the view."
        )
    return hints


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _replica(settings: ViewSettings) -> str:
    return "REPLICA" if settings.target_version >= _SOURCE_WORDS else "SLAVE"
