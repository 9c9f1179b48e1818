"""Who is at the other end of one connection: what it has said of itself, what it asked for, how far its stream has come."""

import asyncio
from typing import Final

from protocol.auth.authenticator import Channel
from protocol.commands import BinlogDump, RegisterSlave
from protocol.gtid.dump_request import BinlogDumpGtid
from protocol.resultset import Rows, result_payloads
from protocol.source_side.machine import SourceSide, State
from protocol.statements import EncodedRows, SourceFacts
from relay.archive.archive import Generations
from relay.downstream.request.replica_variables import variable
from relay.downstream.stream.acknowledgements import Acknowledgements
from relay.downstream.stream.admission import DumpRequest
from relay.downstream.stream.dump import Dump

# No database has a longer name.
_NAME_CHARACTERS: Final = 64
_UUID_CHARACTERS: Final = 36


class ConnectedClient:
    """What the console, the log, PURGE and the other connections see of one connection: a session, which keeps it true.

    Nothing here moves a byte. Times are the event loop's seconds.
    """

    def __init__(self, generations: Generations) -> None:
        self._generations = generations
        self._machine: SourceSide | None = None
        self.connection_id = 0
        self.address = ""
        self.host = ""
        """The peer's address without its port."""
        self.registered: RegisterSlave | None = None
        """What it said of itself as a replica."""
        self.request_number = 0
        """Of its newest dump request; later requests, of any connection, have greater ones."""
        self.asked_position: tuple[str, int] | None = None
        """Where its newest dump request was to begin."""
        self.dump: Dump | None = None
        self.acknowledgements: Acknowledgements | None = None
        """Of its dump, if the replica is a semi-sync one; its newest position and time are in there."""
        self.last_heard_at = self.dump_began_at = asyncio.get_running_loop().time()
        self._server_id = 0

    def registers(self, replica: RegisterSlave) -> None:
        """It says that it is a replica."""
        self._server_id = replica.server_id
        self.registered = replica

    def asks_for_dump(self, asked: BinlogDump | BinlogDumpGtid, number: int) -> DumpRequest:
        """It asks for a stream: the request, with what it has said before. number: of the request."""
        machine = self._machine
        assert machine is not None
        self._server_id = asked.server_id
        self.asked_position = (asked.file, asked.offset)
        self.request_number = number
        return DumpRequest(
            asked=asked,
            variables=machine.session.user_variables,
            facts=machine.session.facts,
            account=machine.account,
            registered=machine.replica.server_id if machine.replica is not None else None,
            uuid=self.replica_uuid,
            has_spoken=machine.has_spoken,
        )

    # --- who it is --------------------------------------------------------------------------------------------------

    @property
    def user(self) -> str:
        """The account's name; empty before the login."""
        return self._machine.account.user if self._machine and self._machine.account else ""

    @property
    def is_admin(self) -> bool:
        """Whether the account may change the relay by statements."""
        return self._machine is not None and self._machine.account is not None and self._machine.account.admin

    @property
    def database(self) -> str | None:
        """The one that the client has chosen; it means nothing here."""
        chosen = self._machine.session.database if self._machine is not None and self.user else None
        return chosen[:_NAME_CHARACTERS] if chosen else None

    @property
    def server_id(self) -> int:
        """Of the replica; 0 when it did not say."""
        return self._server_id

    @property
    def replica_uuid(self) -> str:
        """`@slave_uuid`, cut to the 36 characters a uuid has; empty for replicas without one."""
        if self._machine is None:
            return ""
        value = variable(self._machine.session.user_variables, "replica_uuid", "slave_uuid")
        return "".join(c for c in str(value or "") if c.isascii() and c.isprintable())[:_UUID_CHARACTERS]

    @property
    def channel(self) -> Channel:
        """What protects the connection."""
        return self._machine.channel if self._machine is not None else Channel()

    # --- how it reads answers ---------------------------------------------------------------------------------------

    @property
    def facts(self) -> SourceFacts:
        """The source as this client sees it; not before it was greeted."""
        assert self._machine is not None
        return self._machine.session.facts

    def encode(self, rows: Rows) -> EncodedRows:
        """Rows as this client reads them, while it waits for them. For a thread, where they are many."""
        assert self._machine is not None
        session = self._machine.session
        return EncodedRows(tuple(result_payloads(rows, session.encoding, session.status)))

    # --- its stream -------------------------------------------------------------------------------------------------

    @property
    def waits_for_position(self) -> bool:
        """Whether a dump was asked for and is not decided."""
        return self._machine is not None and self._machine.state is State.DUMP_REQUESTED

    @property
    def sent_position(self) -> tuple[str, int] | None:
        """Up to where its dump was given to the socket; None without a dump."""
        return (self.dump.position.file, self.dump.position.offset) if self.dump is not None else None

    @property
    def acknowledged_position(self) -> tuple[str, int] | None:
        """Up to where a semi-sync replica said that it has stored everything; None before it said so, and for others."""
        acked = self.acknowledgements.acked if self.acknowledgements is not None else None
        return (acked.file, acked.offset) if acked is not None else None

    @property
    def needed_generation(self) -> int | None:
        """Of the archive; None: any may be the one that `needed_file` is of."""
        if self.dump is None or (self.acknowledgements is not None and self.acknowledgements.open):
            return None
        generation = self._generations.of_archive(self.dump.archive)
        return generation.number if generation is not None else None

    @property
    def needed_file(self) -> str | None:
        """The oldest file that it reads, or has asked for and may speak of; empty: the oldest there is; None: none."""
        acknowledgements = self.acknowledgements
        if self.dump is not None and acknowledgements is not None and acknowledgements.open:
            if acknowledgements.acked is not None:
                return acknowledgements.acked.file
        elif self.dump is not None:
            return self.dump.position.file
        elif not self.waits_for_position:
            return None
        return self.asked_position[0] if self.asked_position is not None else None

    @property
    def is_at_end(self) -> bool:
        """Whether its dump has sent all there is."""
        archive = self._generations.archive
        return self.dump is not None and self.dump.archive is archive and self.dump.position == archive.end

    @property
    def sent_bytes(self) -> int:
        """Of the dump that runs; not yet in the traffic."""
        return self.dump.sent_bytes if self.dump is not None else 0
