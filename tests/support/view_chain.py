"""A real source, a relay with views of it, and real replicas of the views by auto-position."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pymysql

from deploy.servers import BinlogPosition, Server
from protocol.position import Position
from relay.archive_inspection.listing import read_ledger
from relay.view.rules.settings import ViewSettings
from relay.view.view_lookup import ViewLookup
from relay.view.view_place import InsideTransaction, PlaceUnknown, ViewPlace
from relay.view.view_skips import skips_of
from tests.support.certificates import Authority
from tests.support.chain import Chain, wait_until
from tests.support.relay_process import REPLICA_PASSWORD, RelayProcess
from tests.support.table_values import check_equal
from tests.support.view_files import check_numbers

VIEW: Final = "gtid"
UUID_OF_VIEW: Final = UUID("5a3c1b9e-7d20-5c44-8f61-0d2e4b6a8c10")
# These are MySQL 9.7's defaults: the other servers of deploy.servers are configured differently.
REPLICA_DEFAULTS: Final = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--replica-parallel-workers=4")
_GIVEN_UP_S: Final = 120.0


def view_keys(name: str = VIEW, **changed: Any) -> dict[str, Any]:
    """Return a [[view]] for relay.toml; gtids = "assign" by default."""
    keys: dict[str, Any] = {"name": name, "gtids": "assign", **changed}
    if keys["gtids"] == "assign":
        keys.setdefault("uuid", str(UUID_OF_VIEW))
    return keys


def account_of(view: str) -> str:
    """Return the account that is served this view."""
    return f"of_{view}"


def add_views(relay: RelayProcess, views: Sequence[Mapping[str, Any]]) -> None:
    """Add the views and an account for each, before the relay starts."""
    for keys in views:
        relay.add_view(**{"target" if key == "for" else key: value for key, value in keys.items()})
        relay.add_account(user=account_of(keys["name"]), password=REPLICA_PASSWORD, view=keys["name"])


def settings_of(keys: Mapping[str, Any], flavour: str = "mysql") -> ViewSettings:
    """Return the settings for these keys, as far as a look-up needs them. `flavour` is the source's."""
    return ViewSettings(
        keys["name"],
        keys["gtids"],
        UUID(keys.get("uuid", str(UUID_OF_VIEW))),
        keys.get("for", "mysql-9.7"),
        keys.get("engines", "keep"),
        foreign_keys=keys.get("foreign_keys", "server"),
        plain_tables=tuple(keys.get("plain_tables", ())),
        dependencies=keys.get("dependencies", "serial"),
        flavour=flavour,
    )


def listen_with_tls(directory: Path) -> dict[str, Any]:
    """Return [listen] with a certificate made for it."""
    files = Authority.make(directory / "certificates").server()
    return {"tls_cert": str(files.certificate), "tls_key": str(files.key)}


