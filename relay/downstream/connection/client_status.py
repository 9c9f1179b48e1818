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
    """The identity of one client, its requests and the position of its stream. Times are the event loop's seconds."""

    connection_id: int
    address: str = ""
    """host:port."""
    user: str = ""
    """The account's name, empty before the login."""
    view: str | None = None
    """The view that it is served; None: the mirror."""
    is_admin: bool = False
    """True if the account may change the relay."""
    database: str | None = None
    """The database that it has chosen, which means nothing here."""
    channel: Channel = field(default_factory=Channel)
    """The channel that protects the connection."""
    facts: SourceFacts = _NOT_GREETED
    """The source as this client sees it."""
    encoding: TextEncoding = field(default_factory=TextEncoding)
    server_status: int = STATUS_AUTOCOMMIT
    reads_binary: bool = False
    """Like `encoding` and `server_status`, a property of the way in which it reads answers."""
    server_id: int = 0
    """The replica's server_id, 0 if it did not report one."""
    replica_uuid: str = ""
    """Empty for replicas without one."""
    registered: RegisterSlave | None = None
    """Its registration as a replica."""
    last_heard_at: float = 0.0
    dump_began_at: float = 0.0
    requested_position: tuple[str, int] | None = None
    """The start of its newest dump request; the file is empty for the oldest one."""
    waits_for_position: bool = False
    """True if that request is not decided yet."""
    sent_position: tuple[str, int] | None = None
    """The position up to which its dump was given to the socket; None without a dump."""
    acknowledged_position: tuple[str, int] | None = None
    """The position up to which a semi-sync replica says that it has stored everything; None before it said so, and for others."""
    unacknowledged: int = 0
    """The events that it was asked to acknowledge and has not."""
    generation: int | None = None
    """The number of the generation that its dump reads; None: it was removed."""
    is_at_end: bool = False
    """True if its dump has sent everything."""
    sent_bytes: int = 0
    """The bytes sent by its present dump, which are not yet in the server's traffic."""

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
