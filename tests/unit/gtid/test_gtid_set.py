"""MySQL's GTID sets as text and as values. Texts marked so were answered by MySQL 5.6.24 and 9.7.4."""

import random

import pytest

from protocol.errors import Malformed
from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.gtid.mysql_gtid import MAX_GNO, MysqlGtid, Tsid, parse_uuid

U = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
V = "3e11fa47-71ca-11e1-9e33-c80aa9429561"

# What was put into GTID_SUBTRACT('...', '') of 9.7.4, and what came out.
ANSWERED = [
    ("", ""),
    (" ", ""),
    (",", ""),
    (f"{U}:1-3:5", f"{U}:1-3:5"),
    (f"{U}:5:1-3", f"{U}:1-3:5"),
    (f"{U}:1-3,{U}:4", f"{U}:1-4"),
    (f"{U}:5-5", f"{U}:5"),
    (f"{U}:01", f"{U}:1"),
    (f"{U}:1-9223372036854775806", f"{U}:1-9223372036854775806"),
    (f"{V.upper()}:1 - 3 : 5 ,\n {U} : 7", f"{V}:1-3:5,\n{U}:7"),
    (f"{U}:1,,{V}:1", f"{V}:1,\n{U}:1"),
    (f",{U}:1,", f"{U}:1"),
    (f"{U}:1\t-3", f"{U}:1-3"),
    (f"{U}:1-3:tag:1-7", f"{U}:1-3:tag:1-7"),
    (f"{U}:tag:1-7:1-3", f"{U}:tag:1-7"),
    (f"{U}:TAG:1:tag:2", f"{U}:tag:1-2"),
    (f"{U}:a_9:1", f"{U}:a_9:1"),
    (f"{U}:_a:1", f"{U}:_a:1"),
    (f"{U}:{'a' * 32}:1", f"{U}:{'a' * 32}:1"),
    (f"{U}:1:tag:2:tagb:3:tag:4-5", f"{U}:1:tag:2:4-5:tagb:3"),
    (f"{U}:tag:1,{U}:1,{V}:b:1,{V}:1", f"{V}:1:b:1,\n{U}:1:tag:1"),
    (f"{U.replace('-', '')}:1", f"{U}:1"),
    (f"{{{U}}}:1", f"{U}:1"),
]
# Malformed GTID set specification, 1772, on 9.7.4.
REFUSED = [
    f"{U}:1-9223372036854775807",
    f"{U}:9223372036854775807",
    f"{U}:9223372036854775808",
    f"{U}:99999999999999999999",
    f"{U}:0",
    f"{U}:0-5",
    f"{U}:-5",
    f"{U}:",
    f"{U}:1-3:",
    ":1",
    f"{U}:9a:1",
    f"{U}:{'a' * 33}:1",
    f"{U}:tag:",
    f"{U}:+1",
    f"{U}:1-",
    f"{U}:1--3",
    f"{U}:0x10",
    f"{U[:-1]}:1",
    f"{U}:1;",
    f"{U}:1-2-3",
    f"{U} {V}:1",
    f"{U}:t ag:1",
    f"{U}:1:,{V}:2",
    f"+{U}:1",
]
# Taken by servers as nothing at all; nobody who wrote it meant that.
REFUSED_HERE = [f"{U}:5-3", U, f"{U}:tag", f"{U}:1:tag", f"{U}:tag:other:1", f"{U},{V}:2", f"{U}:{'9' * 100_000}"]


@pytest.mark.parametrize(("given", "answer"), ANSWERED)
def test_a_text_is_taken_and_printed_as_by_a_server(given: str, answer: str) -> None:
    assert str(GtidSet.from_text(given)) == answer


@pytest.mark.parametrize(("given", "answer"), ANSWERED)
def test_the_text_in_one_line_means_the_same_set(given: str, answer: str) -> None:
    line = GtidSet.from_text(given).line
    assert "\n" not in line
    assert str(GtidSet.from_text(line)) == answer


