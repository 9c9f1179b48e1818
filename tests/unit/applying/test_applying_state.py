"""The sentence about how far a replica has applied."""

from dataclasses import replace

import pytest

from relay.applying.applying_state import AppliedDistance, ApplyingState, text_without_state
from relay.applying.replica_channel import ReplicaChannel

CHANNEL = ReplicaChannel("", "relay", 3307, "replica", "Yes", True, "mysql-bin.000007", 4, None, 0, 0, "")
STATE = ApplyingState("new:3306", 1.0, 97, channel=CHANNEL)
SOME = AppliedDistance(3 << 20, 7260.0)


@pytest.mark.parametrize(
    ("distance", "changes", "text"),
    [
        (AppliedDistance(0, 0.0), {}, "everything that it is served"),
        (AppliedDistance(transactions=0), {}, "everything that it is served"),
        (SOME, {}, "3.0 MiB, 2 h 1 min behind"),
        (replace(SOME, transactions=1), {}, "3.0 MiB, 1 transaction, 2 h 1 min behind"),
        (AppliedDistance(5), {"seconds_behind": 7}, "5 bytes behind (7 s by its own account)"),
        (SOME, {"applies": False}, "3.0 MiB, 2 h 1 min behind; it applies nothing: its SQL thread is stopped"),
        (SOME, {"receives": "Connecting"}, "3.0 MiB, 2 h 1 min behind; it is connecting to the relay"),
        (SOME, {"receives": "No"}, "3.0 MiB, 2 h 1 min behind; it receives nothing"),
        (SOME, {"delay_s": 3600}, "3.0 MiB, 2 h 1 min behind; a delay of 1 h 0 min is set there"),
        (SOME, {"error": "1062 x"}, "3.0 MiB, 2 h 1 min behind; its last error: 1062 x"),
    ],
)
def test_it_says_how_far_and_why_not_further(distance: AppliedDistance, changes: dict[str, object], text: str) -> None:
    state = replace(STATE, distance=distance, channel=replace(CHANNEL, **changes))  # type: ignore[arg-type]
    assert state.text == text and state.is_known


def test_a_replica_that_says_0_seconds_is_not_known_to_have_all() -> None:
    state = replace(STATE, distance=AppliedDistance(why="its place is not in the archive"))
    assert state.text == "not known: its place is not in the archive (0 s by its own account)"
    assert not state.is_known and not state.has_all and state.record()["behind_s"] is None


def test_a_replica_that_does_not_answer_is_not_known() -> None:
    state = ApplyingState("new:3306", 1.0, why="it did not answer")
    assert state.text == "not known: it did not answer" and not state.is_known


def test_a_replica_without_an_account_may_be_one_that_does_not_answer() -> None:
    assert "does not answer" not in text_without_state([STATE])
    assert "does not answer" in text_without_state([ApplyingState("new:3306", 1.0, why="it did not answer")])
