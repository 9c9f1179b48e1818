"""Asks the replicas of relay.toml every few seconds how far they have applied. Nothing waits for them: each has its own task."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from protocol.printable import printable
from relay.applying.applying_state import AppliedDistance, ApplyingState
from relay.applying.replica_channel import FollowedRelay, ReplicaChannel, channel_to
from relay.applying.replica_question import LIMIT_S, ask_channels, open_replica
from relay.config import ReplicaSection
from relay.process.background import begin_task, tell_fault
from relay.upstream.source.connection import SourceConnection
from relay.upstream.source.source_errors import FailureKind, UpstreamError

_EVERY_S: Final = 5.0
_TASK: Final = "asking a replica how far it has applied"
_AFTER_REFUSAL_S: Final = 60.0
"""Servers may lock out who has a wrong password often."""
Measure = Callable[[int, ReplicaChannel], Awaitable[AppliedDistance]]
"""Returns the distance of a replica, by its server_id and its channel to the relay."""


class AskedReplica:
    """One replica of relay.toml: its connection, which is kept between two questions, and its newest state. `close` it."""

    def __init__(self, section: ReplicaSection) -> None:
        self.section = section
        self.state = ApplyingState(section.address, 0.0, why="it is being asked")
        self._connection: SourceConnection | None = None

    async def ask(self, relay: Callable[[], FollowedRelay], measure: Measure) -> FailureKind | None:
        """Ask it, in bounded time, and note its state. Return the kind of a failure; None: it answered."""
        before, asked_at, is_kept = self.state, time.time(), self._connection is not None
        who = before.server_id, before.uuid
        try:
            async with asyncio.timeout(LIMIT_S):
                if self._connection is None:
                    self._connection = await open_replica(self.section)
                facts = self._connection.facts
                who = facts.server_id, facts.server_uuid or ""
                channels = await ask_channels(self._connection)
                channel = channel_to(relay(), who[0], channels)
                distance = AppliedDistance() if channel is None else await measure(who[0], channel)
        except UpstreamError as error:
            self.close()
            if is_kept and error.kind is FailureKind.NETWORK:
                return await self.ask(
                    relay, measure
                )  # it ended between two questions: a new one tells whether the replica answers
            self.state = ApplyingState(self.section.address, asked_at, *who, why=printable(_reason(error)))
            return error.kind
        except TimeoutError:
            self.close()
            why = f"the replica did not answer within {LIMIT_S:g} s"
            self.state = ApplyingState(self.section.address, asked_at, *who, why=why)
            return FailureKind.NETWORK
        except BaseException:
            self.close()
            raise
        why = "" if channel is not None else _not_ours(channels, relay().port)
        self.state = ApplyingState(self.section.address, asked_at, *who, why=why, channel=channel, distance=distance)
        return None

    def close(self) -> None:
        """End its connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class ApplyingWatch:
    """`take` the replicas, then `close`; on the event loop only."""

    def __init__(self, relay: Callable[[], FollowedRelay], measure: Measure) -> None:
        self._relay = relay
        self._measure = measure
        self._asked: list[AskedReplica] = []
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def states(self) -> Sequence[ApplyingState]:
        """The newest state of each, in the order of relay.toml."""
        return [one.state for one in self._asked]

    def take(self, sections: Sequence[ReplicaSection]) -> None:
        """Ask these from now on, in place of those before: with their present passwords."""
        for task in self._tasks:
            task.cancel()
        self._asked = [AskedReplica(section) for section in sections]
        self._tasks = [begin_task(self._follow(one), _TASK) for one in self._asked]

    async def close(self) -> None:
        """End it."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _follow(self, one: AskedReplica) -> None:
        is_reported = False
        try:
            while True:
                failure: FailureKind | None = None
                try:
                    failure = await one.ask(self._relay, self._measure)
                    is_reported = False
                except Exception as fault:
                    why = "a fault of binlog-relay: its log has more"
                    one.state = ApplyingState(one.section.address, time.time(), one.state.server_id, why=why)
                    if not is_reported:
                        tell_fault("task_failed", fault, task=_TASK, replica=one.section.address)
                    is_reported = True
                await asyncio.sleep(_AFTER_REFUSAL_S if failure is FailureKind.AUTHENTICATION else _EVERY_S)
        finally:
            one.close()


def _reason(error: UpstreamError) -> str:
    return f"{error.what}. {error.advice}".rstrip(". ")


def _not_ours(channels: Sequence[ReplicaChannel], port: int) -> str:
    if not channels:
        return "it follows nobody"
    followed = ", ".join(f"{one.user}@{one.source}" for one in channels[:3])
    return f"it does not follow this relay, by an account of relay.toml at port {port}, but {followed}"
