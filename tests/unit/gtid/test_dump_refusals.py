"""Refusals of replicas that ask by GTID. The first sentences are those of MySQL 5.6.24, 9.7.4 and MariaDB 10.11."""

import struct
import tracemalloc

import pytest

from protocol.errors import PositionRefused
from protocol.gtid.dump_refusals import (
    ahead_of,
    ahead_refused,
    anonymous_refused,
    check_mariadb_position,
    hole_refused,
    mariadb_purged_refused,
    mode_refused,
    purged_refused,
    shown_set,
)
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList, GtidPosition
from protocol.gtid.mysql_gtid import parse_uuid

U = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
V = "3e11fa47-71ca-11e1-9e33-c80aa9429561"
NEW, OLD = (9, 7, 4), (5, 6, 24)


def test_only_the_sources_own_transactions_make_a_replica_ahead() -> None:
    held = GtidSet.from_text(f"{U}:1-12:t:1,{V}:1-99")
    executed = GtidSet.from_text(f"{U}:1-10")
    assert str(ahead_of(held, executed, [parse_uuid(U)])) == f"{U}:11-12:t:1"
    assert not ahead_of(held, executed | held, [parse_uuid(U)])


def test_a_replica_that_is_ahead_is_told_what_it_has_too_much() -> None:
    surplus = GtidSet.from_text(f"{U}:11-12")
    new, old = ahead_refused(surplus, NEW), ahead_refused(surplus, OLD)
    assert new.what.startswith("Replica has more GTIDs than the source has, using the source's SERVER_UUID.")
    assert old.what.startswith("Slave has more GTIDs than the master has, using the master's SERVER_UUID.")
    assert new.number == old.number == 1236
    assert f"{U}:11-12" in new.what


def test_a_replica_that_comes_too_late_is_told_what_is_asked_and_missing() -> None:
    held, missing = GtidSet.from_text(f"{U}:1-4"), GtidSet.from_text(f"{U}:5-6")
    assert purged_refused(held, missing, NEW).what.startswith(
        "Cannot replicate because the source purged required binary logs. "
        f"The GTID set sent by the replica is '{U}:1-4', and the missing transactions are '{U}:5-6'"
    )
    assert purged_refused(held, missing, OLD).what.startswith(
        "The slave is connecting using CHANGE MASTER TO MASTER_AUTO_POSITION = 1, but the master has purged binary logs "
        "containing GTIDs that the slave requires."
    )
    assert f"'{U}:5-6'" in purged_refused(held, missing, OLD).what


def test_the_text_of_a_great_set_is_cut_and_fits_a_replicas_error_field() -> None:
    numbers = b"".join(struct.pack("<QQ", start, start + 1) for start in range(1, 2_000_001, 2))
    great = GtidSet.from_intervals({parse_uuid(U).bytes: numbers, parse_uuid(V).bytes: numbers})
    tracemalloc.start()
    shown = shown_set(great)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert shown == f"{V}:1... (2000000 in all)"
    assert peak < 1 << 20, "nothing is made of the intervals that are not shown"
    for refused in (purged_refused(great, great, NEW), purged_refused(great, great, OLD), ahead_refused(great, NEW)):
        assert len(refused.what.encode()) <= 480
        assert refused.what.count(f"{V}:1... (2000000 in all)") >= 1
    assert shown_set(GtidSet.from_text(f"{U}:1-9")) == f"{U}:1-9"
    assert shown_set(GtidSet()) == ""


def test_the_mode_and_the_anonymous_transaction_are_named() -> None:
    assert mode_refused("ON_PERMISSIVE").what == (
        "The replication sender thread cannot start in AUTO_POSITION mode: "
        "this server has GTID_MODE = ON_PERMISSIVE instead of ON."
    )
    assert anonymous_refused("mysql-bin.000003", 198).what.startswith(
        "Cannot replicate anonymous transaction when AUTO_POSITION = 1, at file mysql-bin.000003, position 198."
    )


STATE = GtidList.from_text("0-2-10,0-1-11,1-1-2,2-1-1")
DIVERGED = "it probably means that the slave has diverged due to executing extra erroneous transactions"


@pytest.mark.parametrize("position", ["", "0-1-2", "0-2-7", "0-1-11,1-1-2,2-1-1", "9-1-5,0-1-11"])
def test_a_position_in_the_binlog_and_a_domain_that_is_not_are_taken(position: str) -> None:
    check_mariadb_position(GtidPosition.from_text(position), STATE, ignore_duplicates=False)


@pytest.mark.parametrize(
    ("position", "diverged"), [("0-1-20", False), ("0-9-5", True), ("0-9-11", True), ("0-9-12", False)]
)
def test_a_position_that_is_not_in_the_binlog_is_refused_by_name(position: str, diverged: bool) -> None:
    with pytest.raises(PositionRefused) as caught:
        check_mariadb_position(GtidPosition.from_text(position), STATE, ignore_duplicates=False)
    assert caught.value.what.startswith(
        f"Error: connecting slave requested to start from GTID {position}, which is not in the master's binlog"
    )
    assert (DIVERGED in caught.value.what) == diverged
    assert "The newest of domain 0 is 0-1-11" in caught.value.what


def test_who_ignores_duplicates_may_be_ahead_and_not_beside() -> None:
    check_mariadb_position(GtidPosition.from_text("0-1-20"), STATE, ignore_duplicates=True)
    with pytest.raises(PositionRefused, match="diverged"):
        check_mariadb_position(GtidPosition.from_text("0-9-5"), STATE, ignore_duplicates=True)


def test_a_position_that_is_too_old_and_a_hole_are_named() -> None:
    refused = mariadb_purged_refused(GtidPosition.from_text("0-1-2"), GtidList.from_text("0-1-4,0-2-10,1-1-1"))
    assert refused.what.startswith("Could not find GTID state requested by slave in any binlog files.")
    assert refused.what.endswith("Asked: '0-1-2', the oldest file begins behind '0-2-10,1-1-1'")
    long = GtidPosition.from_text(",".join(f"{domain}-1-1" for domain in range(500)))
    assert len(mariadb_purged_refused(long, GtidList(long)).what) <= 480
    assert hole_refused(GtidPosition.from_text("0-2-7,1-1-1"), 0).what == (
        "The binlog on the master is missing the GTID 0-2-7 requested by the slave (even though both a prior and a "
        "subsequent sequence number does exist), and GTID strict mode is enabled"
    )
