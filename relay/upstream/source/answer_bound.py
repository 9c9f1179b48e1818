"""How much of an answer to a question of ours is taken from a source: whoever answers chooses its size, and we hold all of it."""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from aiomysql.connection import MySQLResult

from relay.upstream.source.source_errors import FailureKind, UpstreamError

_MOST_COLUMNS: Final = 128
"""SHOW REPLICA STATUS has about half as many, and no question has more."""
_PACKETS_A_TURN: Final = 32
"""Packets that are there already are read without a pause: after so many, others have their turn on the event loop."""
_ROW_BYTES: Final = 64
_VALUE_BYTES: Final = 64
"""What a row and each of its values take in memory beside their bytes."""


@dataclass(frozen=True, slots=True)
class AnswerBound:
    """packet_bytes: of one packet. answer_bytes: of all of them, with what their rows take in memory."""

    packet_bytes: int = 1 << 20
    answer_bytes: int = 16 << 20


ORDINARY: Final = AnswerBound()
"""A status, a variable, a list of some thousand rows; a packet may have a set of 60,000 intervals of GTIDs."""
BINLOG_LIST: Final = AnswerBound(answer_bytes=64 << 20)
"""The source's binlogs: 200,000 of them."""
TABLE_LIST: Final = AnswerBound(answer_bytes=192 << 20)
"""Tables and columns of a schema, of which there may be 200,000. Asked in a thread of their own."""
ROWS: Final = AnswerBound(1 << 30, 1 << 62)
"""Rows of tables, some held at a time: max_allowed_packet, which bounds a row, is 1 GiB at most."""
EVENT: Final = AnswerBound(64 << 20, 1 << 62)
"""Events of a file that is looked at: each is held, and then forgotten."""


class AnswerMeter:
    """Counts what one connection reads, against what the question that is open allows."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._packets = 0
        self._bound = ORDINARY
        self._question = "the login"
        self._packet = 0
        self._answer = 0

    def asks(self, question: str, bound: AnswerBound) -> None:
        """The next packets answer this question."""
        self._question, self._bound = question, bound
        self._packet = self._answer = 0

    def new_packet(self) -> None:
        """To be called before each packet, where nobody else waits."""
        self._packet = 0

    async def begins_packet(self) -> None:
        """To be called before each packet on the event loop."""
        self.new_packet()
        self._packets += 1
        if self._packets % _PACKETS_A_TURN == 0:
            await asyncio.sleep(0)

    def takes(self, size: int) -> None:
        """To be called before `size` bytes are waited for. Raises: UpstreamError, where they are too many."""
        self._packet += size
        if self._packet > self._bound.packet_bytes:
            raise self._too_long("in one packet", self._bound.packet_bytes)
        self.holds(size)

    def holds(self, size: int) -> None:
        """So much of the answer is held. Raises: UpstreamError, where it is too much."""
        self._answer += size
        if self._answer > self._bound.answer_bytes:
            raise self._too_long("in all", self._bound.answer_bytes)

    def _too_long(self, what: str, limit: int) -> UpstreamError:
        return UpstreamError(
            FailureKind.NETWORK,  # tried again: somebody in between must not be able to end the relay
            f"the answer of {self._where} to {self._question} is longer than {limit >> 20} MiB {what}, the most that is read",
            "No source answers so. Check source.host and source.port, and what stands between the relay and the source.",
            name="answer_too_long",
        )


class BoundedResult(MySQLResult):  # type: ignore[misc]
    """An answer with columns that are not more than any question has; its rows are counted with what they take in memory."""

    def __init__(self, connection: Any, meter: AnswerMeter) -> None:
        super().__init__(connection)
        self._meter = meter

    async def _get_descriptions(self) -> None:
        if not 0 < self.field_count <= _MOST_COLUMNS:
            raise ValueError(f"{self.field_count} columns")
        await super()._get_descriptions()

    def _read_row_from_packet(self, packet: Any) -> tuple[Any, ...]:
        row: tuple[Any, ...] = super()._read_row_from_packet(packet)
        self._meter.holds(_ROW_BYTES + _VALUE_BYTES * len(row))
        return row
