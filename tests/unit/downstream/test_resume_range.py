"""What is noted, before it is sent, of where a replica may go on."""

from pathlib import Path

import pytest

from relay.archive.storage.replica_marks import ReplicaIdentity, ReplicaMarks
from relay.downstream.stream.resume_range import ResumeRange

FILE = "mysql-bin.000001"
REPLICA = ReplicaIdentity.of(77, "11111111-2222-3333-4444-000000000077", "replica")
RUN = 256 << 10
MEBIBYTE = 1 << 20


class Replica:
    """Says how much it has not read, and counts how often it was asked."""

    def __init__(self, unread: int | None) -> None:
        self.unread = unread
        self.asked = 0

    def unread_bytes(self) -> int | None:
        self.asked += 1
        return self.unread


@pytest.fixture
def marks(tmp_path: Path) -> ReplicaMarks:
    return ReplicaMarks.open(tmp_path / "replicas.marks")


def stretch(marks: ReplicaMarks, replica: Replica) -> ResumeRange:
    return ResumeRange(marks.begin(REPLICA, FILE, 4), 4, replica.unread_bytes)


def send(resume: ResumeRange, runs: int, *, every_s: float = 0.0) -> int:
    """Sends so many runs of whole events, `every_s` apart; returns where the last of them ends."""
    at = 4
    for number in range(runs):
        resume.sending(FILE, at, at + RUN, event_ended=True, now=100.0 + number * every_s)
        at += RUN
    return at


def test_the_system_is_asked_once_a_mebibyte_of_a_replica_that_catches_up(marks: ReplicaMarks) -> None:
    replica = Replica(0)
    send(stretch(marks, replica), 64)
    assert replica.asked == 64 * RUN // MEBIBYTE


def test_the_system_is_asked_a_hundred_times_a_second_at_the_most_for_small_runs(marks: ReplicaMarks) -> None:
    replica = Replica(0)
    resume = stretch(marks, replica)
    for number in range(1000):
        resume.sending(FILE, 4 + number, 5 + number, event_ended=True, now=100.0 + number * 0.001)
    assert 95 <= replica.asked <= 101


@pytest.mark.parametrize("runs", range(40, 48))
def test_what_the_replica_cannot_have_read_may_be_asked_for_again(marks: ReplicaMarks, runs: int) -> None:
    """3 MiB when the system was asked, a mebibyte that it may not know of, and what was sent since."""
    end = send(stretch(marks, Replica(3 * MEBIBYTE)), runs)
    sent_since_asked = ((runs - 1) % 4 + 1) * RUN
    assert marks.may_resume(REPLICA, FILE, end - 4 * MEBIBYTE - sent_since_asked)


def test_what_a_reading_replica_was_sent_long_ago_may_not_be_asked_for_again(marks: ReplicaMarks) -> None:
    resume = stretch(marks, Replica(0))
    end = send(resume, 64)
    assert not marks.may_resume(REPLICA, FILE, end - 4 * MEBIBYTE)


def test_of_a_system_that_says_nothing_all_that_buffers_can_hold_counts_as_unread(marks: ReplicaMarks) -> None:
    resume = stretch(marks, Replica(None))
    end = send(resume, 64)
    assert marks.may_resume(REPLICA, FILE, end - 15 * MEBIBYTE)


def test_a_replica_that_has_stored_everything_may_go_on_at_the_end_alone(marks: ReplicaMarks) -> None:
    resume = stretch(marks, Replica(0))
    end = send(resume, 3)
    resume.arrived()
    assert marks.may_resume(REPLICA, FILE, end)
    assert not marks.may_resume(REPLICA, FILE, end - 19)
