"""Statements and Table_maps as columns, and the digest text of a statement."""

import random
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.binlog.event_type import EventType
from protocol.binlog.transaction_payload import decode_transaction_payload
from protocol.columns.codes.column_codes import EVENT_MALFORMED, PAYLOAD_UNREADABLE, SEED_INSERT_ID, SEED_RAND
from tests.corpus.expected import WITH_PAYLOADS
from tests.support.binlog_builder import ALONE, INSIDE, OPENS, BinlogBuilder
from tests.support.event_stream import EventStream, query_body
from tests.support.kernel_builds import KernelBuild, builds
from tests.support.kernel_columns import statement_rows

RECORDED = sorted((Path(__file__).resolve().parents[2] / "corpus" / "recorded").glob("*.binlog"))
LISTED_AS_STATEMENTS = {"Query", "Execute_load_query"}


def unpack(packed: bytes) -> bytes:
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed: pip install .")
    body = packed[decode_transaction_payload(packed).head_bytes :]
    with zstandard.ZstdDecompressor().stream_reader(body) as stream:
        return bytes(stream.read())


def listed(path: Path, kinds: set[str]) -> list[tuple[int, str]]:
    lines = [line.split("\t") for line in path.with_suffix(".listing").read_text().splitlines()]
    return [(int(line[0]), line[2]) for line in lines if line[0].isdecimal() and line[1] in kinds]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_statement_of_a_recorded_file_is_a_row_with_its_text(build: KernelBuild, path: Path) -> None:
    rows = statement_rows(build, path.read_bytes(), unpack_payload=unpack).rows
    expected = listed(path, LISTED_AS_STATEMENTS | {"Query_compressed"})
    if path.stem in WITH_PAYLOADS:  # listed at the payload's end
        assert [row["type"] for row in rows] == [EventType.QUERY] * len(expected)
    else:
        assert [row["position"] for row in rows] == [position for position, _ in expected]
    for row, (_, info) in zip(rows, expected, strict=True):
        text = info.partition(" /* xid=")[0].partition(" ;file_id=")[0]
        assert "".join(row["statement"].split())[:30] in "".join(text.split())  # listings have one line each


@pytest.mark.parametrize("maps", [False, True])
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_cuts_and_batches_change_no_row(build: KernelBuild, path: Path, maps: bool) -> None:
    data = path.read_bytes()
    noise = random.Random(path.stem)
    cuts = [noise.randrange(4, len(data)) for _ in range(20)]
    whole = statement_rows(build, data, maps=maps, unpack_payload=unpack)
    assert whole.findings == 0
    assert statement_rows(build, data, maps=maps, unpack_payload=unpack, capacity=1, cuts=cuts).rows == whole.rows


@pytest.mark.parametrize("maps", [False, True])
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_both_builds_agree(path: Path, maps: bool) -> None:
    first, *others = [statement_rows(build, path.read_bytes(), maps=maps, unpack_payload=unpack) for build in builds()]
    assert all(other.rows == first.rows for other in others)


def test_a_table_map_is_a_row_where_it_says_something_new(build: KernelBuild) -> None:
    binlog = BinlogBuilder()
    for _ in range(3):
        binlog.transaction(20, 30)
    binlog.begin()
    changed = struct.pack("<IHH", 42, 0, 1) + b"\x04test\0\x01u\0" + b"\x01\xfc\x01\x02\x01"
    binlog.event(EventType.TABLE_MAP, changed, INSIDE)
    binlog.xid()
    found = statement_rows(build, bytes(binlog.data), maps=True)
    assert [(row["schema"], row["table"]) for row in found.rows] == [("test", "t"), ("test", "u")]
    assert [row["transaction"] for row in found.rows] == [binlog.events[1].start, binlog.events[-3].start]
    assert found.rows[1]["table_map"].encode("latin1", "replace")[2:8] == b"\x04test\0"


def test_what_came_before_a_statement_is_told_with_it(build: KernelBuild) -> None:
    binlog = BinlogBuilder()
    binlog.event(EventType.INTVAR, struct.pack("<BQ", 2, 7), OPENS)
    binlog.event(EventType.RAND, struct.pack("<QQ", 1, 2), INSIDE)
    binlog.query("INSERT INTO t VALUES (NULL, RAND())", "closes")
    binlog.query("INSERT INTO t VALUES (1, 2)")
    rows = statement_rows(build, bytes(binlog.data)).rows
    assert [row["seeds"] for row in rows] == [SEED_INSERT_ID | SEED_RAND, 0]
    assert rows[0]["transaction"] == binlog.events[1].start
    assert [row["thread_id"] for row in rows] == [7, 7]


def test_only_the_wanted_time_is_told(build: KernelBuild) -> None:
    binlog = BinlogBuilder()
    for second in (10, 20, 30):
        binlog.timestamp = second
        binlog.query(f"INSERT INTO t VALUES ({second})")

    def prepare(columns: object) -> None:
        columns.keep_times(15_000_000, 25_000_000)  # type: ignore[attr-defined]

    assert [row["time"] for row in statement_rows(build, bytes(binlog.data), prepare=prepare).rows] == [20_000_000]


def test_what_cannot_be_read_is_a_row_with_a_finding(build: KernelBuild) -> None:
    binlog = BinlogBuilder()
    binlog.query("SELECT 1")
    binlog.event(40, b"\x02\x01\x07\x01\x01\x00\x00xxx", ALONE)
    binlog.query("INSERT INTO t VALUES (1)")
    found = statement_rows(build, bytes(binlog.data))
    assert [(row["finding"], row["statement"]) for row in found.rows] == [
        (0, "SELECT 1"),
        (PAYLOAD_UNREADABLE, None),
        (0, "INSERT INTO t VALUES (1)"),
    ]
    assert found.findings == 1


