"""The memory that one connection makes the relay hold, as the budget counts it."""

import asyncio
from collections.abc import Callable

from protocol.commands import BinlogDump
from protocol.errors import ErrorCode, PeerError
from protocol.gtid.codec import decoded_bytes
from protocol.gtid.dump_request import BinlogDumpGtid
from relay.downstream.connection.client import Client
from relay.fairness.address_group import address_group
from relay.process.memory_budget import MemoryBudget

_STRANGER = ""
"""The account under which the budget counts clients that have not logged in."""


class ConnectionMemory:
    """Counts from the greeting to `close`. transport: of its socket. let_go: ends the connection when others need its memory."""

    def __init__(
        self, budget: MemoryBudget, client: Client, transport: asyncio.Transport, let_go: Callable[[], None]
    ) -> None:
        self._client = client
        self._transport = transport
        self._request_bytes = 0
        """The size of the GTID set of its dump request, which the stream keeps."""
        self._budget = budget
        self._holder = budget.open((_STRANGER, address_group(client.host)), self._measure, let_go)

    @property
    def held_bytes(self) -> int:
        """The bytes that were counted last."""
        return self._holder.held_bytes

    @property
    def is_tight(self) -> bool:
        """True if no more than needed should be read at once."""
        return self._budget.is_tight

    def logged_in(self) -> None:
        """Count it for its account from now on."""
        self._holder.owner = (self._client.user, address_group(self._client.host))

    def requested(self, command: BinlogDump | BinlogDumpGtid) -> None:
        """Count the memory of its request for a stream."""
        self._request_bytes = decoded_bytes(command.held) if isinstance(command, BinlogDumpGtid) else 0

    def dump_ended(self) -> None:
        """Forget the memory of the stream, which has ended."""
        self._request_bytes = 0

    def changed(self) -> None:
        """Count it again: it may hold more or less."""
        self._holder.holds(self._measure())

    def close(self) -> None:
        """Stop counting: the connection has ended."""
        self._holder.close()

    def refusal(self) -> PeerError:
        """Return the error for a client whose connection ends for the memory that it holds.

        A replica that gets 1041 stops until an operator acts; one that gets 1105 reconnects. Source: MySQL 9.7 `rpl_replica.cc
        (handle_slave_io)`.
        """
        facts, machine = self._budget.facts(), self._client.machine
        text = (
            f"Out of memory: clients make binlog-relay hold {facts.used_bytes >> 20} MiB, of memory.budget = "
            f"{facts.limit_bytes >> 20} MiB, and this connection {self.held_bytes >> 10} KiB of it, most of its account's"
        )
        is_replica = machine is not None and machine.is_receiving_dump_request
        number = ErrorCode.ER_UNKNOWN_ERROR if is_replica else ErrorCode.ER_OUT_OF_RESOURCES
        return PeerError(number, text)

    def _measure(self) -> int:
        machine = self._client.machine
        held = machine.held_bytes if machine is not None else 0
        return held + self._request_bytes + self._transport.get_write_buffer_size()
