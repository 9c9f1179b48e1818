"""GTID sets against plain sets of (uuid, tag, number): text, bytes, arithmetic, growth, and bytes of any kind."""

import contextlib
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import Malformed
from protocol.gtid.codec import decode_gtid_set, encode_gtid_set
from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.gtid.mariadb import DomainGtid, GtidList, GtidPosition, decode_gtid_list, encode_gtid_list
from protocol.gtid.mysql_gtid import MAX_GNO, MysqlGtid, Tsid

Plain = frozenset[tuple[UUID, str, int]]

UUIDS = [UUID(int=number) for number in (1, 2, 2**127)]
TAGS = ["", "a", "_9", "b" * 32]
NUMBERS = [*range(1, 16), 2**32 - 1, 2**32, MAX_GNO - 1, MAX_GNO]
PLAIN_SETS = st.frozensets(st.tuples(st.sampled_from(UUIDS), st.sampled_from(TAGS), st.sampled_from(NUMBERS)))
UNTAGGED = st.frozensets(st.tuples(st.sampled_from(UUIDS), st.just(""), st.sampled_from(NUMBERS)))


def built(plain: Plain) -> GtidSet:
    return GtidSet(MysqlGtid(Tsid(uuid, tag), gno) for uuid, tag, gno in plain)


def plain_of(gtid_set: GtidSet) -> Plain:
    return frozenset((gtid.tsid.uuid, gtid.tsid.tag, gtid.gno) for gtid in gtid_set.members())


@given(PLAIN_SETS)
def test_a_set_holds_what_was_put_into_it(plain: Plain) -> None:
    gtid_set = built(plain)
    assert plain_of(gtid_set) == plain
    assert gtid_set.count == len(plain)
    assert bool(gtid_set) == bool(plain)
    for uuid in UUIDS:
        for tag in TAGS:
            for gno in NUMBERS:
                assert (MysqlGtid(Tsid(uuid, tag), gno) in gtid_set) == ((uuid, tag, gno) in plain)


@given(PLAIN_SETS, PLAIN_SETS)
def test_arithmetic_is_that_of_plain_sets(a: Plain, b: Plain) -> None:
    p, q = built(a), built(b)
    assert plain_of(p | q) == a | b
    assert plain_of(p - q) == a - b
    assert plain_of(p & q) == a & b
    assert (p | q) - q == p - q
    assert (p <= q) == (a <= b)
    assert (p < q) == (a < b)
    assert (p >= q) == (a >= b)
    assert p <= p | q
    assert p.meets(q) == bool(a & b)
    assert (p == q) == (a == b)


@given(PLAIN_SETS)
def test_a_set_is_read_from_its_text_and_from_its_bytes(plain: Plain) -> None:
    gtid_set = built(plain)
    for again in (
        GtidSet.from_text(str(gtid_set)),
        GtidSet.from_text(gtid_set.line.upper().replace(",", " ,\n ").replace(":", " : ")),
        decode_gtid_set(encode_gtid_set(gtid_set)),
    ):
        assert again == gtid_set
        assert hash(again) == hash(gtid_set)
        assert encode_gtid_set(again) == encode_gtid_set(gtid_set)


@given(UNTAGGED)
def test_a_set_without_tags_is_written_in_the_first_format(plain: Plain) -> None:
    assert encode_gtid_set(built(plain))[7] == 0


@given(st.lists(PLAIN_SETS, max_size=5))
def test_a_set_that_grows_is_the_same_at_each_snapshot(steps: list[Plain]) -> None:
    builder = GtidSetBuilder()
    so_far: Plain = frozenset()
    for step in steps:
        for uuid, tag, gno in step:
            builder.add(Tsid(uuid, tag).key, gno)
        so_far |= step
        assert builder.snapshot() == built(so_far)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_set_or_malformed(data: bytes) -> None:
    with contextlib.suppress(Malformed):
        decoded = decode_gtid_set(data)
        assert decode_gtid_set(encode_gtid_set(decoded)) == decoded


@given(PLAIN_SETS, st.integers(0, 400), st.integers(0, 255))
def test_a_set_with_a_wrong_byte_is_a_set_or_malformed(plain: Plain, at: int, byte: int) -> None:
    data = bytearray(encode_gtid_set(built(plain)))
    data[at % len(data)] = byte
    with contextlib.suppress(Malformed):
        decoded = decode_gtid_set(bytes(data))
        assert GtidSet.from_text(str(decoded)) == decoded


@given(st.text(alphabet="0123456789abcdefAF-:, \n_g{}", max_size=80))
def test_any_text_is_a_set_or_malformed(text: str) -> None:
    with contextlib.suppress(Malformed):
        assert GtidSet.from_text(GtidSet.from_text(text).line) == GtidSet.from_text(text)


DOMAIN_GTIDS = st.builds(DomainGtid, st.integers(0, 3), st.integers(1, 3), st.integers(1, 2**64 - 1))


@given(st.lists(DOMAIN_GTIDS))
def test_a_list_is_what_a_server_remembers_of_its_stream(stream: list[DomainGtid]) -> None:
    state = GtidList().advanced(stream)
    assert state == GtidList(stream)
    assert {(gtid.domain_id, gtid.server_id): gtid for gtid in stream} == {
        (gtid.domain_id, gtid.server_id): gtid for gtid in state
    }
    newest = {gtid.domain_id: gtid for gtid in stream}
    assert state.position == GtidPosition(newest.values())
    assert decode_gtid_list(encode_gtid_list(state)) == state
    assert GtidList.from_text(str(state)) == state
    assert GtidPosition.from_text(str(state.position)) == state.position


@given(st.binary(max_size=100))
def test_any_bytes_are_a_list_or_malformed(data: bytes) -> None:
    with contextlib.suppress(Malformed):
        decoded = decode_gtid_list(data)
        assert decode_gtid_list(encode_gtid_list(decoded)) == decoded