def test_a_sql_mode_that_no_server_has_is_none(build: KernelBuild) -> None:
    stream = EventStream()
    for mode in (0x7FFFFFFFFFFFFFFF, 0x8000000000000000):
        stream.add(2, query_body("SELECT 1", status=b"\1" + mode.to_bytes(8, "little")))
    found = statement_rows(build, b"\xfebin" + stream.data)
    assert [row["sql_mode"] for row in found.rows] == [0x7FFFFFFFFFFFFFFF, None]


def test_a_statement_whose_lengths_lie_is_a_row_also_where_the_names_fill_their_column(build: KernelBuild) -> None:
    stream = EventStream()
    for _ in range(20):  # of 5120 bytes for 64 rows, 20 are left
        stream.add(2, query_body("SELECT 1", schema=b"d" * 255))
    lying = bytearray(query_body("SELECT 1"))
    lying[8] = 200
    stream.add(2, bytes(lying))
    found = statement_rows(build, b"\xfebin" + stream.data, capacity=64)
    assert [row["finding"] for row in found.rows] == [0] * 20 + [EVENT_MALFORMED]


def test_a_batch_ends_before_it_has_too_much_text(build: KernelBuild) -> None:
    binlog = BinlogBuilder()
    for number in range(5):
        binlog.query(f"INSERT INTO t VALUES ({number}, '{'x' * 1_500_000}')")
    found = statement_rows(build, bytes(binlog.data))
    assert found.batches == 2
    assert [row["digest_text"] for row in found.rows] == ["INSERT INTO t VALUES (...)"] * 5
    assert [len(row["statement"]) for row in found.rows] == [1_500_028] * 5


# ---- digest texts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "digest"),
    [
        ("insert  into t (a,b)\nvalues (1,'x') ,(2,\"y\"), (-3, NULL)", "insert into t (a,b) values (...)"),
        ("INSERT INTO t VALUES (1,NOW(),'a'), (2,NOW(),'b')", "INSERT INTO t VALUES (?,NOW(),?)"),
        ("update t set a = -1.5e-3 where id in (1, 2,3)", "update t set a = ? where id in (...)"),
        ("update t set a=a-1 /* why */ where b=.5 -- so\n limit 5", "update t set a=a-? where b=? limit ?"),
        ("insert into t values ('0000-00-00')", "insert into t values ('0000-00-00')"),
        ("insert into t values ('2010-00-10 00:00:00')", "insert into t values ('2000-00-00')"),
        ("insert into t values ('2010-01-10', '2010-01-10x')", "insert into t values (...)"),
        ("delete from t where a = 'it''s' and b = 'a\\'b'", "delete from t where a = ? and b = ?"),
        ("delete /*!40001 SQL_NO_CACHE */ from `t``1` where a = 0xff", "delete /*!40001 SQL_NO_CACHE */ from `t``1` where a = ?"),
        ("insert into t values (x'ff', N'y', default, true)", "insert into t values (...)"),
        ("insert into t values (\\N, t.1)", "insert into t values (\\N,t.?)"),
        ("delete from t where a = 'open \\", "delete from t where a = ?"),
        ("select f('secret'), `g`(3)", "select f(?),`g`(?)"),
        ("insert into t values ((1)),((2)), ((3))", "insert into t values ((?))"),
    ],
)  # fmt: skip
def test_a_digest_text_has_no_literals(build: KernelBuild, statement: str, digest: str) -> None:
    assert build.digest.StatementDigest().of(statement.encode()).decode() == digest


def test_the_sql_mode_decides_what_a_quote_is(build: KernelBuild) -> None:
    digest = build.digest.StatementDigest()
    assert digest.of(b"update \"t\" set a = 'x'", True) == b'update "t" set a = ?'
    assert digest.of(rb"update t set a = 'x\' where b = 1", False, True) == b"update t set a = ? where b = ?"
    body = struct.pack("<IIBHH", 7, 0, 4, 0, 14)
    status = b"\0" + bytes(4) + b"\1" + struct.pack("<Q", 4)
    binlog = BinlogBuilder()
    binlog.event(EventType.QUERY, body + status + b"test\0" + b'update "t" set a = 1', ALONE)
    (row,) = statement_rows(build, bytes(binlog.data)).rows
    assert row["digest_text"] == 'update "t" set a = ?'
    assert row["status_variables"].encode("latin1") == status
    assert row["sql_mode"] == 4


def test_what_changes_no_rows_is_kept_as_it_is(build: KernelBuild) -> None:
    binlog = BinlogBuilder().query("CREATE TABLE  t (a YEAR(2) DEFAULT '70')")
    (row,) = statement_rows(build, bytes(binlog.data)).rows
    assert row["digest_text"] == "CREATE TABLE  t (a YEAR(2) DEFAULT '70')"


PIECES = st.sampled_from(
    ["'", '"', "`", "(", ")", ",", " ", "--", "\n", "/*", "*/", "/*!", "#", "\\", "1", "x", "-", ".", "NULL", "é", "=", "?", "..."]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=60).map("".join), st.booleans(), st.booleans())
def test_builds_agree_on_any_text_and_a_digest_is_never_longer(text: str, ansi: bool, plain: bool) -> None:
    data = text.encode()
    first, *others = [build.digest.StatementDigest().of(data, ansi, plain) for build in builds()]
    assert len(first) <= len(data)
    assert all(other == first for other in others)