@pytest.mark.parametrize("text", REFUSED + REFUSED_HERE)
def test_a_text_that_is_no_set_is_malformed(text: str) -> None:
    with pytest.raises(Malformed) as caught:
        GtidSet.from_text(text)
    assert len(str(caught.value)) < 300


def test_the_error_says_what_is_wrong_in_which_member() -> None:
    with pytest.raises(Malformed, match=rf"interval '5-3' of '{U}' runs backwards"):
        GtidSet.from_text(f"{V}:1,{U}:5-3")
    with pytest.raises(Malformed, match=r"the transactions of .* with tag tag are missing"):
        GtidSet.from_text(f"{U}:1:tag")


def test_sets_of_the_same_transactions_are_equal_however_they_came_about() -> None:
    by_text = GtidSet.from_text(f"{U}:1-5:tag:3")
    in_parts = GtidSet.from_text(f"{U}:tag:3") | GtidSet.from_text(f"{U}:4-5") | GtidSet.from_text(f"{U}:1-3")
    one_by_one = GtidSet(reversed(list(by_text.members())))
    assert by_text == in_parts == one_by_one
    assert hash(by_text) == hash(in_parts) == hash(one_by_one)
    assert by_text != GtidSet.from_text(f"{U}:1-5:tag:4")
    assert by_text != str(by_text)


def test_a_tag_makes_another_transaction() -> None:
    tagged, plain = GtidSet.from_text(f"{U}:t:1-9"), GtidSet.from_text(f"{U}:1-9")
    assert not tagged & plain
    assert not tagged.meets(plain)
    assert (tagged | plain).count == 18
    assert (tagged | plain).without_tags() == plain
    assert (tagged.has_tags, plain.has_tags) == (True, False)


def test_proper_subsets_are_less() -> None:
    small, great = GtidSet.from_text(f"{U}:2-3"), GtidSet.from_text(f"{U}:1-9,{V}:1")
    assert small < great
    assert great > small
    assert small <= great
    assert great >= small
    assert not great <= small
    assert not small < GtidSet.from_text(f"{U}:2-3")
    assert not GtidSet.from_text(f"{V}:1-2") <= great
    assert GtidSet() < small


def test_one_transaction_is_found_in_a_set() -> None:
    gtid_set = GtidSet.from_text(f"{U}:1-5:7:tag:{MAX_GNO}")
    assert MysqlGtid.from_text(f"{U}:7") in gtid_set
    assert MysqlGtid.from_text(f"{U.upper()}:TAG:{MAX_GNO}") in gtid_set
    assert MysqlGtid.from_text(f"{U}:6") not in gtid_set
    assert MysqlGtid.from_text(f"{V}:1") not in gtid_set
    assert not gtid_set.has(parse_uuid(U).bytes, 0)
    assert not gtid_set.has(parse_uuid(U).bytes, -1)
    assert not gtid_set.has(parse_uuid(U).bytes, 2**64)


def test_counts_reach_beyond_64_bits() -> None:
    assert GtidSet.from_text(f"{U}:1-{MAX_GNO},{V}:1-{MAX_GNO}:t:1-{MAX_GNO}").count == 3 * MAX_GNO


def test_a_set_lists_its_sources_and_intervals() -> None:
    gtid_set = GtidSet.from_text(f"{U}:4-5:1-2:t:9,{V}:1")
    assert gtid_set.tsids() == [Tsid(parse_uuid(V)), Tsid(parse_uuid(U)), Tsid(parse_uuid(U), "t")]
    assert gtid_set.intervals(Tsid(parse_uuid(U))) == [(1, 2), (4, 5)]
    assert gtid_set.intervals(Tsid(parse_uuid(V), "t")) == []
    assert gtid_set.interval_count == 4
    assert str(list(gtid_set.members())[-1]) == f"{U}:t:9"


