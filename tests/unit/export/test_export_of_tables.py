"""Exports of some tables: rows by their table, definitions by the names in them, and what nobody can decide by a rule that is said."""

import json
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import zstandard

from protocol.binlog.gtid_event import Gtid, decode_gtid, encode_gtid
from protocol.errors import RelayError
from protocol.wire import lenenc_int
from relay.export.export_command import ExportRequest, export
from relay.export.table_choice import TableChoice
from tests.support.archive_filling import fill
from tests.support.binlog_builder import ALONE, CLOSES, INSIDE, OPENS, BinlogBuilder
from tests.support.exported_events import Told, checked_events
from tests.support.gtid_binlog import mysql_binlog

T, U, V = (1, "d", "t"), (2, "d", "u"), (3, "e", "t")
MAP, ROWS, QUERY, ROWS_QUERY, XID, GTID, PAYLOAD = 19, 30, 2, 29, 16, 33, 40
Table = tuple[int, str, str]
Event = tuple[int, bytes]


def table_map(table: Table) -> Event:
    number, schema, name = table
    body = struct.pack("<IHH", number, 0, 1)
    for text in (schema, name):
        body += bytes([len(text)]) + text.encode() + b"\0"
    return MAP, body + b"\x01\x03\x00\x01"


def rows(table: Table, value: int, *, last: bool = False) -> Event:
    return ROWS, struct.pack("<IHH", table[0], 0, last) + b"\x02\0\x01\xff\0" + struct.pack("<I", value)


def query(text: str, schema: str = "d") -> Event:
    return QUERY, struct.pack("<IIBHH", 7, 0, len(schema), 0, 0) + schema.encode() + b"\0" + text.encode()


BEGIN, COMMIT, END = query("BEGIN"), query("COMMIT"), (XID, bytes(8))
SEED = (5, b"\2" + bytes(8))


def add(binlog: BinlogBuilder, *events: Event) -> None:
    """A transaction."""
    effects = [ALONE] if len(events) == 1 else [OPENS, *[INSIDE] * (len(events) - 2), CLOSES]
    for (kind, body), effect in zip(events, effects, strict=True):
        binlog.event(kind, body, effect)


def kept(events: Iterable[Told]) -> list[Event]:
    return [(event.kind, event.body) for event in events]


async def filtered(
    tmp_path: Path, binlog: BinlogBuilder, tables: str, capsys: pytest.CaptureFixture[str], undecided: str = "refuse"
) -> tuple[list[Event], list[dict[str, Any]]]:
    """The events of the export, and its manifest."""
    count = len(list(tmp_path.iterdir()))
    archive = tmp_path / f"archive{count}"
    await fill(archive, ("mysql-bin.000001", binlog.data))
    out = tmp_path / f"out{count}"
    export(archive, ExportRequest(out, None, None, None, (tables,), undecided, False), as_json=True)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line[0] == "{"]
    return kept(checked_events(out / "mysql-bin.000001")), lines


async def test_only_the_rows_of_the_tables_stay_and_statements_end_where_they_must(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROWS_QUERY, b"\x04text")
    mixed = [BEGIN, text, table_map(T), table_map(U), rows(T, 1), rows(U, 2), rows(T, 3), rows(U, 4, last=True), END]
    others = [BEGIN, (ROWS_QUERY, b"\x05other"), table_map(U), rows(U, 5, last=True), END]
    two = [BEGIN, table_map(U), rows(U, 6, last=True), query("SAVEPOINT s"), table_map(T), rows(T, 7, last=True), END]
    other_schema = [BEGIN, table_map(V), rows(V, 8, last=True), COMMIT]
    expected = {
        "d.t": [
            *[BEGIN, text, table_map(T), rows(T, 1), rows(T, 3, last=True), END],
            *[BEGIN, query("SAVEPOINT s"), table_map(T), rows(T, 7, last=True), END],
        ],
        "d.u": [
            *[BEGIN, text, table_map(U), rows(U, 2), rows(U, 4, last=True), END],
            *others,
            *[BEGIN, table_map(U), rows(U, 6, last=True), query("SAVEPOINT s"), END],
        ],
        "e.*": other_schema,
        "d.*, e.t": [*mixed, *others, *two, *other_schema],
        "x.t": [],
    }
    for checksum in (True, False):
        binlog = BinlogBuilder(checksum=checksum)
        for events in (mixed, others, two, other_schema):
            add(binlog, *events)
        for tables, wanted in expected.items():
            found, lines = await filtered(tmp_path, binlog, tables, capsys)
            assert found == wanted, tables
            assert lines[-1]["filter"]["transactions_left_out"] == 4 - wanted.count(BEGIN)
            assert lines[-1]["filter"]["row_events_kept"] == sum(kind == ROWS for kind, _body in wanted)
            assert lines[-1]["filter"]["row_events_left_out"] == 8 - sum(kind == ROWS for kind, _body in wanted)


