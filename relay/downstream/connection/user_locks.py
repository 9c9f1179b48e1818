"""Locks that are only names (GET_LOCK), between the connections of one relay. They protect nothing of the relay itself."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from protocol.errors import ErrorCode, StatementRefused
from protocol.resultset import AnswerColumn, ColumnFlag, ColumnType, Rows, Value
from protocol.statements import Done, GivenAnswer, SourceFacts
from protocol.statements.requests import LockAction, LockCall, UseLocks

_LONGEST_S: Final = 31_536_000.0
"""The time for which a server waits if the timeout is infinite."""
_MOST_LOCKS: Final = 64
"""The limit for one connection."""


@dataclass(slots=True)
class _Lock:
    """A lock that is taken. `times`: how often its owner took it, and must release it. `waiting`: the next owners, in order."""

    owner: int
    times: int = 1
    waiting: deque[tuple[int, asyncio.Future[None]]] = field(default_factory=deque)


class UserLocks:
    """All locks of one relay, by name. On the event loop only. Connections are identified by their numbers."""

    def __init__(self) -> None:
        self._locks: dict[str, _Lock] = {}
        self._held: dict[int, dict[str, None]] = {}
        """The names of each connection's locks, in the order in which it got them."""
        self._awaited: dict[int, str] = {}
        """The lock that a connection waits for."""

    async def answer(self, request: UseLocks, connection_id: int, facts: SourceFacts) -> GivenAnswer:
        """Return one row, or nothing for DO. Raises: StatementRefused (3058, in MariaDB 1213, if two would wait for each other)."""
        row: list[Value] = [await self._answer(call, connection_id, facts) for call in request.calls]
        if not request.shows:
            return Done()
        return Rows(tuple(_column(call, facts) for call in request.calls), (tuple(row),))

    async def _answer(self, call: LockCall, connection_id: int, facts: SourceFacts) -> Value:
        if call.action is LockAction.RELEASE_ALL:
            return self.release_all(connection_id)
        if call.name is None:
            return None
        lock = self._locks.get(call.name)
        if call.action is LockAction.IS_FREE:
            return int(lock is None)
        if call.action is LockAction.IS_USED:
            return None if lock is None else lock.owner
        if call.action is LockAction.RELEASE:
            return self._release_one(call.name, connection_id)
        if not _may_have_several(facts):
            self.release_all(connection_id)
        return int(await self._take(call.name, connection_id, call.timeout_s, facts))

    async def _take(self, name: str, connection_id: int, timeout_s: float, facts: SourceFacts) -> bool:
        """Take the lock; return whether that succeeded within the time."""
        lock = self._locks.get(name)
        if lock is None:
            if len(self._held.get(connection_id, ())) >= _MOST_LOCKS:
                raise StatementRefused(
                    ErrorCode.ER_NOT_SUPPORTED_YET,
                    f"binlog-relay gives one connection at most {_MOST_LOCKS} locks: release some",
                )
            self._locks[name] = _Lock(connection_id)
            self._held.setdefault(connection_id, {})[name] = None
            return True
        if lock.owner == connection_id:
            lock.times += 1
            return True
        if not timeout_s:
            return False
        self._check_deadlock(lock, connection_id, facts)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (connection_id, turn)
        lock.waiting.append(entry)
        self._awaited[connection_id] = name
        try:
            await asyncio.wait({turn}, timeout=min(timeout_s, _LONGEST_S) if timeout_s > 0 else _LONGEST_S)
            return turn.done()
        except asyncio.CancelledError:
            # It was given the lock, but does not wait for it any more; its connection's end may have passed it on already.
            if turn.done() and name in self._held.get(connection_id, ()):
                self._release(name)
            raise
        finally:
            self._awaited.pop(connection_id, None)
            if not turn.done():
                lock.waiting.remove(entry)

    def _check_deadlock(self, lock: _Lock, connection_id: int, facts: SourceFacts) -> None:
        """Raises: StatementRefused if the owner of the lock waits, over any number of others, for this connection."""
        seen: set[int] = set()
        owner = lock.owner
        while owner not in seen:
            seen.add(owner)
            awaited = self._locks.get(self._awaited.get(owner, ""))
            if awaited is None:
                return
            owner = awaited.owner
            if owner == connection_id:
                if facts.is_mariadb:
                    raise StatementRefused(
                        ErrorCode.ER_LOCK_DEADLOCK, "Deadlock found when trying to get lock; try restarting transaction"
                    )
                raise StatementRefused(
                    ErrorCode.ER_USER_LOCK_DEADLOCK,
                    "Deadlock found when trying to get user-level lock; "
                    "try rolling back transaction/releasing locks and restarting lock acquisition.",
                )

    def _release_one(self, name: str, connection_id: int) -> Value:
        lock = self._locks.get(name)
        if lock is None:
            return None
        if lock.owner != connection_id:
            return 0
        lock.times -= 1
        if not lock.times:
            self._release(name)
        return 1

    def release_all(self, connection_id: int) -> int:
        """Release all locks of the connection and return their number, each counted as often as it was taken."""
        held = list(self._held.get(connection_id, ()))
        times = sum(self._locks[name].times for name in held)
        for name in held:
            self._release(name)
        return times

    def _release(self, name: str) -> None:
        """Give the lock to the next waiter, or free it."""
        lock = self._locks[name]
        held = self._held[lock.owner]
        del held[name]
        if not held:
            del self._held[lock.owner]
        while lock.waiting:
            connection_id, turn = lock.waiting.popleft()
            if not turn.done():
                lock.owner, lock.times = connection_id, 1
                self._held.setdefault(connection_id, {})[name] = None
                turn.set_result(None)
                return
        del self._locks[name]


def _may_have_several(facts: SourceFacts) -> bool:
    """Return whether GET_LOCK keeps the other locks of the connection: earlier versions released them."""
    return facts.version_numbers >= ((10, 0, 2) if facts.is_mariadb else (5, 7, 5))


def _column(call: LockCall, facts: SourceFacts) -> AnswerColumn:
    flags = ColumnFlag.BINARY
    if call.action is LockAction.RELEASE_ALL:
        flags |= ColumnFlag.NOT_NULL | ColumnFlag.UNSIGNED
    kind, length = ColumnType.LONGLONG, 21 if call.action is LockAction.RELEASE_ALL else 1
    if call.action is LockAction.IS_USED:
        flags, length = flags | ColumnFlag.UNSIGNED, 10
    if facts.is_mariadb:
        kind = ColumnType.LONG
    return AnswerColumn(call.label, kind, length, flags, 0, is_text=False)