def test_an_empty_set_is_false_and_has_no_text() -> None:
    assert not GtidSet()
    assert str(GtidSet()) == ""
    assert GtidSet() == GtidSet.from_text(" \n")
    assert repr(GtidSet.from_text(f"{U}:1,{V}:1")) == f"GtidSet.from_text('{V}:1,{U}:1')"


@pytest.mark.parametrize("text", [f"{U}:1-2", U, f"{U}:1:2:3", f"{U}::1", f"{U}:t:", f"{U}:9t:1", ""])
def test_what_is_not_one_transaction_is_malformed(text: str) -> None:
    with pytest.raises(Malformed):
        MysqlGtid.from_text(text)


def test_transactions_are_ordered_as_servers_list_them() -> None:
    ordered = [f"{V}:9", f"{V}:a:1", f"{U}:2", f"{U}:10", f"{U}:_:1", f"{U}:a:3"]
    assert [str(gtid) for gtid in sorted(map(MysqlGtid.from_text, reversed(ordered)))] == ordered


@pytest.mark.parametrize("key", [b"", b"short", bytes(16) + b"9", bytes(16) + b"a b", bytes(16) + b"\xff"])
def test_a_key_that_names_no_source_is_malformed(key: bytes) -> None:
    with pytest.raises(Malformed):
        Tsid.from_key(key)
    with pytest.raises(Malformed):
        GtidSetBuilder().add(key, 1)


KEY = parse_uuid(U).bytes


def test_a_set_that_grows_by_the_next_number_stays_one_interval() -> None:
    builder = GtidSetBuilder(GtidSet.from_text(f"{U}:1-10,{V}:3"))
    for gno in range(11, 2000):
        builder.add(KEY, gno)
    assert str(builder.snapshot()) == f"{V}:3,\n{U}:1-1999"


def test_a_snapshot_does_not_change_when_the_set_grows_on() -> None:
    builder = GtidSetBuilder()
    builder.add(KEY, 1)
    first = builder.snapshot()
    builder.add(KEY, 2)
    builder.add(KEY + b"t", 1)
    assert str(first) == f"{U}:1"
    assert str(builder.snapshot()) == f"{U}:1-2:t:1"


def test_numbers_in_any_order_make_the_same_set() -> None:
    numbers = list(range(1, 30_000))
    random.Random(5).shuffle(numbers)
    builder = GtidSetBuilder()
    for gno in numbers:
        builder.add(KEY, gno)
    assert str(builder.snapshot()) == f"{U}:1-29999"


def test_runs_and_sets_are_added_whole() -> None:
    builder = GtidSetBuilder()
    builder.add_run(KEY, 5, 8)
    builder.add_set(GtidSet.from_text(f"{U}:1-2,{V}:t:4"))
    builder.add_run(KEY, 8, 9)
    builder.add_run(KEY, 3, 4)
    assert str(builder.snapshot()) == f"{V}:t:4,\n{U}:1-3:5-8"


def test_a_run_that_is_told_again_longer_grows() -> None:
    builder = GtidSetBuilder()
    for start, stop in [(5, 8), (5, 9), (6, 7), (5, 12)]:
        builder.add_run(KEY, start, stop)
    assert str(builder.snapshot()) == f"{U}:5-11"


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (-1, 3), (5, 5), (6, 5), (1, MAX_GNO + 2), (2**64, 2**64 + 1)])
def test_numbers_that_no_transaction_has_are_not_added(start: int, stop: int) -> None:
    with pytest.raises(Malformed, match="not within 1 and"):
        GtidSetBuilder().add_run(KEY, start, stop)


def test_the_number_behind_the_greatest_is_not_added() -> None:
    builder = GtidSetBuilder()
    builder.add(KEY, MAX_GNO)
    with pytest.raises(Malformed):
        builder.add(KEY, MAX_GNO + 1)
    assert builder.snapshot().count == 1
