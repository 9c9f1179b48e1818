"""The client at the other end of one connection: what it reported and what it requested."""

import asyncio
from typing import Any, Final

from protocol.commands import BinlogDump, RegisterSlave
from protocol.gtid.dump_request import BinlogDumpGtid
from protocol.source_side.connection_states import State
from protocol.source_side.machine import SourceSide
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.downstream.connection.client_status import ClientStatus
from relay.downstream.request.dump_request import DumpRequest
from relay.downstream.request.replica_variables import variable
from relay.downstream.stream.acknowledgements import Acknowledgements
from relay.downstream.stream.dump import Dump

# No database has a longer name.
_NAME_CHARACTERS: Final = 64
_UUID_CHARACTERS: Final = 36
# A connection attribute of MySQL's replicas.
_ROLE: Final = "_client_role"
_REPLICA_ROLE: Final = "binary_log_listener"


class Client:
    """One client, as its session, its log and the other connections need to know it. Times are the event loop's seconds."""

    def __init__(self) -> None:
        self.machine: SourceSide | None = None
        """The protocol machine that reads what the client sends; None: it was not greeted."""
        self.connection_id = 0
        self.address = ""
        self.host = ""
        """The peer's address without its port."""
        self.registered: RegisterSlave | None = None
        """The registration that it sent as a replica."""
        self.server_id = 0
        """The server_id of the replica; 0 when it did not say."""
        self.request_number = 0
        """The number of its newest dump request; later requests, of any connection, have greater ones."""
        self.requested_position: tuple[str, int] | None = None
        """The position at which its newest dump request asked to begin."""
        self.last_heard_at = self.dump_began_at = asyncio.get_running_loop().time()

    def registers(self, replica: RegisterSlave) -> None:
        """Note that it registers as a replica."""
        self.server_id = replica.server_id
        self.registered = replica

    def requests_dump(self, command: BinlogDump | BinlogDumpGtid, number: int) -> DumpRequest:
        """Return the request for a stream, with what the client has sent before. number: of the request."""
        machine = self.machine
        assert machine is not None
        self.server_id = command.server_id
        self.requested_position = (command.file, command.offset)
        self.request_number = number
        return DumpRequest(
            command=command,
            variables=machine.session.user_variables,
            facts=machine.session.facts,
            account=machine.account,
            registered=machine.replica.server_id if machine.replica is not None else None,
            uuid=self.replica_uuid,
            has_spoken=machine.has_spoken,
        )

    @property
    def user(self) -> str:
        """The account's name; empty before the login."""
        return self.machine.account.user if self.machine and self.machine.account else ""

    @property
    def view(self) -> str | None:
        """The view that the account is served; None: the mirror."""
        return self.machine.account.view if self.machine and self.machine.account else None

    @property
    def is_admin(self) -> bool:
        """True if the account may change the relay by statements."""
        return self.machine is not None and self.machine.account is not None and self.machine.account.admin

    @property
    def says_it_is_a_replica(self) -> bool:
        """True if the client says at its login that it is a replica. MariaDB's replicas do not."""
        return self.machine is not None and self.machine.session.attributes.get(_ROLE) == _REPLICA_ROLE

    @property
    def is_replica_before_source(self) -> bool:
        """True if the client says at its login that it is a replica, while nothing is known of the source.

        The answers to its next queries (server_id, GTID mode) decide whether it stops for good, so it is disconnected before, and it
        reconnects. MariaDB's replicas do not say it; they are disconnected when they ask for the server_id.
        """
        is_unreached = self.machine is not None and self.machine.session.facts.unreached is not None
        return is_unreached and self.says_it_is_a_replica

    @property
    def replica_uuid(self) -> str:
        """`@slave_uuid`, cut to the 36 characters of a uuid; empty for replicas without one."""
        if self.machine is None:
            return ""
        value = variable(self.machine.session.user_variables, "replica_uuid", "slave_uuid")
        # Cut first: a variable may be 16,384 characters, and every list of connections asks for this.
        return "".join(c for c in str(value or "")[:_UUID_CHARACTERS] if c.isascii() and c.isprintable())

    @property
    def waits_for_position(self) -> bool:
        """True if a dump was requested and is not decided yet."""
        return self.machine is not None and self.machine.state is State.DUMP_REQUESTED

    def status(self, archive: Archive, dump: Dump | None, acknowledgements: Acknowledgements | None) -> ClientStatus:
        """Return the current status. dump, acknowledgements: of the stream that it receives; they supply its newest position and
        time.
        """
        # Built once: a list of 500 connections is built on the event loop.
        facts: dict[str, Any] = {
            "connection_id": self.connection_id,
            "address": self.address,
            "user": self.user,
            "view": self.view,
            "is_admin": self.is_admin,
            "server_id": self.server_id,
            "replica_uuid": self.replica_uuid,
            "registered": self.registered,
            "last_heard_at": self.last_heard_at,
            "dump_began_at": self.dump_began_at,
            "requested_position": self.requested_position,
            "waits_for_position": self.waits_for_position,
        }
        if self.machine is not None:
            facts |= _of_session(self.machine, has_logged_in=bool(self.user))
        if dump is not None:
            facts |= _of_stream(archive, dump, acknowledgements)
        return ClientStatus(**facts)


def _of_session(machine: SourceSide, *, has_logged_in: bool) -> dict[str, Any]:
    session = machine.session
    chosen = session.database if has_logged_in else None
    return {
        "database": chosen[:_NAME_CHARACTERS] if chosen else None,
        "channel": machine.channel,
        "facts": session.facts,
        "encoding": session.encoding,
        "server_status": session.status,
        "reads_binary": session.reads_binary,
    }


def _of_stream(archive: Archive, dump: Dump, acknowledgements: Acknowledgements | None) -> dict[str, Any]:
    generation, newest, position = dump.generation, archive.current, dump.position
    acked = acknowledgements.acked if acknowledgements is not None else None
    return {
        "sent_position": (position.file, position.offset),
        "acknowledged_position": (acked.file, acked.offset) if acked is not None else None,
        "unacknowledged": acknowledgements.open if acknowledgements is not None else 0,
        "generation": generation.number if archive.holds(generation) else None,
        "is_at_end": _is_at_end(dump, newest),
        "sent_bytes": dump.sent_bytes,
    }


def _is_at_end(dump: Dump, newest: Generation) -> bool:
    """Return whether everything was sent; a Rotate that ends the newest file waits for the next one and is not counted."""
    end = newest.end
    return dump.generation is newest and end is not None and dump.position.file == end.file and dump.has_sent_all
