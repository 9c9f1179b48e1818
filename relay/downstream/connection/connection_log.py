"""The log lines about one connection."""

from typing import Final

import structlog

from protocol.commands import BinlogDump
from protocol.errors import AnsweredError, ErrorCode, PeerError, PositionRefused
from protocol.gtid.dump_request import BinlogDumpGtid
from protocol.position import Position
from protocol.printable import printable
from protocol.source_side.connection_events import Closed, Event, LoggedIn, LoginRefused, Registered, StatementFailed
from protocol.statements import Request
from relay.downstream.connection.client import Client
from relay.downstream.connection.line_bounds import BoundedLogger, LineBounds
from relay.downstream.request.refusal import shown_name
from relay.downstream.stream.acknowledgements import Acknowledgements
from relay.downstream.stream.dump import Dump

# The limit for texts that the client supplies.
_SHOWN_CHARACTERS: Final = 100


class ConnectionLog:
    """Writes the log lines of one connection, which is described by `client`, each with the fields that identify it.

    `bounds`: limits the lines of each account, and those of all sessions that have not logged in. Internal faults are always logged.
    """

    def __init__(self, client: Client, bounds: LineBounds) -> None:
        self._client = client
        self._log = BoundedLogger(structlog.get_logger("relay.downstream"), bounds, lambda: client.user)

    # --- coming and going -------------------------------------------------------------------------------------------

    def refused(self, error: AnsweredError) -> None:
        """Log that it receives `error` instead of a greeting."""
        self._log = self._log.bind(replica_address=self._client.address)
        if error.number == ErrorCode.ER_HOST_IS_BLOCKED:
            # A blocked address was logged when the block began; it may come a thousand times a second.
            self._log.debug("connection_refused", reason=error.what)
        else:
            self._log.warning("connection_refused", reason=error.what)

    def greeted(self) -> None:
        """Add the connection's number to all later lines."""
        self._log = self._log.bind(connection_id=self._client.connection_id, replica_address=self._client.address)

    def sent_away_before_login(self) -> None:
        """Log that it is closed because its address has most connections that have not logged in, and there are too many."""
        self._log.warning("stranger_sent_away", note="listen.max_unauthenticated")

    def evicted(self, newcomer: str) -> None:
        """Log that it had logged in and is closed because its account has most connections. newcomer: the user that gets its place."""
        self._log.warning("connection_evicted", user=self._client.user, newcomer=newcomer)

    def happened(self, event: Event) -> None:
        """Log an event of the protocol machine, if it is worth a line."""
        user = self._client.user
        if isinstance(event, LoggedIn):
            self._logged_in(event)
        elif isinstance(event, LoginRefused):
            self._log.warning("login_refused", user=event.user, reason=event.reason)
        elif isinstance(event, StatementFailed):
            self._log.info("statement_refused", user=user, statement=event.statement, number=int(event.number))
        elif isinstance(event, Registered):
            uuid = self._client.replica_uuid
            self._log.info("replica_registered", user=user, server_id=event.replica.server_id, uuid=uuid)
        elif isinstance(event, Closed) and isinstance(event.error, PeerError):
            self._broke_rules(event.error)

    def _logged_in(self, event: LoggedIn) -> None:
        said = {
            key.lstrip("_"): printable(event.attributes[key], _SHOWN_CHARACTERS)
            for key in ("program_name", "_client_version")
            if key in event.attributes
        }
        user, tls = event.account.user, event.channel.tls or None
        if event.account.view is not None:
            self._log = self._log.bind(view=event.account.view)
        self._log.info("replica_logged_in", user=user, plugin=event.plugin, tls=tls, **said)

    def _broke_rules(self, error: PeerError) -> None:
        if error.number == ErrorCode.ER_ACCESS_DENIED_ERROR:
            return  # logged as a refused login
        fields: dict[str, object] = {"number": int(error.number), "reason": error.what}
        if self._client.user:
            self._log.warning("connection_ended", user=self._client.user, **fields)
        else:
            self._log.warning("connection_ended", user="", **fields)

    def memory_exceeded(self, error: AnsweredError, held_bytes: int) -> None:
        """Log that it is ended for the memory that it makes the relay hold."""
        self._log.warning(
            "memory_budget_exceeded",
            user=self._client.user,
            held_bytes=held_bytes,
            why=error.what,
            advice="Look at what this client does: it may send requests it does not finish, or read no answers. If all of that is "
            "wanted, give memory.budget of relay.toml more, and MemoryMax with it (docs/RUNNING.md).",
        )

    def closed(self) -> None:
        """Log that it ended without a stream."""
        self._log.debug("connection_closed", user=self._client.user)

    def killed(self, connection_id: int, user: str) -> None:
        """Log that it has ended the connection with this number, of this user."""
        self._log.info(
            "connection_killed", killed_connection_id=connection_id, user=self._client.user, killed_user=user
        )

    def shares(self, event: str, others: list[Client], advice: str) -> None:
        """Log that its stream begins while others are connected that report the same identity."""
        self._log.warning(
            event,
            user=self._client.user,
            server_id=self._client.server_id,
            uuid=self._client.replica_uuid,
            other_address=others[0].address,
            other_user=others[0].user,
            other_uuid=others[0].replica_uuid,
            others=len(others),
            advice=advice,
        )

    # --- its streams ------------------------------------------------------------------------------------------------

    def dump_started(self, described: dict[str, object]) -> None:
        """Log that its stream starts. described: the fields of the line."""
        self._log.info("dump_started", **self._replica(), **described)

    def dump_refused(self, command: BinlogDump | BinlogDumpGtid, error: PositionRefused) -> None:
        """Log that its request is answered with `error`."""
        reason = error.what
        self._log.warning("dump_refused", number=int(error.number), reason=reason, **self._replica(), **_place(command))

    def dump_dropped(self, command: BinlogDump | BinlogDumpGtid, error: PositionRefused) -> None:
        """Log that its client library asked without the replica's set-up: the connection ends, and the replica reconnects."""
        reason = f"closed without a word, as nothing was said before the request; else it would be: {error.what}"
        self._log.info("dump_not_begun", **self._replica(), **_place(command), reason=reason)

    def dump_not_begun(self, requested: tuple[str, int], archive_end: Position | None) -> None:
        """Log that it disconnected while its request was being checked.

        Its slave_net_timeout may be shorter than the wait: it would reconnect for ever and never get the reason.
        """
        self._log.info(
            "dump_not_begun",
            **self._replica(),
            file=shown_name(requested[0]),
            offset=requested[1],
            archive_end=str(archive_end) if archive_end is not None else None,
            reason="the replica left while it was waited whether the position comes",
        )

    def dump_ended(self, dump: Dump, acknowledgements: Acknowledgements | None, reason: str) -> None:
        """Log that its stream ended, by its own action or an operator's."""
        self._log.info("dump_ended", **self._stream(dump, acknowledgements, reason))

    def dump_stopped(self, dump: Dump, acknowledgements: Acknowledgements | None, reason: str) -> None:
        """Log that its stream cannot continue."""
        self._log.warning("dump_stopped", **self._stream(dump, acknowledgements, reason))

    def _replica(self) -> dict[str, object]:
        client = self._client
        return {"user": client.user, "server_id": client.server_id, "uuid": client.replica_uuid}

    def _stream(self, dump: Dump, acknowledgements: Acknowledgements | None, reason: str) -> dict[str, object]:
        position = dump.position
        fields = {
            **self._replica(),
            "file": position.file,
            "offset": position.offset,
            "sent_bytes": dump.sent_bytes,
            "reason": reason,
        }
        if acknowledgements is None:
            return fields
        return fields | {"acknowledged": str(acknowledgements.acked), "unanswered": acknowledgements.open}

    # --- faults -----------------------------------------------------------------------------------------------------

    def tls_broken(self, reason: str) -> None:
        """Log that its TLS broke in the middle of a stream."""
        self._log.warning("tls_broken", user=self._client.user, reason=reason)

    def broken_off(self, fault: Exception) -> None:
        """Log that it is ended for an internal fault, which has been logged in full."""
        self._log.warning("connection_broken_off", user=self._client.user, why=type(fault).__name__)

    def login_check_failed(self) -> None:
        """Log an internal fault; for an exception handler."""
        self._log.exception("login_check_failed")

    def statement_failed(self, request: Request) -> None:
        """Log an internal fault; for an exception handler."""
        self._log.exception("statement_failed", user=self._client.user, request=repr(request))

    def dump_request_failed(self, command: BinlogDump | BinlogDumpGtid) -> None:
        """Log an internal fault; for an exception handler."""
        self._log.exception("dump_request_failed", **_place(command), **self._replica())


def _place(command: BinlogDump | BinlogDumpGtid) -> dict[str, object]:
    return {"file": shown_name(command.file), "offset": command.offset}
