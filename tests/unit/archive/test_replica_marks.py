"""Which replica may resume inside a transaction, and that nothing torn is ever believed."""

import errno
import os
import random
from pathlib import Path
from typing import Any

import pytest
import structlog.testing

from protocol.position import Position
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.replica_marks import (
    ARRIVED_AFTER_BYTES,
    SLOT_SIZE,
    ReplicaIdentity,
    ReplicaMarks,
    SentPlace,
)

ONE = ReplicaIdentity.of(7, "3e11fa47-71ca-11e1-9e33-c80aa9429562", "replica")
OTHER = ReplicaIdentity.of(7, "", "replica")
OF_ANOTHER_ACCOUNT = ReplicaIdentity.of(7, "3e11fa47-71ca-11e1-9e33-c80aa9429562", "other")
FIRST = "mysql-bin.000001"
SECOND = "mysql-bin.000002"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "replicas.marks"


def test_a_replica_may_resume_in_the_stretch_that_was_sent_to_it(path: Path) -> None:
    marks = ReplicaMarks.open(path)
    marks.begin(ONE, FIRST, 100).sending(FIRST, 100, 500)
    assert [marks.may_resume(ONE, FIRST, at) for at in (99, 100, 300, 500, 501)] == [False, True, True, True, False]
    marks.close()


def test_marks_survive_a_reopen(path: Path) -> None:
    marks = ReplicaMarks.open(path)
    marks.begin(ONE, FIRST, 100).sending(FIRST, 100, 500)
    marks.close()
    assert ReplicaMarks.open(path).may_resume(ONE, FIRST, 300)


def test_marks_survive_a_process_that_never_closed_them(path: Path) -> None:
    ReplicaMarks.open(path).begin(ONE, FIRST, 100).sending(FIRST, 100, 500)
    assert ReplicaMarks.open(path).may_resume(ONE, FIRST, 300)


@pytest.mark.parametrize(
    ("identity", "file"),
    [
        (OTHER, FIRST),
        (OF_ANOTHER_ACCOUNT, FIRST),
        (ReplicaIdentity.of(8, ONE.server_uuid, "replica"), FIRST),
        (ONE, SECOND),
        (ONE, "x"),
    ],
)
def test_another_replica_or_file_may_not(path: Path, identity: ReplicaIdentity, file: str) -> None:
    marks = ReplicaMarks.open(path)
    marks.begin(ONE, FIRST, 100).sending(FIRST, 100, 500)
    assert not marks.may_resume(identity, file, 300)


def test_who_was_sent_a_file_last_is_told_with_the_place(path: Path) -> None:
    marks = ReplicaMarks.open(path)
    marks.begin(ONE, FIRST, 100).sending(FIRST, 100, 500)
    marks.begin(OTHER, SECOND, 4).sending(SECOND, 4, 90)
    assert marks.sent_in([SECOND]) == [SentPlace(OTHER, Position(SECOND, 90))]
    assert {(sent.identity, sent.place.offset) for sent in marks.sent_in([FIRST, SECOND])} == {(ONE, 500), (OTHER, 90)}
    assert (marks.knows(ONE), marks.knows(ReplicaIdentity.of(9, "", "replica"))) == (True, False)
    marks.close()


def test_the_file_before_the_current_one_is_remembered(path: Path) -> None:
    marks = ReplicaMarks.open(path)
    mark = marks.begin(ONE, FIRST, 100)
    mark.sending(FIRST, 100, 500)
    mark.sending(SECOND, 4, 90)
    assert [marks.may_resume(ONE, FIRST, 300), marks.may_resume(ONE, SECOND, 50)] == [True, True]


def test_all_files_on_their_way_are_remembered(path: Path) -> None:
    marks = ReplicaMarks.open(path)
    mark = marks.begin(ONE, FIRST, 100)
    mark.sending(FIRST, 100, 500)
    for number in range(2, 6):
        mark.sending(f"mysql-bin.00000{number}", 4, 4)
        mark.sending(f"mysql-bin.00000{number}", 4, 90)
    asked = [(FIRST, 99), (FIRST, 300), (SECOND, 50), ("mysql-bin.000004", 50), ("mysql-bin.000005", 90)]
    assert [marks.may_resume(ONE, *place) for place in asked] == [False, True, True, True, True]
    assert not marks.may_resume(ONE, "mysql-bin.000005", 91)
    assert not marks.may_resume(ONE, "mysql-bin.000006", 4)


def test_a_file_after_which_much_was_sent_is_forgotten(path: Path) -> None:
    marks = ReplicaMarks.open(path)
    mark = marks.begin(ONE, FIRST, 100)
    mark.sending(FIRST, 100, 500)
    mark.sending(SECOND, 4, ARRIVED_AFTER_BYTES)
    assert marks.may_resume(ONE, FIRST, 300)
    mark.sending(SECOND, 4, ARRIVED_AFTER_BYTES + 5)
    assert [marks.may_resume(ONE, FIRST, 300), marks.may_resume(ONE, SECOND, 50)] == [False, True]


def test_what_has_arrived_is_no_place_to_resume(path: Path) -> None:
    marks = ReplicaMarks.open(path)
    mark = marks.begin(ONE, FIRST, 100)
    mark.sending(FIRST, 100, 500)
    mark.sending(SECOND, 4, 90)
    mark.arrived()
    places = [(FIRST, 300), (SECOND, 50), (SECOND, 90)]
    assert [marks.may_resume(ONE, *place) for place in places] == [False, False, True]


def test_a_new_session_forgets_what_the_last_one_sent(path: Path) -> None:
    marks = ReplicaMarks.open(path)
    marks.begin(ONE, FIRST, 100).sending(FIRST, 100, 500)
    marks.begin(ONE, FIRST, 400)
    assert [marks.may_resume(ONE, FIRST, at) for at in (300, 400)] == [False, True]


