"""The answers to statements."""

from dataclasses import dataclass, field
from typing import Final

from protocol.framing import frame_payload, packet_count
from protocol.resultset import Rows
from protocol.statements.requests import Request
from protocol.statements.session.notice import Notice

FIRST_OF_ANSWER: Final = 1
"""The sequence number of an answer's first packet: the command's is 0."""


@dataclass(frozen=True, slots=True)
class Done:
    """A statement answered with OK. `notices` are the rows of SHOW WARNINGS afterwards."""

    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """A result set whose payloads are encoded: large ones are encoded in a thread (`result_payloads`), and framed there too.

    `framed` contains all of them as packets, the first with the number 1, with which answers to a command of one packet begin.
    """

    payloads: tuple[bytes, ...]
    framed: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        framed = bytearray()
        sequence = FIRST_OF_ANSWER
        for payload in self.payloads:
            framed += frame_payload(payload, sequence)
            sequence = (sequence + packet_count(len(payload))) & 0xFF
        object.__setattr__(self, "framed", bytes(framed))


@dataclass(frozen=True, slots=True)
class StatisticsText:
    """The answer to COM_STATISTICS: one line, as `mysqladmin status` prints it."""

    text: str


Answer = Done | Rows | Request
GivenAnswer = Done | Rows | EncodedRows | StatisticsText