async def test_an_export_that_holds_nothing_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    binlog = BinlogBuilder()
    add(binlog, BEGIN, table_map(T), rows(T, 1, last=True), END)
    await fill(tmp_path / "archive", ("mysql-bin.000001", binlog.data))
    request = ExportRequest(tmp_path / "out", None, None, None, ("d.T",), "refuse", False)
    assert export(tmp_path / "archive", request, as_json=False)
    assert "changes d.T: the files hold nothing to apply. Tables with rows there: d.t." in capsys.readouterr().err


async def test_definitions_are_decided_by_the_names_in_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = [
        "CREATE TABLE t (a INT)",
        "alter table d.t add b int",
        "TRUNCATE t",
        "RENAME TABLE x TO d.t",
        "DROP DATABASE d",
    ]
    others = ["CREATE TABLE u (a INT REFERENCES t (a))", "ALTER TABLE e.t ADD b INT", "CREATE USER x", "DROP TABLE u"]
    binlog = BinlogBuilder()
    for text in mine + others:
        add(binlog, query(text, "d" if text != "ALTER TABLE e.t ADD b INT" else "e"))
    found, lines = await filtered(tmp_path, binlog, "d.t", capsys)
    assert found == [query(text) for text in mine]
    listed = {line["text"]: (line["fate"], line["decided_by"]) for line in lines if line["kind"] == "statement"}
    assert listed == dict.fromkeys(mine, ("kept", "tables")) | dict.fromkeys(others, ("left out", "tables"))
    assert (lines[-1]["filter"]["definitions_kept"], lines[-1]["filter"]["definitions_left_out"]) == (5, 4)


async def test_what_no_table_can_be_told_of_is_refused_kept_or_left_out_as_the_rule_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load = (18, struct.pack("<IIBHHIIIB", 7, 0, 1, 0, 0, 1, 0, 0, 0) + b"d\0LOAD DATA INFILE 'f' INTO TABLE t")
    binlog = BinlogBuilder()
    transactions: list[list[Event]] = [
        [BEGIN, SEED, query("INSERT INTO t VALUES (NULL)"), END],
        [BEGIN, (17, b"\1\0\0\0a,b\n"), (9, b"\1\0\0\0c"), load, END],
        [BEGIN, query("UPDATE u SET a = 1"), table_map(T), rows(T, 1, last=True), END],
        [query("GRANT SELECT ON d.* TO x")],
    ]
    for events in transactions:
        add(binlog, *events)
    with pytest.raises(RelayError, match="4 event") as refused:
        await filtered(tmp_path, binlog, "d.t", capsys)
    for text in ("INSERT INTO t", "LOAD DATA", "UPDATE u", "GRANT", "--undecided keep"):
        assert text in str(refused.value)
    assert not list(tmp_path.glob("out*"))
    found, lines = await filtered(tmp_path, binlog, "d.t", capsys, "keep")
    assert found == [event for events in transactions for event in events]
    assert lines[-1]["filter"]["undecided_kept"] == 4
    found, lines = await filtered(tmp_path, binlog, "d.t", capsys, "leave-out")
    assert found == [BEGIN, table_map(T), rows(T, 1, last=True), END]
    assert lines[-1]["filter"]["undecided_left_out"] == 4
    assert [line["fate"] for line in lines if line["kind"] == "statement"] == ["left out"] * 4


async def test_the_end_of_a_prepared_transaction_goes_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def prepared(name: str, table: Table) -> list[Event]:
        start, end = query(f"XA START X'{name}',X'',1"), query(f"XA END X'{name}',X'',1")
        return [start, table_map(table), rows(table, 1, last=True), end, (38, b"\0\1\0\0\0\1\0\0\0\0\0\0\0a")]

    binlog = BinlogBuilder()
    add(binlog, *prepared("61", U))
    add(binlog, *prepared("62", T))
    for name in ("61", "62", "63"):
        add(binlog, query(f"XA COMMIT X'{name}',X'',1"))
    found, _lines = await filtered(tmp_path, binlog, "d.t", capsys)
    # Of the third nobody knows what it has: it was prepared before.
    assert found == [*prepared("62", T), query("XA COMMIT X'62',X'',1"), query("XA COMMIT X'63',X'',1")]


