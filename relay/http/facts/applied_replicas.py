"""How far the replicas of relay.toml have applied what the relay has: their own places, measured in the archive that each is served."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import Malformed
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList, GtidPosition
from relay.applying.applying_state import AppliedDistance, ApplyingState
from relay.applying.applying_watch import ApplyingWatch
from relay.applying.replica_channel import FollowedRelay, ReplicaChannel
from relay.archive.generation import Generation
from relay.archive.read.changes_follow import Stretch, changes_follow
from relay.archive.storage.gtid_facts import GtidValue
from relay.config import Config
from relay.downstream.clients import Clients
from relay.downstream.connection.client_status import ClientStatus
from relay.http.facts.relay_snapshot import ReplicaState
from relay.http.facts.replica_registry import ReplicaRegistry

_ALL: Final = AppliedDistance(0, 0.0)
_KEPT_S: Final = 1.0
_MOST_FILES: Final = 3
"""Behind a place that far from the end there is a change."""


class AppliedReplicas:
    """`take` a configuration, then `close`; on the event loop only."""

    def __init__(self, registry: ReplicaRegistry, clients: Clients) -> None:
        self._registry = registry
        self._clients = clients
        self._port = 0
        self._views: dict[str, str | None] = {}
        self._known: dict[tuple[int, str], ClientStatus] = {}
        self._looked_at = float("-inf")
        self._watch = ApplyingWatch(self._relay, self._measured)

    @property
    def states(self) -> Sequence[ApplyingState]:
        """The newest state of each replica of relay.toml."""
        return self._watch.states

    def take(self, config: Config) -> None:
        """Ask the replicas of this configuration from now on."""
        self._port = self._port or config.listen.port  # another one takes a restart
        self._views = {account.user: account.view for account in config.accounts}
        self._watch.take(config.replicas)

    async def close(self) -> None:
        """End it."""
        await self._watch.close()

    def _relay(self) -> FollowedRelay:
        return FollowedRelay(self._port, self._views, self._connected().keys())

    async def _measured(self, server_id: int, channel: ReplicaChannel) -> AppliedDistance:
        client = self._connected().get((server_id, channel.user))
        view = self._views.get(channel.user) if client is None else client.view
        lag = self._registry.lag_of(view or "")
        if lag is None:
            return AppliedDistance(why="what it is served is not open yet")
        archive = lag.archive
        missing = None
        if channel.gtids is not None:
            missing = await asyncio.to_thread(missing_transactions, channel.gtids, archive.executed)
            if missing == 0:
                return replace(_ALL, transactions=0)
        if not channel.file:
            return AppliedDistance(transactions=missing, why="it has applied nothing of this relay yet")
        generations = [one for one in archive.all if one.file(channel.file) is not None]
        here = None if client is None else client.generation
        generation = generations[0] if len(generations) == 1 else None
        generation = next((one for one in generations if one.number == here), generation)
        if generation is None:
            there = "is in the binlogs of several sources" if generations else "is not in the archive"
            return AppliedDistance(transactions=missing, why=f"its place {channel.file}:{channel.offset} {there}")
        behind, behind_s = lag.behind(generation.number, channel.file, channel.offset)
        if behind and generation is archive.current:
            rest = _rest_of(generation, channel)
            try:
                if rest is not None and not await asyncio.to_thread(changes_follow, generation.layer, rest):
                    return replace(_ALL, transactions=missing)
            except OSError:
                pass  # who reads the file for a replica reports it
        return AppliedDistance(
            behind, behind_s, missing, "" if behind is not None else "its place is not in the archive"
        )

    def _connected(self) -> Mapping[tuple[int, str], ClientStatus]:
        """Return who is sent binlogs, by server_id and account: of a moment ago, however many replicas answer."""
        now = time.monotonic()
        if now - self._looked_at > _KEPT_S:
            sent = (one for one in self._clients.statuses() if one.sent_position is not None)
            self._known, self._looked_at = {(one.server_id, one.user): one for one in sent}, now
        return self._known


def _rest_of(generation: Generation, channel: ReplicaChannel) -> list[Stretch] | None:
    """Return what the generation has behind the place of a channel; None: it is much, or packed."""
    found: list[Stretch] = []
    file = generation.file(channel.file)
    while file is not None:
        if file.place is not None or len(found) == _MOST_FILES:
            return None
        found.append(Stretch(generation.path(file.name), FIRST_EVENT if found else channel.offset, file.end))
        file = generation.next_file(file.name)
    return found


def missing_transactions(gtids: str, executed: GtidValue | None) -> int | None:
    """Return how many of these transactions a replica with these GTIDs lacks; of MariaDB's by their numbers. None: that cannot be
    said. For a thread: sets may be large."""
    try:
        if isinstance(executed, GtidSet):
            return (executed - GtidSet.from_text(gtids)).count if executed else None
        if not isinstance(executed, GtidList) or not len(executed):
            return None
        held = GtidPosition.from_text(gtids)
    except Malformed:
        return None
    lacking = 0
    for newest in executed.position:
        last = held.domain(newest.domain_id)
        if last is None:
            return None
        lacking += max(0, newest.sequence_number - last.sequence_number)
    return lacking


def with_applied(
    replicas: Sequence[ReplicaState], states: Sequence[ApplyingState]
) -> tuple[list[ReplicaState], list[ApplyingState]]:
    """Return the replicas, each with its state if its account is given, and the states that belong to none of them."""
    by_id = {one.server_id: one for one in states if one.server_id}
    used: set[str] = set()
    found: list[ReplicaState] = []
    for replica in replicas:
        state = by_id.get(replica.server_id)
        if state is not None and _is_of(state, replica):
            used.add(state.replica)
            found.append(replace(replica, applying=state))
        else:
            found.append(replica)
    return found, [one for one in states if one.replica not in used]


def _is_of(state: ApplyingState, replica: ReplicaState) -> bool:
    """Return whether the state is this replica's: two may have one server_id, and one may have come back by another account."""
    if state.uuid and replica.uuid and state.uuid != replica.uuid:
        return False
    return state.channel is None or state.channel.user == replica.account
