"""CALL binlog_relay.accept_gap(): the archive continues after a gap in the source's binlogs, by an operator's decision."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from protocol.position import Position
from protocol.resultset import AnswerColumn, Rows
from protocol.statements.requests import AcceptGap
from relay.archive.gaps.accepted_gap import AcceptedGap
from relay.archive.storage.replica_marks import ReplicaIdentity, SentPlace
from relay.downstream.connection.client_status import ClientStatus

_SHOWN_CHARACTERS: Final = 2000


class GapAcceptor(Protocol):
    """The upstream side."""

    async def accept_gap(
        self, to: Position | None, by: str, connected: Sequence[SentPlace] = ()
    ) -> tuple[AcceptedGap, bool]:
        """Accept the gap. Raises: StatementRefused."""


async def accept_gap(
    source: GapAcceptor, request: AcceptGap, connected: Iterable[ClientStatus], newest: int, *, by: str
) -> Rows:
    """Return what is missing, what the source has lost and who has it, a line each. newest: number of the generation that is written.

    Raises: StatementRefused.
    """
    to = Position(request.file, request.offset) if request.file else None
    gap, has_begun = await source.accept_gap(to, by, list(_sent(connected, newest)))
    state = "the archive goes on there" if has_begun else "decided; SHOW REPLICA STATUS tells why it has not begun yet"
    rows = [*gap_lines(gap), ("State", state)]
    return Rows((AnswerColumn.text("What", 24), AnswerColumn.text("Is", 4096)), tuple(rows))


def _sent(connected: Iterable[ClientStatus], newest: int) -> Iterator[SentPlace]:
    """Yield the replicas that are receiving the newest generation, each with its position."""
    for client in connected:
        if client.server_id and client.sent_position is not None and client.generation == newest:
            identity = ReplicaIdentity.of(client.server_id, client.replica_uuid, client.user)
            yield SentPlace(identity, Position(*client.sent_position))


def gap_lines(gap: AcceptedGap) -> list[tuple[str, str]]:
    """Return the name and the text of each fact."""
    return [
        ("Archive ends at", str(gap.after)),
        ("Goes on with", f"{gap.to} of {gap.source}"),
        ("Missing", gap.missing[:_SHOWN_CHARACTERS] or ("nothing" if gap.is_whole else "not known: no GTIDs tell")),
        ("Lost by the source", gap.what_is_lost or "nothing that is known"),
        ("Replicas that have it", ", ".join(gap.replicas) or "none that is known"),
        ("Accepted for", gap.stop),
    ]
