"""What the console sees of the rest of the relay. Session, DownstreamServer and SourceControl have it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from protocol.auth.authenticator import Channel
from protocol.commands import RegisterSlave
from protocol.resultset import Rows
from protocol.statements import EncodedRows, SourceFacts
from relay.downstream.connection.traffic import Traffic
from relay.upstream.control import SourceChange
from relay.upstream.source.source_status import SourceStatus


class Connection(Protocol):
    """A client's connection. Times are the event loop's seconds."""

    connection_id: int
    address: str
    """host:port"""
    registered: RegisterSlave | None
    last_heard_at: float
    dump_began_at: float

    @property
    def user(self) -> str:
        """The account's name; empty before the login."""

    @property
    def is_admin(self) -> bool:
        """Whether its account may change the relay."""

    @property
    def database(self) -> str | None:
        """The one that it has chosen."""

    @property
    def channel(self) -> Channel:
        """What protects the connection."""

    @property
    def facts(self) -> SourceFacts:
        """The source as this client sees it."""

    def encode(self, rows: Rows) -> EncodedRows:
        """Rows as this client reads them, while it waits for them. For a thread, where they are many."""

    @property
    def server_id(self) -> int:
        """Of the replica; 0 when it did not say."""

    @property
    def replica_uuid(self) -> str:
        """Empty for replicas without one."""

    @property
    def sent_position(self) -> tuple[str, int] | None:
        """Up to where its dump was given to the socket; None without a dump."""

    @property
    def acknowledged_position(self) -> tuple[str, int] | None:
        """Up to where a semi-sync replica said that it has stored everything; None before it said so, and for others."""

    @property
    def waits_for_position(self) -> bool:
        """Whether a dump was asked for and is not decided."""

    @property
    def asked_position(self) -> tuple[str, int] | None:
        """Where the newest dump was asked to begin; the file is empty for the oldest one."""

    @property
    def needed_file(self) -> str | None:
        """The oldest file that it reads, or has asked for and may speak of; empty: the oldest there is; None: none."""

    @property
    def needed_generation(self) -> int | None:
        """The number of the archive's generation that `needed_file` is of; None: it may be any."""

    @property
    def is_at_end(self) -> bool:
        """Whether its dump has sent all there is."""

    @property
    def sent_bytes(self) -> int:
        """Of the dump that runs; not yet in the server's traffic."""


class Connections(Protocol):
    """All clients."""

    traffic: Traffic

    @property
    def semi_sync_status(self) -> Mapping[str, int | str]:
        """The Rpl_semi_sync_source_* variables without that prefix; empty where no acknowledgements are asked for."""

    @property
    def sessions(self) -> Sequence[Connection]:
        """Who is connected now."""

    def forgive_logins(self) -> None:
        """Forgets failed logins: blocked addresses may try again."""


class Source(Protocol):
    """The upstream side."""

    @property
    def running(self) -> bool:
        """Whether the source is followed, or tried again and again."""

    @property
    def received_heartbeats(self) -> int:
        """Since the relay's start."""

    def status(self) -> SourceStatus:
        """The upstream side as it is now."""

    async def start(self) -> bool:
        """False: it runs already. Raises: SourceRefused."""

    async def stop(self) -> bool:
        """False: it does not run. Raises: SourceRefused."""

    async def change(self, change: SourceChange) -> None:
        """Raises: SourceRefused."""