async def test_a_name_of_a_left_out_transaction_that_is_taken_again_does_not_cost_the_next_ones_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def named(table: Table, one_phase: bool) -> list[Event]:
        start, end = query("XA START X'61',X'',1"), query("XA END X'61',X'',1")
        prepare = (38, bytes([one_phase]) + b"\1\0\0\0\1\0\0\0\0\0\0\0a")
        return [start, table_map(table), rows(table, 1, last=True), end, prepare]

    commit = query("XA COMMIT X'61',X'',1")
    binlog = BinlogBuilder()
    add(binlog, *named(U, one_phase=True))
    add(binlog, *named(T, one_phase=False))
    add(binlog, commit)
    found, _lines = await filtered(tmp_path, binlog, "d.t", capsys)
    assert found == [*named(T, one_phase=False), commit]


async def test_the_end_of_a_transaction_that_only_its_preparing_names_goes_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # As MariaDB: its GTID event, in place of BEGIN here, has the name, and no XA START is written.
    prepared = [
        BEGIN,
        table_map(U),
        rows(U, 1, last=True),
        query("XA END X'61',X'',1"),
        (38, b"\0\1\0\0\0\1\0\0\0\0\0\0\0a"),
    ]
    kept = [BEGIN, table_map(T), rows(T, 1, last=True), END]
    binlog = BinlogBuilder()
    add(binlog, *prepared)
    add(binlog, query("XA COMMIT X'61',X'',1"))
    add(binlog, *kept)
    found, _lines = await filtered(tmp_path, binlog, "d.t", capsys)
    assert found == kept


def gtid_event(inside: list[Event], number: int) -> Event:
    """As 9.7 writes it, with the length of its transaction."""
    rest = sum(19 + len(body) + 4 for _kind, body in inside)
    gtid = Gtid(1, UUID(int=7), number, "", 1, 2, 10**15, 10**15, 0, 90704, 90704)
    length = 0
    while True:
        body = encode_gtid(Gtid(*[getattr(gtid, name) for name in gtid.__slots__[:8]], length, 90704, 90704))
        if length == rest + 19 + len(body) + 4:
            return GTID, body
        length = rest + 19 + len(body) + 4


async def test_a_gtid_says_how_long_what_stayed_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    binlog = mysql_binlog(None)
    events = [BEGIN, table_map(U), *[rows(U, n) for n in range(20)], table_map(T), rows(T, 1, last=True), END]
    add(binlog, gtid_event(events, 1), *events)
    stays = [BEGIN, table_map(T), rows(T, 1, last=True), END]
    found, _lines = await filtered(tmp_path, binlog, "d.t", capsys)
    assert found == [gtid_event(stays, 1), *stays]
    assert decode_gtid(found[0][1]).transaction_length == 19 + len(found[0][1]) + 4 + sum(
        23 + len(b) for _k, b in stays
    )


async def test_a_compressed_transaction_stays_goes_or_is_taken_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def packed(events: list[Event]) -> Event:
        data = b"".join(struct.pack("<IBIIIH", 5, kind, 1, 19 + len(body), 0, 0) + body for kind, body in events)
        payload = zstandard.ZstdCompressor().compress(data)
        body = b""
        for kind, value in ((2, lenenc_int(0)), (3, lenenc_int(len(data))), (1, lenenc_int(len(payload)))):
            body += lenenc_int(kind) + lenenc_int(len(value)) + value
        return PAYLOAD, body + b"\0" + payload

    both = [BEGIN, table_map(T), table_map(U), rows(T, 1), rows(U, 2, last=True), END]
    mine, others = [BEGIN, table_map(T), rows(T, 3, last=True), END], [BEGIN, table_map(U), rows(U, 4, last=True), END]
    binlog = mysql_binlog(None)
    for number, events in enumerate((both, mine, others), 1):
        add(binlog, gtid_event([packed(events)], number), packed(events))
    found, lines = await filtered(tmp_path, binlog, "d.t", capsys)
    apart = [BEGIN, table_map(T), rows(T, 1, last=True), END]
    assert found == [gtid_event(apart, 1), *apart, gtid_event([packed(mine)], 2), packed(mine)]
    assert lines[-1]["filter"]["transactions_left_out"] == 1


def test_words_that_are_no_tables_are_refused() -> None:
    for text in ("orders", "shop.", ".orders", ",", ""):
        with pytest.raises(Exception, match="--tables"):
            TableChoice.from_texts((text,))
    assert str(TableChoice.from_texts(("`a`.`b`,c.*", "a.b"))) == "a.b, c.*"
