"""The console's interface to the rest of the relay. Clients and SourceControl implement it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from protocol.position import Position
from relay.archive.gaps.accepted_gap import AcceptedGap
from relay.archive.storage.replica_marks import SentPlace
from relay.config import DirectorySource, ServerSource
from relay.downstream.connection.client_status import ClientStatus
from relay.downstream.connection.traffic import Traffic
from relay.process.memory_budget import MemoryBudget
from relay.upstream.control import SourceChange
from relay.upstream.source.source_status import SourceStatus


class Connections(Protocol):
    """All clients."""

    traffic: Traffic
    memory: MemoryBudget

    @property
    def semi_sync_status(self) -> Mapping[str, int | str]:
        """The Rpl_semi_sync_source_* variables without that prefix; empty if no acknowledgements are requested."""

    @property
    def connected(self) -> int:
        """The number of connections."""

    def statuses(self) -> Sequence[ClientStatus]:
        """Return the present status of each connection."""

    def forgive_logins(self) -> None:
        """Forget failed logins: blocked addresses may try again."""


class Source(Protocol):
    """The upstream side."""

    @property
    def followed(self) -> ServerSource | DirectorySource:
        """The source that is followed now, or would be."""

    @property
    def running(self) -> bool:
        """True if the source is followed, or is being retried."""

    @property
    def received_heartbeats(self) -> int:
        """The heartbeats since the relay's start."""

    def status(self) -> SourceStatus:
        """Return the present status of the upstream side."""

    async def start(self) -> bool:
        """Start it. False: it runs already. Raises: StatementRefused."""

    async def stop(self) -> bool:
        """Stop it. False: it does not run. Raises: StatementRefused."""

    async def change(self, change: SourceChange) -> None:
        """Change it. Raises: StatementRefused."""

    async def accept_gap(
        self, to: Position | None, by: str, connected: Sequence[SentPlace] = ()
    ) -> tuple[AcceptedGap, bool]:
        """Return what is missing, and whether the archive has continued after it by now. Raises: StatementRefused."""
