"""Who is connected, and the counts of what they did."""

import asyncio
import itertools
from typing import Final

from protocol.errors import AnsweredError, ErrorCode
from relay.downstream.connection.client_status import ClientStatus
from relay.downstream.connection.login_guard import LoginGuard
from relay.downstream.connection.replica_session import Session
from relay.downstream.connection.strangers import Strangers
from relay.downstream.connection.traffic import Traffic
from relay.downstream.connection.user_locks import UserLocks
from relay.downstream.listen_options import ListenOptions
from relay.downstream.stream.acknowledgements import AcknowledgementSums, semi_sync_status

_REMEMBERED_ENDS: Final = 64


class Clients:
    """All sessions of one server. On the event loop only."""

    def __init__(self, options: ListenOptions) -> None:
        self.max_connections = options.max_connections
        self.guard = LoginGuard(options.max_login_failures, options.login_block_s)
        self.traffic = Traffic()
        self.acknowledgement_sums = AcknowledgementSums()
        self.locks = UserLocks()
        self._asks_for_acks = options.presentation.semi_sync
        self._ids = itertools.count(1)
        self._sessions: dict[int, Session] = {}
        self._strangers = Strangers[Session](max(1, self.max_connections // 2))
        # MariaDB's semi-sync replica closes its connection, then has it killed by another one, and complains if it is not
        # there: users of connections that ended, by id, a few.
        self._left: dict[int, str] = {}
        self._empty = asyncio.Event()

    # --- who is there -----------------------------------------------------------------------------------------------

    @property
    def sessions(self) -> list[Session]:
        """Who is connected now."""
        return list(self._sessions.values())

    def session(self, connection_id: int) -> Session | None:
        """The connection of that number; None: there is none."""
        return self._sessions.get(connection_id)

    def has_just_left(self, connection_id: int, user: str) -> bool:
        """Whether that connection, of a replica that had logged in as `user`, ended a while ago."""
        return self._left.get(connection_id) == user

    async def until_empty(self, longest_s: float) -> None:
        """Waits until nobody is connected. Raises: TimeoutError."""
        if self._sessions:
            self._empty.clear()
            await asyncio.wait_for(self._empty.wait(), longest_s)

    # --- coming and going -------------------------------------------------------------------------------------------

    def came(self) -> int:
        """A connection came: its number."""
        self.traffic.connections += 1
        return next(self._ids)

    def refusal(self, host: str) -> AnsweredError | None:
        """What a connection from `host` is sent instead of a greeting; None: there is room for it now."""
        blocked = self.guard.refusal(host, asyncio.get_running_loop().time())
        if blocked is not None:
            return blocked
        if self._strangers.is_full:
            self._send_a_stranger_away("the share of those who have not logged in")
        elif len(self._sessions) >= self.max_connections and not self._send_a_stranger_away("listen.max_connections"):
            return AnsweredError(ErrorCode.ER_CON_COUNT_ERROR, "Too many connections")
        return None

    def add(self, connection_id: int, session: Session) -> None:
        """It is greeted."""
        self._sessions[connection_id] = session
        self._strangers.add(connection_id, session)
        self.traffic.most_connections = max(self.traffic.most_connections, len(self._sessions))

    def spoke(self, session: Session) -> None:
        """Its first bytes came."""
        self._strangers.spoke(session.client.connection_id)

    def logged_in(self, session: Session) -> None:
        """It is no stranger any more."""
        self._strangers.discard(session.client.connection_id)

    def gone(self, session: Session) -> None:
        """The connection ended."""
        client = session.client
        self.locks.release_all(client.connection_id)
        if self._sessions.pop(client.connection_id, None) is not None and client.server_id:
            self._left[client.connection_id] = client.user
            if len(self._left) > _REMEMBERED_ENDS:
                del self._left[next(iter(self._left))]
        self._strangers.discard(client.connection_id)
        if not self._sessions:
            self._empty.set()

    def _send_a_stranger_away(self, note: str) -> bool:
        """Makes room: ends the connection that has been silent longest without a login, so that strangers cannot lock replicas
        out. note: of what there are too many."""
        found = self._strangers.pop_idlest()
        if found is None:
            return False
        connection_id, stranger = found
        stranger.log.stranger("stranger_sent_away", note=note)
        del self._sessions[connection_id]
        stranger.abort()
        return True

    # --- what the console shows and does ----------------------------------------------------------------------------

    @property
    def connected(self) -> int:
        """How many are connected."""
        return len(self._sessions)

    def statuses(self) -> list[ClientStatus]:
        """Who is connected now."""
        return [session.status() for session in self._sessions.values()]

    def unread_bytes(self, connection_id: int) -> int | None:
        """Of all that was written to it, what the client has not read, as far as the system can tell; None: it cannot."""
        session = self._sessions.get(connection_id)
        return session.unread_bytes() if session is not None else None

    @property
    def semi_sync_status(self) -> dict[str, int | str]:
        """The semi-sync part of SHOW STATUS, each name without its prefix; empty where no acknowledgements are asked for."""
        if not self._asks_for_acks:
            return {}
        clients = sum(session.acknowledgements is not None for session in self._sessions.values())
        return semi_sync_status(self.acknowledgement_sums, clients=clients)

    def forgive_logins(self) -> None:
        """Forgets failed logins: blocked addresses may try again."""
        self.guard.forget()