def test_offsets_of_64_bits_are_kept(path: Path) -> None:
    marks = ReplicaMarks.open(path)
    marks.begin(ONE, FIRST, 2**32).sending(FIRST, 2**32, 2**40)
    assert [marks.may_resume(ONE, FIRST, at) for at in (2**32 - 1, 2**32, 2**40)] == [False, True, True]


def test_every_torn_state_gives_the_old_or_the_new_window(path: Path) -> None:
    marks = ReplicaMarks.open(path, first_slots=4)
    mark = marks.begin(ONE, FIRST, 100)
    mark.sending(FIRST, 100, 500)
    before = path.read_bytes()
    mark.sending(FIRST, 100, 900)
    after = path.read_bytes()
    marks.close()
    for cut in range(len(after) + 1):
        path.write_bytes(after[:cut] + before[cut:])
        torn = ReplicaMarks.open(path, first_slots=4)
        answers = [torn.may_resume(ONE, FIRST, at) for at in (99, 400, 901)]
        torn.close()
        assert answers == [False, True, False], f"torn at byte {cut}"


def test_random_bytes_are_never_believed(path: Path) -> None:
    path.write_bytes(random.Random(5).randbytes(64 * SLOT_SIZE))
    marks = ReplicaMarks.open(path, first_slots=64)
    assert not marks.may_resume(ONE, FIRST, 300)


def test_a_slot_taken_over_by_another_replica_says_nothing_for_the_first(path: Path) -> None:
    marks = ReplicaMarks.open(path, first_slots=1, most_slots=1)
    mark = marks.begin(ONE, FIRST, 100)
    mark.sending(FIRST, 100, 500)
    mark.end()
    marks.begin(OTHER, FIRST, 4)
    assert [marks.may_resume(ONE, FIRST, 300), marks.may_resume(OTHER, FIRST, 300)] == [False, False]


def test_the_file_grows_to_its_limit_and_keeps_every_mark(path: Path) -> None:
    marks = ReplicaMarks.open(path, first_slots=2, most_slots=8)
    for number in range(8):
        marks.begin(ReplicaIdentity.of(number, "", "replica"), FIRST, 100 + number)
    assert all(marks.may_resume(ReplicaIdentity.of(n, "", "replica"), FIRST, 100 + n) for n in range(8))


def test_when_all_slots_are_connected_the_next_replica_is_refused(path: Path) -> None:
    marks = ReplicaMarks.open(path, first_slots=1, most_slots=1)
    marks.begin(ONE, FIRST, 100)
    with pytest.raises(ArchiveError, match="slots"):
        marks.begin(OTHER, FIRST, 100)


def test_the_least_recently_used_replica_gives_up_its_slot(path: Path) -> None:
    marks = ReplicaMarks.open(path, first_slots=2, most_slots=2)
    for identity in (ONE, OTHER, ONE):
        marks.begin(identity, FIRST, 100).end()
    marks.begin(ReplicaIdentity.of(9, "", "replica"), FIRST, 100)
    assert [marks.may_resume(ONE, FIRST, 100), marks.may_resume(OTHER, FIRST, 100)] == [True, False]


def test_an_account_that_makes_up_server_ids_takes_its_own_slots_and_no_other(path: Path) -> None:
    marks = ReplicaMarks.open(path, first_slots=4, most_slots=4)
    marks.begin(OF_ANOTHER_ACCOUNT, FIRST, 100).end()
    for number in range(20):
        marks.begin(ReplicaIdentity.of(100 + number, "", "replica"), FIRST, 100).end()
    assert marks.may_resume(OF_ANOTHER_ACCOUNT, FIRST, 100)
    marks.close()
    assert ReplicaMarks.open(path, first_slots=4, most_slots=4).may_resume(OF_ANOTHER_ACCOUNT, FIRST, 100)


def test_what_another_account_is_sent_under_the_same_names_replaces_no_mark(path: Path) -> None:
    marks = ReplicaMarks.open(path)
    marks.begin(ONE, FIRST, 100).sending(FIRST, 100, 500)
    marks.begin(OF_ANOTHER_ACCOUNT, FIRST, 4)
    assert marks.may_resume(ONE, FIRST, 300)


def told(capture: list[Any]) -> list[str]:
    return [line["event"] for line in capture if line["event"].startswith("replica_marks")]


@pytest.mark.parametrize("size", [0, 100, SLOT_SIZE])
def test_a_file_that_somebody_cuts_does_not_end_the_process(path: Path, size: int) -> None:
    marks = ReplicaMarks.open(path)
    mark = marks.begin(ONE, FIRST, 100)
    os.truncate(path, size)
    mark.sending(FIRST, 100, 500)
    marks.begin(OTHER, FIRST, 4)
    assert marks.may_resume(ONE, FIRST, 300)
    marks.close()


def test_a_disk_that_fails_is_told_once_and_everything_is_written_when_it_does_not(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = ReplicaMarks.open(path)
    written = os.pwrite

    def fails(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with structlog.testing.capture_logs() as lines:
        monkeypatch.setattr(os, "pwrite", fails)
        mark = marks.begin(ONE, FIRST, 100)
        for high in (200, 300, 400):
            mark.sending(FIRST, 100, high)
        assert marks.may_resume(ONE, FIRST, 300)
        assert not ReplicaMarks.open(path).knows(ONE)
        monkeypatch.setattr(os, "pwrite", written)
        marks.begin(OTHER, FIRST, 4)
    assert told(lines) == ["replica_marks_not_kept", "replica_marks_kept"]
    assert ReplicaMarks.open(path).may_resume(ONE, FIRST, 300)
