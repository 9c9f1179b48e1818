"""What monitors are told of [retention]: as it is described, with labels that are bounded and never come twice."""

import pytest

from relay.http.answers.metric_families import FAMILIES
from relay.http.answers.openapi import document
from relay.http.answers.retention_answers import Samples, retention, retention_samples
from relay.retention.decision import HeldBack, Hold, HolderKind, Limit
from relay.retention.retention_status import RetentionStatus
from tests.support.described_json import differences

NAMES = {one.name: one.labels for one in FAMILIES if one.part == "Retention"}
NOW = 1_700_000_000.5


def held_back(archive: str, limit: Limit, kind: HolderKind, size_bytes: int) -> HeldBack:
    return HeldBack(archive, limit, Hold(kind, "replica 101 needs it", (1, 7)), "mysql-bin.000007", 2, size_bytes, 0)


@pytest.fixture
def status() -> RetentionStatus:
    status = RetentionStatus(is_on=True, limits={"keep_for": "30d", "min_free": None}, last_pass=NOW)
    status.removed_files["", "keep_for"] += 3
    status.removed_bytes["", "keep_for"] += 300
    status.held_back = (
        held_back("", Limit.KEEP_FOR, HolderKind.REPLICA, 200),
        held_back("gtid", Limit.KEEP_BYTES, HolderKind.YOUNG, 50),
    )
    status.known_replicas, status.away_replicas, status.forgotten_replicas = 5, 3, 1
    return status


def samples(status: RetentionStatus, *views: str) -> dict[str, dict[tuple[str, ...], float]]:
    told: dict[str, Samples] = dict(retention_samples(status, views))
    assert all(len(dict(one)) == len(one) for one in told.values()), "labels come twice"
    return {name: dict(one) for name, one in told.items()}


def test_each_metric_of_the_page_is_told_with_its_labels(status: RetentionStatus) -> None:
    told = samples(status, "gtid")
    assert set(told) == set(NAMES)
    assert all(len(labels) == len(NAMES[name]) for name, one in told.items() for labels in one)


def test_what_was_removed_is_counted_from_zero_by_archive_and_limit(status: RetentionStatus) -> None:
    told = samples(status, "gtid")
    assert told["retention_removed_files_total"] == {
        ("mirror", "keep_for"): 3, ("mirror", "keep_bytes"): 0, ("mirror", "min_free"): 0,
        ("gtid", "keep_for"): 0, ("gtid", "keep_bytes"): 0, ("gtid", "min_free"): 0,
    }  # fmt: skip
    assert told["retention_removed_bytes_total"]["mirror", "keep_for"] == 300


def test_what_is_kept_for_somebody_is_told_with_its_reason(status: RetentionStatus) -> None:
    assert samples(status)["retention_held_back_bytes"] == {
        ("mirror", "keep_for", "replica"): 200,
        ("gtid", "keep_bytes", "keep_at_least"): 50,
    }


def test_replicas_are_counted_in_one_state_each(status: RetentionStatus) -> None:
    assert samples(status)["retention_replicas"] == {("connected",): 2, ("away",): 2, ("forgotten",): 1}


def test_a_view_that_is_called_mirror_makes_no_label_twice(status: RetentionStatus) -> None:
    status.removed_files["mirror", "keep_for"] += 1
    assert samples(status, "mirror")["retention_removed_files_total"]["mirror", "keep_for"] == 3


def test_a_pass_that_never_was_has_no_time() -> None:
    told = samples(RetentionStatus())
    assert told["retention_last_pass_timestamp_seconds"] == {}
    assert told["retention_held_back_bytes"] == {}
    assert told["retention_on"] == {(): 0}


@pytest.mark.parametrize("is_on", [False, True])
def test_the_answer_is_as_it_is_described(status: RetentionStatus, is_on: bool) -> None:
    described = document("v1")
    answer = retention(status if is_on else RetentionStatus())
    assert differences(answer, described["components"]["schemas"]["Retention"], described) == []
    assert answer["is_on"] is is_on


def test_the_answer_says_who_needs_which_file_and_what_to_do(status: RetentionStatus) -> None:
    first, second = retention(status)["held_back"]
    assert (first["archive"], first["file"], first["who"]) == (None, "mysql-bin.000007", "replica 101 needs it")
    assert "forget_replicas_after" in first["advice"]
    assert second["archive"] == "gtid"


def test_a_picture_stays_as_it_was(status: RetentionStatus) -> None:
    picture = status.picture()
    status.removed_files["", "keep_for"] += 1
    status.held_back = ()
    assert (picture.removed_files["", "keep_for"], len(picture.held_back)) == (3, 2)