class ViewChain(Chain):
    """A source, a relay with views, and replicas of them. `views` are keys of [[view]], see `view_keys`; by default one."""

    def __init__(
        self,
        servers: Callable[[str], Server],
        source_name: str,
        directory: Path,
        *,
        options: Sequence[str] = (),
        views: Sequence[Mapping[str, Any]] = (),
        sections: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        self._known_stops: dict[str, int] = {}
        self.views = {keys["name"]: dict(keys) for keys in views or [view_keys()]}
        directory.mkdir(parents=True, exist_ok=True)
        given = dict(sections or {})
        given["listen"] = {**listen_with_tls(directory), **given.get("listen", {})}
        super().__init__(servers, source_name, directory, options=options, sections=given)
        add_views(self.relay, list(self.views.values()))

    # ---- replicas --------------------------------------------------------------------------------------------------

    def view_replica(
        self, view: str = VIEW, name: str = "mysql97", options: Sequence[str] = REPLICA_DEFAULTS
    ) -> Server:
        """Return a stock replica that follows the view by auto-position and TLS."""
        server = self.server(name, options)
        self.follow_view(server, view)
        return server

    def follow_view(self, server: Server, view: str = VIEW, **extra: Any) -> None:
        """Run CHANGE REPLICATION SOURCE TO the relay's view by auto-position, and START."""
        follow(server, self.relay.port, view, **extra)

    # ---- the view --------------------------------------------------------------------------------------------------

    def view_directory(self, view: str = VIEW) -> Path:
        """Return the directory of its files."""
        return self.relay.archive / "views" / view

    def lookup(self, view: str = VIEW) -> ViewLookup:
        """Return the look-up of source positions in the view, and back."""
        skips = skips_of(read_ledger(self.relay.archive), view)
        settings = settings_of(self.views[view], self.source.flavour)
        return ViewLookup(self.relay.archive, self.view_directory(view), settings, skips)

    def view_sql(self, statement: str, view: str = VIEW) -> list[tuple[Any, ...]]:
        """Run a statement at the relay as the account that sees the view."""
        return self.relay.sql(statement, account_of(view))

    def place_of(self, at: BinlogPosition, view: str = VIEW) -> ViewPlace | None:
        """Return the place in the view; None while the view has not reached it, such as at a transaction at which it stops."""
        with contextlib.suppress(PlaceUnknown, InsideTransaction, FileNotFoundError):
            return self.lookup(view).of_source(Position(*at))
        return None

    def wait_viewed(self, view: str = VIEW, timeout_s: float = _GIVEN_UP_S) -> ViewPlace:
        """Return the view's end when it has all that the source has. Raises: AssertionError, also if the view stopped."""
        end = self.wait_archived()
        deadline = time.monotonic() + timeout_s
        # A place is known a little before all up to there may be read.
        while (place := self.place_of(end, view)) is None or self.end_of_view(view) != place.view:
            stops = self._stops(view)
            assert len(stops) <= self._known_stops.get(view, 0), f"the view stopped: {stops[-1]}"
            told = f"the view is at {self.end_of_view(view)}, and did not come to {end}, which is {place}"
            assert time.monotonic() < deadline, f"{told}:\n{self.relay.log_tail()}"
            time.sleep(0.05)
            end = self.wait_archived()  # a source drops temporary tables some time after their connection has ended
        return place

    def wait_stopped(self, view: str = VIEW) -> dict[str, Any]:
        """Return the line that the relay logs when the view stops; `wait_viewed` assumes that it may continue from there."""
        known = self._known_stops.get(view, 0)
        wait_until(lambda: len(self._stops(view)) > known, f"the view {view} stops", 20)
        stops = self._stops(view)
        self._known_stops[view] = len(stops)
        return stops[-1]

    def _stops(self, view: str) -> list[dict[str, Any]]:
        return [line for line in self.relay.logged("view_stopped") if line.get("view") == view]

    def end_of_view(self, view: str = VIEW) -> Position | None:
        """Return up to where its replicas can read; None if there is nothing yet."""
        with contextlib.suppress(pymysql.MySQLError):
            for file, offset, *_ in self.view_sql("SHOW MASTER STATUS", view):
                return Position(str(file), int(offset))
        return None

    def gtids_of_view(self, view: str = VIEW) -> str:
        """Return the executed set of the view."""
        return str(self.view_sql("SELECT @@GLOBAL.gtid_executed", view)[0][0]).replace("\n", "")

    def check_replica(self, replica: Server, databases: Sequence[str], view: str = VIEW) -> int:
        """Wait until the replica has the whole view; its tables must be the source's, its GTIDs the view's, without a gap.

        Returns how many GTIDs the view assigned.
        """
        place = self.wait_viewed(view)
        wait_executed(replica, self.gtids_of_view(view), self.relay)
        check_equal(self.source, replica, databases)
        executed = executed_by(replica)
        assert executed == self.gtids_of_view(view)
        if self.views[view]["gtids"] != "assign":
            return 0
        count = check_numbers(self.view_directory(view), UUID_OF_VIEW)
        assert (executed, place.gno) == (f"{UUID_OF_VIEW}:1-{count}", count)
        return count


def follow(server: Server, port: int, view: str = VIEW, **extra: Any) -> None:
    """Run CHANGE REPLICATION SOURCE TO a relay's view by auto-position and TLS, and START."""
    server.attach("127.0.0.1", port, account_of(view), REPLICA_PASSWORD, auto_position=1, ssl=1, **extra)


def executed_by(server: Server) -> str:
    """Return @@GLOBAL.gtid_executed in one line."""
    return str(server.sql("SELECT @@GLOBAL.gtid_executed")[0][0]).replace("\n", "")


def wait_executed(replica: Server, gtids: str, relay: RelayProcess, timeout_s: float = _GIVEN_UP_S) -> None:
    """Return when the replica has applied all of `gtids`. Raises: AssertionError at once when a thread stopped."""

    def has_all() -> bool:
        status = replica.replica_status()
        stopped = status["io_errno"] in (1236, 13114, 13117, 13122) or status["sql_errno"]
        assert not stopped, f"{status['io_error']}{status['sql_error']}{_workers(replica)}\n{relay.log_tail(8)}"
        return bool(replica.sql(f"SELECT GTID_SUBSET('{gtids}', @@GLOBAL.gtid_executed)")[0][0])

    wait_until(has_all, f"the replica has {gtids}; it has {executed_by(replica)}", timeout_s)


def _workers(replica: Server) -> str:
    """Return the appliers' messages, to which SHOW REPLICA STATUS only points."""
    return "".join(f"\n{row[0]}" for row in replica.sql(_WORKERS) if row[0])


_WORKERS: Final = (
    "SELECT LAST_ERROR_MESSAGE FROM performance_schema.replication_applier_status_by_worker"
    " WHERE LAST_ERROR_NUMBER <> 0"
)
