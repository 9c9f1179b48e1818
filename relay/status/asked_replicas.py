"""How far the replicas of relay.toml have applied, where no running relay says it: without [http], `status` asks them itself."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from relay.applying.applying_state import AppliedDistance, ApplyingState
from relay.applying.applying_watch import AskedReplica
from relay.applying.replica_channel import FollowedRelay, ReplicaChannel
from relay.archive.read.changes_follow import Stretch, changes_follow
from relay.archive.storage.files import FileLayer
from relay.config import Config
from relay.upstream.source.source_errors import FailureKind


class ReplicaQuestions:
    """Asks all of them at each look. Who refused the login is not asked again: servers may lock out who has a wrong password often."""

    def __init__(self) -> None:
        self._refused: dict[str, ApplyingState] = {}

    async def states(self, config: Config) -> list[ApplyingState]:
        """Return their states, without distances, in bounded time. It never raises for a replica that does not answer."""
        views = {account.user: account.view for account in config.accounts}
        relay = FollowedRelay(config.listen.port, views)
        asked = [AskedReplica(section) for section in config.replicas]
        return list(await asyncio.gather(*(self._state(one, relay) for one in asked)))

    async def _state(self, one: AskedReplica, relay: FollowedRelay) -> ApplyingState:
        address = one.section.address
        if address not in self._refused:
            try:
                if await one.ask(lambda: relay, _not_measured) is FailureKind.AUTHENTICATION:
                    self._refused[address] = one.state
            finally:
                one.close()
        return self._refused.get(address, one.state)


async def _not_measured(_server_id: int, _channel: ReplicaChannel) -> AppliedDistance:
    return AppliedDistance()


def with_distance(
    state: ApplyingState, behind: int | None, newest: Path | None, views: Mapping[str, str | None]
) -> ApplyingState:
    """Return the state with its distance. behind: the bytes from its place to the archive's end; None: not known. newest: the newest
    archived file. Blocking."""
    channel = state.channel
    if channel is None:
        return state
    if views.get(channel.user) is not None:
        return replace(state, distance=AppliedDistance(why="with [http] the relay measures it in the view"))
    if behind is None:
        return replace(
            state, distance=AppliedDistance(why=f"its place {state.place or 'nowhere'} is not in the archive")
        )
    if behind and newest is not None and newest.name == channel.file:
        stretch = Stretch(newest, channel.offset, channel.offset + behind)
        with contextlib.suppress(OSError):  # the archive's own lines say that it cannot be read
            behind = behind if changes_follow(FileLayer(), [stretch]) else 0
    return replace(state, distance=AppliedDistance(behind))


def by_account(
    users: Sequence[str], states: Sequence[ApplyingState]
) -> tuple[list[ApplyingState | None], list[ApplyingState]]:
    """Return the state of each that is sent binlogs, by its account, and the states that belong to none of them. An account of two
    tells nothing: the relay's SQL port does not say who is who."""
    found: list[ApplyingState | None] = []
    for user in users:
        own = [one for one in states if one.channel is not None and one.channel.user == user]
        found.append(own[0] if len(own) == 1 and users.count(user) == 1 else None)
    used = {one.replica for one in found if one is not None}
    return found, [one for one in states if one.replica not in used]
