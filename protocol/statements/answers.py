"""What a statement is answered with."""

from dataclasses import dataclass

from protocol.resultset import Rows
from protocol.statements.requests import Request
from protocol.statements.session.notice import Notice


@dataclass(frozen=True, slots=True)
class Done:
    """Answered with OK. `notices`: what SHOW WARNINGS tells afterwards."""

    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """A result set whose payloads are made: large ones are encoded in a thread (`result_payloads`)."""

    payloads: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class StatisticsText:
    """The answer to COM_STATISTICS: one line, as `mysqladmin status` prints it."""

    text: str


Answer = Done | Rows | Request
GivenAnswer = Done | Rows | EncodedRows | StatisticsText
