"""What is believed of acknowledgements, and the counts that monitors see."""

import pytest

from protocol.errors import PeerError
from protocol.position import Position
from relay.downstream.stream.acknowledgements import Acknowledgements, AcknowledgementSums, semi_sync_status

FILE = "mysql-bin.000001"


def at(offset: int, file: str = FILE) -> Position:
    return Position(file, offset)


def made(sums: AcknowledgementSums | None = None) -> Acknowledgements:
    return Acknowledgements(sums or AcknowledgementSums(), lambda name: name in (FILE, "mysql-bin.000002"))


def test_the_newest_acknowledged_position_is_kept_with_its_time() -> None:
    acknowledgements = made()
    acknowledgements.ask(at(200), 1, 10.0)
    acknowledgements.ask(at(300), 1, 10.5)
    acknowledgements.take(at(200), 11.0)
    acknowledgements.take(at(300), 12.0)
    assert (acknowledgements.acked, acknowledgements.acked_at, acknowledgements.open) == (at(300), 12.0, 0)


def test_files_are_ordered_by_their_number() -> None:
    acknowledgements = made()
    acknowledgements.ask(at(5000), 1, 1.0)
    acknowledgements.ask(at(150, "mysql-bin.000002"), 1, 1.0)
    acknowledgements.take(at(5000), 1.0)
    acknowledgements.take(at(150, "mysql-bin.000002"), 1.0)
    assert acknowledgements.acked == at(150, "mysql-bin.000002")


@pytest.mark.parametrize(
    ("position", "words"),
    [
        (at(301), "no more than mysql-bin.000001:300"),
        (at(4, "mysql-bin.000002"), "no more than mysql-bin.000001:300"),
        (at(100, "other-bin.000001"), "has no such file"),
    ],
)
def test_a_lie_is_refused_by_name_and_changes_nothing(position: Position, words: str) -> None:
    sums = AcknowledgementSums()
    acknowledgements = made(sums)
    acknowledgements.ask(at(300), 1, 1.0)
    with pytest.raises(PeerError, match=words):
        acknowledgements.take(position, 2.0)
    assert (acknowledgements.acked, acknowledgements.open, sums.acknowledged) == (None, 1, 0)


def test_more_acknowledgements_than_were_asked_for_are_refused() -> None:
    acknowledgements = made()
    acknowledgements.ask(at(300), 2, 1.0)
    acknowledgements.take(at(200), 2.0)
    acknowledgements.take(at(300), 2.0)
    with pytest.raises(PeerError, match="nothing was asked for"):
        acknowledgements.take(at(300), 2.0)


def test_one_that_was_never_asked_may_not_answer() -> None:
    with pytest.raises(PeerError, match="nothing was asked for"):
        made().take(at(4), 1.0)


def test_the_counts_are_those_of_show_status() -> None:
    sums = AcknowledgementSums()
    acknowledgements = made(sums)
    acknowledgements.ask(at(200), 1, 1.0)
    acknowledgements.take(at(200), 1.5)
    acknowledgements.ask(at(400), 2, 2.0)
    acknowledgements.take(at(300), 3.0)
    acknowledgements.end()
    status = semi_sync_status(sums, clients=1)
    assert (status["status"], status["clients"], status["yes_tx"], status["no_tx"]) == ("ON", 1, 2, 1)
    assert (status["net_waits"], status["net_wait_time"], status["net_avg_wait_time"]) == (1, 500000, 500000)
    assert semi_sync_status(sums, clients=0)["status"] == "OFF"
