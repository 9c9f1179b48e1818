"""The connected clients and the counts of what they did."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Final

from protocol.auth.account import Account
from protocol.errors import AnsweredError, ErrorCode
from relay.downstream.connection.account_shares import AccountShares
from relay.downstream.connection.client_status import ClientStatus
from relay.downstream.connection.login_guard import LoginGuard
from relay.downstream.connection.replica_session import Session
from relay.downstream.connection.traffic import Traffic
from relay.downstream.connection.user_locks import UserLocks
from relay.downstream.listen_options import ListenOptions
from relay.downstream.stream.acknowledgements import AcknowledgementSums, semi_sync_status
from relay.fairness.address_group import address_group
from relay.fairness.fair_places import FairPlaces
from relay.process.background import guarded
from relay.process.freed_memory import FreedMemory
from relay.process.memory_budget import MemoryBudget

_REMEMBERED_ENDS: Final = 64


class Clients:
    """All sessions of one server. It is used on the event loop only."""

    def __init__(self, options: ListenOptions) -> None:
        self.max_connections = options.max_connections
        self.guard = LoginGuard(options.max_login_failures, options.login_block_s)
        self.traffic = Traffic()
        self.acknowledgement_sums = AcknowledgementSums()
        self.locks = UserLocks()
        self.memory = MemoryBudget(options.memory_bytes, _call_soon, FreedMemory().freed)
        """The memory that all of them make the relay hold."""
        self._asks_for_acks = options.presentation.semi_sync
        self._ids = itertools.count(1)
        self._sessions: dict[int, Session] = {}
        self._max_strangers = options.max_unauthenticated
        self._strangers = FairPlaces[Session]()
        """The sessions that have not logged in, by address, including refused ones that are still connected."""
        self._shares = AccountShares[Session](options.max_connections, options.admin_connections)
        # MariaDB's semi-sync replica closes its connection, then has it killed by another one, and complains if it is not
        # there: users of connections that ended, by id, a few.
        self._left: dict[int, str] = {}
        self._empty = asyncio.Event()

    # --- the connected sessions -------------------------------------------------------------------------------------

    @property
    def sessions(self) -> list[Session]:
        """The sessions that are connected now."""
        return list(self._sessions.values())

    def session(self, connection_id: int) -> Session | None:
        """Return the connection of that number, or None."""
        return self._sessions.get(connection_id)

    def has_just_left(self, connection_id: int, user: str) -> bool:
        """Return whether that connection, of a replica that had logged in as `user`, ended a short while ago."""
        return self._left.get(connection_id) == user

    async def until_empty(self, longest_s: float) -> None:
        """Wait until no session is connected. Raises: TimeoutError."""
        if self._sessions:
            self._empty.clear()
            await asyncio.wait_for(self._empty.wait(), longest_s)

    # --- coming and going -------------------------------------------------------------------------------------------

    def came(self) -> int:
        """Count a new connection and return its number."""
        self.traffic.connections += 1
        return next(self._ids)

    def refusal(self, host: str) -> AnsweredError | None:
        """Return the error that a connection from `host` is sent instead of a greeting; None: it is greeted."""
        return self.guard.refusal(host, asyncio.get_running_loop().time())

    def add(self, connection_id: int, session: Session) -> None:
        """Add a session that is greeted."""
        self._sessions[connection_id] = session
        self.traffic.most_connections = max(self.traffic.most_connections, len(self._sessions))
        self.add_stranger(session)

    def add_stranger(self, session: Session) -> None:
        """Give a new session, greeted or refused, a place until it has logged in or has ended.

        If there are too many, the address that has most loses its oldest session. A login takes a few round trips, so the oldest has
        had the time for it; whether it has sent something proves nothing, because a peer chooses that.
        """
        self._strangers.add(session, address_group(session.client.host))
        while len(self._strangers) > self._max_strangers:
            first = self._strangers.first_to_go()
            assert first is not None
            first.log.sent_away_before_login()
            self._end(first)

    def admit_login(self, session: Session, account: Account) -> AnsweredError | None:
        """Give a session whose password was right one of the places of those who have logged in. Return the error if there is none."""
        refused = self._shares.refusal(account)
        if refused is not None:
            return refused
        address = address_group(session.client.host)
        if self._shares.is_full(account):
            candidates = self._shares.candidates(account, address)
            if not candidates:
                return AnsweredError(ErrorCode.ER_CON_COUNT_ERROR, "Too many connections")
            # A session that receives a stream would have to restart it.
            evicted = next((one for one in candidates if one.dump is None), candidates[0])
            evicted.log.evicted(newcomer=account.user)
            self._end(evicted)
        self._strangers.discard(session)
        self._shares.add(session, account, address)
        return None

    def _end(self, session: Session) -> None:
        """End the session now and give its place to others at once."""
        self._strangers.discard(session)
        self._shares.discard(session)
        session.abort()

    def gone(self, session: Session) -> None:
        """Forget a session whose connection ended."""
        client = session.client
        self.locks.release_all(client.connection_id)
        if self._sessions.pop(client.connection_id, None) is not None and client.server_id:
            self._left[client.connection_id] = client.user
            if len(self._left) > _REMEMBERED_ENDS:
                del self._left[next(iter(self._left))]
        self._strangers.discard(session)
        self._shares.discard(session)
        if not self._sessions:
            self._empty.set()

    # --- for the console --------------------------------------------------------------------------------------------

    @property
    def connected(self) -> int:
        """The number of connected sessions."""
        return len(self._sessions)

    def statuses(self) -> list[ClientStatus]:
        """Return the status of each connected session."""
        return [session.status() for session in self._sessions.values()]

    def unread_bytes(self, connection_id: int) -> int | None:
        """Return the bytes written to this connection that the client has not read, as far as the system knows; None: unknown."""
        session = self._sessions.get(connection_id)
        return session.unread_bytes() if session is not None else None

    @property
    def semi_sync_status(self) -> dict[str, int | str]:
        """The semi-sync part of SHOW STATUS, each name without its prefix; empty if no acknowledgements are requested."""
        if not self._asks_for_acks:
            return {}
        clients = sum(session.acknowledgements is not None for session in self._sessions.values())
        return semi_sync_status(self.acknowledgement_sums, clients=clients)

    def forgive_logins(self) -> None:
        """Forget failed logins: blocked addresses may try again."""
        self.guard.forget()


def _call_soon(look: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_soon(guarded(look, "looking for who holds most memory", lambda _fault: None))
