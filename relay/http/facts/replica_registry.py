"""The connected replicas, and those that disconnected recently: they distinguish a missing replica from one that never existed."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Final

from relay.archive.archive import Archive
from relay.downstream.connection.client_status import ClientStatus
from relay.fairness.shares import fair_part
from relay.http.facts.relay_snapshot import ReplicaState
from relay.http.facts.replica_lag import ReplicaLag

MOST_LISTED: Final = 500
"""The most replicas with lines of their own in metrics; of more, those of each account with the largest lag are listed."""
_FORGOTTEN_AFTER_S: Final = 86400.0
_LONGEST_TEXT: Final = 96
_ACCOUNT: Final = attrgetter("account")


class ReplicaRegistry:
    """On the event loop only. Call `note` once a second, with the archives that are served by the names of views; empty: the mirror."""

    def __init__(self) -> None:
        self._lags: dict[str, ReplicaLag] = {}
        self._known: dict[tuple[int, str, str, str], ReplicaState] = {}

    def note(self, archives: Mapping[str, Archive]) -> None:
        """Note the present archives, and their growth."""
        for name, archive in archives.items():
            lag = self._lags.get(name)
            if lag is None or lag.archive is not archive:
                lag = self._lags[name] = ReplicaLag(archive)
            lag.note()

    def lag_of(self, view: str) -> ReplicaLag | None:
        """Return the lags in the archive that this view's replicas are served, the mirror's with an empty name; None: not open."""
        return self._lags.get(view)

    def follow(self, clients: Iterable[ClientStatus]) -> list[ReplicaState]:
        """Return at most MOST_LISTED of the known replicas, the largest lag first. Of two connections of one replica it is the one
        with the larger lag. A client that makes up many server_ids hides the replicas of its own account only."""
        now, loop_now = time.time(), asyncio.get_running_loop().time()
        here: dict[tuple[int, str, str, str], ReplicaState] = {}
        for client in clients:
            if client.sent_position is None and client.registered is None and not client.waits_for_position:
                continue
            facts = self._facts(client, now, loop_now)
            other = here.get(facts.identity)
            if other is None or _urgency(facts) > _urgency(other):
                here[facts.identity] = facts
        for identity, facts in here.items():
            if facts.state != "registered" and facts.server_id:
                self._known.pop(identity, None)
                self._known[identity] = facts
        newest_first = [one for one in reversed(self._known.values()) if now - one.last_seen <= _FORGOTTEN_AFTER_S]
        remembered = fair_part(newest_first, _ACCOUNT, MOST_LISTED)
        self._known = {one.identity: one for one in reversed(remembered)}
        for identity, facts in self._known.items():
            if identity not in here:
                here[identity] = replace(facts, state="gone", behind_bytes=None, behind_s=None, connection_id=0)
        return fair_part(sorted(here.values(), key=_urgency, reverse=True), _ACCOUNT, MOST_LISTED)

    def _facts(self, client: ClientStatus, now: float, loop_now: float) -> ReplicaState:
        view = client.view or ""
        file, offset = client.sent_position or client.requested_position or ("", 0)
        behind: tuple[int | None, float | None] = (None, None)
        state = "registered"
        if client.sent_position is not None:
            state = "at_end" if client.is_at_end else "streaming"
            lag = self._lags.get(view)
            if client.is_at_end:
                behind = 0, 0.0
            elif lag is not None:
                behind = lag.behind(client.generation, file, offset)
        elif client.waits_for_position:
            state = "waiting"
        acknowledged = client.acknowledged_position or ("", 0)
        return ReplicaState(
            server_id=client.server_id or (client.registered.server_id if client.registered is not None else 0),
            account=client.user[:_LONGEST_TEXT],
            host=client.address.rpartition(":")[0][:_LONGEST_TEXT],
            view=view,
            state=state,
            file=file[:_LONGEST_TEXT],
            offset=offset,
            generation=client.generation,
            behind_bytes=behind[0],
            behind_s=behind[1],
            sent_bytes=client.sent_bytes,
            connection_id=client.connection_id,
            uuid=client.replica_uuid[:_LONGEST_TEXT],
            connected_s=max(0.0, loop_now - client.dump_began_at) if client.sent_position is not None else 0.0,
            acknowledged_file=acknowledged[0][:_LONGEST_TEXT],
            acknowledged_offset=acknowledged[1],
            last_seen=now,
        )


def _urgency(facts: ReplicaState) -> tuple[bool, float, int]:
    return facts.is_connected, facts.behind_s or 0.0, facts.behind_bytes or 0
