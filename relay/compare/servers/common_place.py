"""Places that both servers have: a replica is waited for until it has applied all that the source had written at some moment."""

import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from protocol.position import Position
from protocol.printable import printable
from relay.compare.servers.compare_stop import CompareStop, unreachable
from relay.compare.servers.compared_server import ComparedServer
from relay.view.generations.view_generations import qualified
from relay.view.inspect.named_view import NamedView
from relay.view.view_place import InsideTransaction, PlaceUnknown, ViewPlace

_SHORTEST_PAUSE_S: Final = 0.005
_LONGEST_PAUSE_S: Final = 0.2
_LOOKED_AT_EVERY_S: Final = 1.0


class Reached(Protocol):
    """Says whether a replica has applied all before a place of the source."""

    def __call__(self, place: Position) -> bool:
        """Return whether it has."""


class CommonPlace:
    """The replica's way to the source's places. Only one thread uses it."""

    def __init__(self, replica: ComparedServer, has: Reached, wait_s: float) -> None:
        """Take `has`, which asks the replica, and for how long to wait for one place."""
        self._replica = replica
        self._has = has
        self._wait_s = wait_s
        self._reached: Position | None = None
        self.waited_s = 0.0

    def reach(self, place: Position) -> None:
        """Return when the replica has applied all before the place. Raises: CompareStop if it does not come there."""
        if self._reached is not None and place <= self._reached:
            return
        began = looked = time.monotonic()
        pause = _SHORTEST_PAUSE_S
        while not self._has(place):
            now = time.monotonic()
            if now - looked > _LOOKED_AT_EVERY_S:
                check_applies(self._replica)
                looked = now
            if now - began > self._wait_s:
                raise unreachable(
                    f"The new server has not applied {place} of the source within {self._wait_s:g} s",
                    "Let it catch up: 'view list' says what stops the view, SHOW REPLICA STATUS the rest; or raise --wait.",
                )
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE_S)
        self.waited_s += time.monotonic() - began
        self._reached = place


def check_applies(replica: ComparedServer) -> dict[str, Any]:
    """Return the replica's status. Raises: CompareStop if it is no replica, or applies nothing."""
    status = replica.replica_status()
    where = f"{replica.who} {replica.where}"
    if not status:
        raise CompareStop(
            f"{where} is no replica: it has no common place with the source",
            "Attach it to the relay first: 'binlog-relay view seed' prints the statements (VIEWS.md).",
        )
    if status.get("Slave_SQL_Running") != "Yes":
        error = printable(str(status.get("Last_SQL_Error") or status.get("Last_Error") or "no error"))
        text = f"{where} applies nothing: its SQL thread is stopped ({error})"
        raise unreachable(text, "Correct it, START REPLICA (START SLAVE) there, and run this again.")
    if status.get("Slave_IO_Running") == "No":
        error = printable(str(status.get("Last_IO_Error") or "no error"))
        text = f"{where} receives nothing: its receiver is stopped ({error})"
        raise unreachable(text, "Correct it, START REPLICA (START SLAVE) there, and run this again.")
    return status


def reached_by_gtids(replica: ComparedServer, view: NamedView, generation: Callable[[], int]) -> Reached:
    """Return how to ask a replica of a view with GTIDs. `generation` is that of the archive's newest files."""
    known: dict[Position, str] = {}

    def has(place: Position) -> bool:
        if place not in known:
            found = _in_view(view, place, generation())
            if found is None:
                return False
            try:
                executed = view.executed(found).line
            except PlaceUnknown:  # the place is known a little before the view's file has it
                return False
            known.clear()
            known[place] = executed
        return bool(replica.rows(f"SELECT GTID_SUBSET('{known[place]}', @@GLOBAL.gtid_executed)")[0][0])

    return has


def reached_by_view_places(replica: ComparedServer, view: NamedView, generation: Callable[[], int]) -> Reached:
    """Return how to ask a replica of a view without GTIDs."""

    def has(place: Position) -> bool:
        found = _in_view(view, place, generation())
        return found is not None and applied_place(replica.replica_status()) >= found.view

    return has


def reached_by_places(replica: ComparedServer) -> Reached:
    """Return how to ask a replica of the mirror, whose places are the source's."""
    return lambda place: applied_place(replica.replica_status()) >= place


def applied_place(status: dict[str, Any]) -> Position:
    """Return up to where a replica has applied its source's binlogs. Raises: CompareStop before the first one."""
    file = status.get("Relay_Master_Log_File")
    if not file:
        raise unreachable("The new server has applied nothing yet", "Let it catch up, and run this again.")
    return Position(str(file), int(status["Exec_Master_Log_Pos"]))


def _in_view(view: NamedView, place: Position, generation: int) -> ViewPlace | None:
    """Return the place in the view, or the next one; None: the view is not made up to there."""
    named = place if generation <= 1 else Position(qualified(generation, place.file), place.offset)
    try:
        return view.of_source(named)
    except InsideTransaction as inside:
        return inside.after
    except (PlaceUnknown, FileNotFoundError):
        return None
