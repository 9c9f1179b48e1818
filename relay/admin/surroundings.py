"""What the console sees of the rest of the relay. Clients and SourceControl have it."""

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
        """The Rpl_semi_sync_source_* variables without that prefix; empty where no acknowledgements are asked for."""

    @property
    def connected(self) -> int:
        """How many are connected."""

    def statuses(self) -> Sequence[ClientStatus]:
        """Who is connected now."""

    def forgive_logins(self) -> None:
        """Forgets failed logins: blocked addresses may try again."""


class Source(Protocol):
    """The upstream side."""

    @property
    def followed(self) -> ServerSource | DirectorySource:
        """The source that is followed now, or would be."""

    @property
    def running(self) -> bool:
        """Whether the source is followed, or tried again and again."""

    @property
    def received_heartbeats(self) -> int:
        """Since the relay's start."""

    def status(self) -> SourceStatus:
        """The upstream side as it is now."""

    async def start(self) -> bool:
        """False: it runs already. Raises: StatementRefused."""

    async def stop(self) -> bool:
        """False: it does not run. Raises: StatementRefused."""

    async def change(self, change: SourceChange) -> None:
        """Raises: StatementRefused."""

    async def accept_gap(
        self, to: Position | None, by: str, connected: Sequence[SentPlace] = ()
    ) -> tuple[AcceptedGap, bool]:
        """What is missing, and whether the archive goes on behind it by now. Raises: StatementRefused."""
