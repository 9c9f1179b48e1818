"""One connection as the console shows it, at one moment."""

from dataclasses import dataclass, field
from typing import Final

from protocol.auth.authenticator import Channel
from protocol.charsets import TextEncoding
from protocol.commands import RegisterSlave
from protocol.packets import STATUS_AUTOCOMMIT
from protocol.resultset import Rows, result_payloads
from protocol.statements import EncodedRows, SourceFacts

# A client that was not greeted sends no queries.
_NOT_GREETED: Final = SourceFacts("mysql", "", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientStatus:
    """The identity of one client, what it requested and the position of its stream. Times are the event loop's seconds.

    address: host:port. user: the account's name, empty before the login. view: the view that it is served; None: the mirror.
    is_admin: the account may change the relay. database: the one that it has chosen, which means nothing here. channel: what protects
    the connection. facts: the source as this client sees it. encoding, server_status, reads_binary: how it reads answers.

    server_id: of a replica, 0 where it did not say. replica_uuid: empty for replicas without one. registered: its registration as a
    replica. requested_position: where its newest dump was to begin; the file is empty for the oldest one. waits_for_position: that is
    not decided yet.

    sent_position: up to where its dump was given to the socket; None without a dump. acknowledged_position: up to where a semi-sync
    replica said that it has stored everything; None before it said so, and for others. unacknowledged: events that it was asked to
    acknowledge and has not. generation: number of the one that its dump reads; None: it was removed. is_at_end: its dump has sent all
    there is. sent_bytes: of the dump that runs; not yet in the server's traffic.
    """

    connection_id: int
    address: str = ""
    user: str = ""
    view: str | None = None
    is_admin: bool = False
    database: str | None = None
    channel: Channel = field(default_factory=Channel)
    facts: SourceFacts = _NOT_GREETED
    encoding: TextEncoding = field(default_factory=TextEncoding)
    server_status: int = STATUS_AUTOCOMMIT
    reads_binary: bool = False
    server_id: int = 0
    replica_uuid: str = ""
    registered: RegisterSlave | None = None
    last_heard_at: float = 0.0
    dump_began_at: float = 0.0
    requested_position: tuple[str, int] | None = None
    waits_for_position: bool = False
    sent_position: tuple[str, int] | None = None
    acknowledged_position: tuple[str, int] | None = None
    unacknowledged: int = 0
    generation: int | None = None
    is_at_end: bool = False
    sent_bytes: int = 0

    @property
    def needed_file(self) -> str | None:
        """The oldest file that it reads, has requested or may ask for again; empty: the oldest archived one; None: none."""
        if self.sent_position is not None and self.unacknowledged:
            if self.acknowledged_position is not None:
                return self.acknowledged_position[0]
        elif self.sent_position is not None:
            return self.sent_position[0]
        elif not self.waits_for_position:
            return None
        return self.requested_position[0] if self.requested_position is not None else None

    @property
    def needed_generation(self) -> int | None:
        """The number of the archive's generation that `needed_file` belongs to; None: any."""
        return self.generation if self.sent_position is not None and not self.unacknowledged else None

    def encode(self, rows: Rows) -> EncodedRows:
        """Return rows encoded as this client reads them. For a thread if there are many."""
        payloads = result_payloads(rows, self.encoding, self.server_status, is_binary=self.reads_binary)
        return EncodedRows(tuple(payloads))
