"""The limits of an answer to our queries: the other side chooses its size, and we hold all of it."""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from aiomysql.connection import MySQLResult

from relay.upstream.source.source_errors import FailureKind, UpstreamError

_MOST_COLUMNS: Final = 128
"""SHOW REPLICA STATUS has about half as many, and no query has more."""
_PACKETS_A_TURN: Final = 32
"""Packets that have already arrived are read without a pause: after so many, others have their turn on the event loop."""
_ROW_BYTES: Final = 64
_VALUE_BYTES: Final = 64
"""The memory that a row and each of its values take beside their bytes."""


@dataclass(frozen=True, slots=True)
class AnswerBound:
    """The limits of an answer: `packet_bytes` for one packet, `answer_bytes` for all of them, with the memory of their rows."""

    packet_bytes: int = 1 << 20
    answer_bytes: int = 16 << 20


ORDINARY: Final = AnswerBound()
"""A status, a variable, a list of some thousand rows; a packet may have a set of 60,000 intervals of GTIDs."""
BINLOG_LIST: Final = AnswerBound(answer_bytes=64 << 20)
"""The limit for the list of the source's binlogs: 200,000 of them."""
TABLE_LIST: Final = AnswerBound(answer_bytes=192 << 20)
"""The limit for tables and columns of a schema, of which there may be 200,000. They are queried in a separate thread."""
ROWS: Final = AnswerBound(1 << 30, 1 << 62)
"""The limit for rows of tables, some held at a time: max_allowed_packet, which bounds a row, is 1 GiB at most."""
EVENT: Final = AnswerBound(64 << 20, 1 << 62)
"""The limit for events of an examined file: each is held, and then dropped."""


class AnswerMeter:
    """A count of what one connection reads, against what the open question allows."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._packets = 0
        self._bound = ORDINARY
        self._question = "the login"
        self._packet = 0
        self._answer = 0

    def asks(self, question: str, bound: AnswerBound) -> None:
        """Declare that the next packets answer this question."""
        self._question, self._bound = question, bound
        self._packet = self._answer = 0

    def new_packet(self) -> None:
        """Begin a packet; for connections that block."""
        self._packet = 0

    async def begins_packet(self) -> None:
        """Begin a packet on the event loop; this must be called before each one."""
        self.new_packet()
        self._packets += 1
        if self._packets % _PACKETS_A_TURN == 0:
            await asyncio.sleep(0)

    def takes(self, size: int) -> None:
        """Count `size` bytes before they are awaited. Raises: UpstreamError if they are too many."""
        self._packet += size
        if self._packet > self._bound.packet_bytes:
            raise self._too_long("in one packet", self._bound.packet_bytes)
        self.holds(size)

    def holds(self, size: int) -> None:
        """Count `size` bytes that are held of the answer. Raises: UpstreamError if they are too many."""
        self._answer += size
        if self._answer > self._bound.answer_bytes:
            raise self._too_long("in all", self._bound.answer_bytes)

    def _too_long(self, what: str, limit: int) -> UpstreamError:
        return UpstreamError(
            FailureKind.NETWORK,  # retried: a third party in between must not be able to end the relay
            f"the answer of {self._where} to {self._question} is longer than {limit >> 20} MiB {what}, the most that is read",
            "No source answers so. Check source.host and source.port, and what stands between the relay and the source.",
            name="answer_too_long",
        )


class BoundedResult(MySQLResult):  # type: ignore[misc]
    """An answer with no more columns than any query has; its rows are counted with the memory that they take."""

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
