"""GTID sets against plain sets of (uuid, tag, number): text, bytes, arithmetic, growth, and bytes of any kind."""

import contextlib
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import Malformed
from protocol.gtid.codec import decode_gtid_set, encode_gtid_set
from protocol.gtid.file_search import first_needed_list, still_awaited
from protocol.gtid.gtid_set import GtidSet, GtidSetBuilder
from protocol.gtid.mariadb import DomainGtid, GtidList, GtidPosition, decode_gtid_list, encode_gtid_list
from protocol.gtid.mysql_gtid import MAX_GNO, MysqlGtid, Tsid
from protocol.pieces import Pieces
from tests.support.kernel_builds import builds, gtid_sets_by

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
    for build in builds():
        with gtid_sets_by(build):
            check_arithmetic(a, b)


def check_arithmetic(a: Plain, b: Plain) -> None:
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
    tsids = {(uuid, tag) for uuid, tag, _ in a}
    assert plain_of(q.of_sources(Tsid(*tsid).key for tsid in tsids)) == {gtid for gtid in b if gtid[:2] in tsids}
    assert plain_of(p.without_tags()) == {gtid for gtid in a if not gtid[1]}
    assert decode_gtid_set(encode_gtid_set(p)) == decode_gtid_set(memoryview(encode_gtid_set(p, tagged=True))) == p


@given(PLAIN_SETS, PLAIN_SETS, st.integers(1, 70))
def test_a_set_that_stays_in_the_pieces_in_which_it_came_is_the_same(a: Plain, b: Plain, size: int) -> None:
    p, q = built(a), built(b)
    data = encode_gtid_set(p)
    kept = decode_gtid_set(Pieces([data[at : at + size] for at in range(0, len(data), size)]))
    assert (kept, plain_of(kept), bool(kept)) == (p, a, bool(a))
    assert (kept | q, q | kept) == (p | q, p | q)
    assert (kept - q, q - kept) == (p - q, q - p)
    assert (kept & q, q & kept) == (p & q, p & q)
    assert (kept <= q, q <= kept, kept.meets(q), q.meets(kept)) == (p <= q, q <= p, p.meets(q), p.meets(q))
    inside, others = kept.split(q.intervals_by_key())
    keys = {tsid.key for tsid in q.tsids()}
    assert plain_of(inside) == {gtid for gtid in a if Tsid(*gtid[:2]).key in keys}
    assert plain_of(others) == a - plain_of(inside)


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


@given(st.lists(PLAIN_SETS, max_size=5), st.booleans())
def test_a_set_that_grows_is_the_same_at_each_snapshot(steps: list[Plain], whole: bool) -> None:
    builder = GtidSetBuilder()
    so_far: Plain = frozenset()
    for step in steps:
        for uuid, tag, gno in step:
            builder.add(Tsid(uuid, tag).key, gno)
        so_far |= step
        sources = {(uuid, tag) for uuid, tag, _ in so_far}
        assert sorted(builder.sources) == sorted(Tsid(u, t).key for u, t in sources)
        if whole:
            builder.add_set(built(step))
        assert builder.snapshot() == built(so_far)
        assert len(builder.sources) == len(sources)


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


@given(st.lists(DOMAIN_GTIDS), DOMAIN_GTIDS)
def test_a_list_had_what_is_not_behind_the_last_of_its_server(stream: list[DomainGtid], asked: DomainGtid) -> None:
    of_server = [g for g in stream if (g.domain_id, g.server_id) == (asked.domain_id, asked.server_id)]
    had = bool(of_server) and asked.sequence_number <= of_server[-1].sequence_number
    assert GtidList(stream).contains(asked) == had
    assert all(map(GtidList(stream).contains, GtidList(stream)))


STREAMS = st.lists(st.builds(DomainGtid, st.integers(0, 2), st.integers(1, 2), st.just(0)), max_size=25)


@given(STREAMS, st.lists(st.integers(0, 25), max_size=4), st.lists(st.integers(0, 24), max_size=3))
def test_a_mariadb_replica_gets_from_its_start_file_on_just_what_it_lacks(
    shape: list[DomainGtid], cuts: list[int], stands: list[int]
) -> None:
    """A domain's numbers grow with the stream. What a replica has is all of each domain up to one place in it."""
    numbers = dict.fromkeys(range(3), 0)
    stream = []
    for gtid in shape:
        numbers[gtid.domain_id] += 1
        stream.append(DomainGtid(gtid.domain_id, gtid.server_id, numbers[gtid.domain_id]))
    starts = sorted({0, *(cut for cut in cuts if cut < len(stream))})
    befores = [GtidList(stream[:start]) for start in starts]
    position = GtidPosition({stream[at].domain_id: stream[at] for at in stands if at < len(stream)}.values())
    lacking = [
        gtid
        for gtid in stream
        if (last := position.domain(gtid.domain_id)) is None or gtid.sequence_number > last.sequence_number
    ]
    file = first_needed_list(befores, position)
    assert file is not None
    assert all(gtid in stream[starts[file] :] for gtid in lacking)
    awaited = {gtid.domain_id: gtid for gtid in still_awaited(befores[file], position)}
    sent = []
    for gtid in stream[starts[file] :]:
        if gtid.domain_id not in awaited:
            sent.append(gtid)
        elif awaited[gtid.domain_id] == gtid:
            del awaited[gtid.domain_id]
    assert sent == lacking


@given(st.binary(max_size=100))
def test_any_bytes_are_a_list_or_malformed(data: bytes) -> None:
    with contextlib.suppress(Malformed):
        decoded = decode_gtid_list(data)
        assert decode_gtid_list(encode_gtid_list(decoded)) == decoded
