"""Whose state is whose, and how many transactions a replica lacks by its GTIDs."""

import pytest

from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from relay.applying.applying_state import ApplyingState
from relay.applying.replica_channel import ReplicaChannel
from relay.archive.storage.gtid_facts import GtidValue
from relay.http.facts.applied_replicas import missing_transactions, with_applied
from relay.http.facts.relay_snapshot import ReplicaState

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.mark.parametrize(
    ("held", "executed", "missing"),
    [
        (f"{UUID}:1-7", GtidSet.from_text(f"{UUID}:1-7"), 0),
        (f"{UUID}:1-5:7", GtidSet.from_text(f"{UUID}:1-9"), 3),
        ("", GtidSet.from_text(f"{UUID}:1-9"), 9),
        (f"{UUID}:1-5", GtidSet(), None),
        ("0-1-7", GtidList.from_text("0-1-7"), 0),
        ("0-1-7,1-1-2", GtidList.from_text("0-1-9,1-1-3"), 3),
        ("0-1-7", GtidList.from_text("0-1-9,1-1-3"), None),
        ("0-1-7", GtidSet.from_text(f"{UUID}:1"), None),
        ("nonsense", GtidList.from_text("0-1-9"), None),
        (f"{UUID}:1", None, None),
    ],
)
def test_missing_transactions_are_counted_where_both_have_such_gtids(
    held: str, executed: GtidValue | None, missing: int | None
) -> None:
    assert missing_transactions(held, executed) == missing


def channel(user: str) -> ReplicaChannel:
    return ReplicaChannel("", "relay", 3307, user, "Yes", True, "mysql-bin.000007", 4, None, 0, 0, "")


REPLICA = ReplicaState(97, "replica", "10.0.0.7", "", "at_end", uuid=UUID)


@pytest.mark.parametrize(
    ("state", "is_its"),
    [
        (ApplyingState("new:3306", 1.0, 97, UUID, channel=channel("replica")), True),
        (ApplyingState("new:3306", 1.0, 97, UUID, why="no answer"), True),
        (ApplyingState("new:3306", 1.0, 97, "", channel=channel("replica")), True),
        (ApplyingState("new:3306", 1.0, 97, "another", channel=channel("replica")), False),
        (ApplyingState("new:3306", 1.0, 97, UUID, channel=channel("another")), False),
        (ApplyingState("new:3306", 1.0, 98, UUID, channel=channel("replica")), False),
        (ApplyingState("new:3306", 1.0, why="no answer"), False),
    ],
)
def test_a_state_belongs_to_the_replica_that_says_the_same_of_itself(state: ApplyingState, is_its: bool) -> None:
    (found,), elsewhere = with_applied([REPLICA], [state])
    assert found.applying is (state if is_its else None)
    assert elsewhere == ([] if is_its else [state])
