"""Which tables a definition is about, which recorded version is true where, and what is left of it after a purge."""

import zlib
from pathlib import Path
from typing import NoReturn

import pytest
import structlog.testing

from protocol.binlog.schema.definition_statement import definition_statement
from protocol.kernel.ingest import Ingest
from protocol.position import Position
from protocol.sql.sql_mode import ANSI_QUOTES
from protocol.sql.statements.statement_names import defined_names
from protocol.sql.tables.source_table import Column, Key, Table
from relay.archive.storage.archived_file import describe_new_file
from relay.schema_history.definition_scan import scan_definitions
from relay.schema_history.schema_file import SchemaFile, read_schema
from relay.schema_history.schema_record import RecordedSchema, line, table_line
from relay.source_tables.table_facts import table_facts
from relay.upstream.schema.definition_notes import DefinitionNotes
from relay.upstream.schema.scanned_files import ScannedFile, ScannedFiles
from relay.upstream.schema.schema_watch import SchemaRecording, SchemaWatch
from tests.support.binlog_builder import BinlogBuilder
from tests.support.event_stream import query_body, raw_event

ONE, TWO, THREE = "bin.000001", "bin.000002", "bin.000003"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("CREATE TABLE `a``b` (x INT, y VARCHAR(3)) ENGINE=InnoDB", {"a`b"}),
        ("ALTER TABLE s.t ADD INDEX (c), RENAME TO `s`.`New`", {"s", "t", "new"}),
        ("RENAME TABLE a TO b, c TO d, e TO f, g TO h", {"a", "b", "c", "d", "e", "f", "g", "h"}),
        ("/* ( */ DROP TABLE IF EXISTS x, y", {"x", "y"}),
        ("CREATE INDEX i ON t (a)", {"t"}),
        ("/*!50003 CREATE */ TABLE q (a INT)", {"q"}),
        ('ALTER TABLE "T" DROP COLUMN c', {"t"}),
        ("create table t like u", {"t", "u"}),
        ("ALTER TABLE tüb ADD b INT", {"tüb"}),
        ("CREATE TABLE t COMMENT '(' -- (\n SELECT 1", {"t"}),
    ],
)
def test_every_table_that_a_definition_changes_is_among_its_names(text: str, names: set[str]) -> None:
    found = defined_names(text.encode(), ANSI_QUOTES if '"' in text else 0)
    assert found is not None
    assert names <= found


def test_columns_are_not_among_the_names() -> None:
    assert "orders" not in (
        defined_names(b"CREATE TABLE t (orders INT, FOREIGN KEY (a) REFERENCES orders (b))", 0) or ()
    )


@pytest.mark.parametrize("text", [b"ALTER TABLE \xff ADD b INT", b"DROP TABLE " + b"a,b" * 400_000, b"x " * 2_000_000])
def test_a_definition_that_cannot_be_told_is_about_any_table(text: bytes) -> None:
    if len(text) > 1 << 20 or b"\xff" in text:
        assert defined_names(text, 0) is None


def test_a_compressed_statement_is_read_and_may_define_nothing() -> None:
    def packed(text: bytes) -> bytes:
        data = b"\x82" + len(text).to_bytes(2, "big") + zlib.compress(text)
        return raw_event(165, query_body(data, schema=b"shop"))

    assert definition_statement(packed(b" CREATE TABLE t (a INT)"), 13, True) == (b"shop", b" CREATE TABLE t (a INT)")
    assert definition_statement(packed(b"INSERT INTO t VALUES (1)"), 13, True) is None
    assert definition_statement(raw_event(165, query_body(b"\x82garbage", schema=b"s")), 13, True) == (b"s", None)


# ---- what is true where ----------------------------------------------------------------------------------------------


def table(name: str = "t", *columns: str) -> Table:
    return Table("shop", name, "InnoDB", tuple(Column(column, "int(11)") for column in columns or ("a",)))


def recorded(name: str, file: str, offset: int, *columns: str) -> str:
    return table_line(table_facts(table(name, *columns)), file, offset)


def definition(file: str, offset: int, *names: str) -> str:
    return line("definition", file, offset, names=list(names) or None)


def schema(*lines: str) -> RecordedSchema:
    return RecordedSchema.parse("".join(lines).encode())


def names_at(found: RecordedSchema, file: str, offset: int, name: str = "t") -> list[str] | None:
    known = found.table("shop", name, file, offset)
    return None if known is None else [column.name for column in known.columns]


def test_a_table_reads_back_as_it_was_written() -> None:
    written = Table(
        "sch'op",
        "tä",
        "MyISAM",
        (Column("a", "enum('x','y''z')", "utf8", "utf8_bin", False, ""), Column("b", "int", extra="STORED GENERATED")),
        (("PRIMARY", Key(("a",), True)), ("other", Key(("a", "b")))),
    )
    found = RecordedSchema.parse(table_line(table_facts(written), ONE, 4).encode()).table("sch'op", "tä", ONE, 4)
    assert found == written
    assert found.primary_key == ("a",)
    assert [column.generated for column in found.columns] == [False, True]


def test_what_is_asked_late_holds_from_the_definition_before_to_the_next_one() -> None:
    found = schema(
        line("watched", ONE, 4),
        definition(ONE, 100, "t", "alter"),
        definition(ONE, 200, "other"),
        recorded("t", TWO, 50, "a", "b"),
        definition(TWO, 300, "t"),
        recorded("t", TWO, 400, "a", "c"),
        line("covered", THREE, 4),
    )
    assert names_at(found, ONE, 99) is None
    assert names_at(found, ONE, 101) == names_at(found, TWO, 299) == ["a", "b"]
    assert names_at(found, TWO, 301) == names_at(found, THREE, 1 << 33) == ["a", "c"]


def test_a_definition_of_which_nothing_is_known_ends_what_is_known_of_all_tables() -> None:
    found = schema(line("watched", ONE, 4), recorded("t", ONE, 50), definition(ONE, 60))
    assert names_at(found, ONE, 59) == ["a"]
    assert names_at(found, ONE, 61) is None


def test_nothing_holds_where_nobody_watched() -> None:
    found = schema(
        line("watched", ONE, 500),
        recorded("t", ONE, 600),
        line("covered", ONE, 700),
        line("watched", TWO, 4),
        recorded("t", TWO, 50, "b"),
    )
    assert names_at(found, ONE, 499) is None
    assert names_at(found, ONE, 650) == ["a"]
    assert names_at(found, ONE, 701) is None
    assert names_at(found, TWO, 10) == ["b"]


def test_a_table_that_is_gone_is_not_among_the_latest() -> None:
    gone = line("dropped", ONE, 300, schema="shop", table="t")
    found = schema(
        line("watched", ONE, 4), recorded("t", ONE, 50), recorded("u", ONE, 50), definition(ONE, 200, "t"), gone
    )
    assert [one.name for one in found.latest()] == ["u"]
    assert names_at(found, ONE, 199) == ["a"]


def test_lines_that_cannot_be_read_are_left_out() -> None:
    text = line("watched", ONE, 4) + "nonsense\n" + '{"kind": "table", "file": "bin.000001", "offset": 5}\n'
    found = RecordedSchema.parse((text + recorded("t", ONE, 50) + '{"kind": "tab').encode())
    assert names_at(found, ONE, 4) == ["a"]


# ---- the file --------------------------------------------------------------------------------------------------------


def test_what_a_crash_took_back_is_left_out_at_the_next_open(tmp_path: Path) -> None:
    file = SchemaFile(tmp_path)
    file.open(ONE, (ONE, 4))
    file.append([line("watched", ONE, 4), recorded("t", ONE, 50)])
    file.append([definition(ONE, 90, "t"), recorded("t", ONE, 95, "b")])
    with file.path.open("ab") as torn:
        torn.write(b'{"kind": "tab')
    again = SchemaFile(tmp_path)
    again.open(ONE, (ONE, 80))
    assert again.covered == (ONE, 50)
    again.append([line("covered", ONE, 80)])
    assert names_at(read_schema(tmp_path), ONE, 99) == ["a"]
    assert file.path.stat().st_mode & 0o777 == 0o640


def test_a_write_that_failed_leaves_nothing_behind(tmp_path: Path) -> None:
    file = SchemaFile(tmp_path)
    file.append([line("watched", ONE, 4)])
    with file.path.open("ab") as torn:
        torn.write(b'{"kind": "tab')
    file.append([recorded("t", ONE, 50)])
    assert [text[9:16] for text in file.path.read_text().splitlines()] == ['"watche', '"table"']


def test_a_purge_keeps_what_the_oldest_binlog_begins_with(tmp_path: Path) -> None:
    file = SchemaFile(tmp_path)
    file.append(
        [
            line("watched", ONE, 4),
            recorded("t", ONE, 50),
            recorded("gone", ONE, 50),
            recorded("u", ONE, 50),
            definition(ONE, 60, "t"),
            recorded("t", ONE, 70, "b"),
            definition(TWO, 60, "u"),
            line("dropped", TWO, 65, schema="shop", table="gone"),
            recorded("u", TWO, 70, "c"),
            line("covered", TWO, 80),
        ]
    )
    before = read_schema(tmp_path)
    file.purge(TWO)
    after = read_schema(tmp_path)
    for name in ("t", "u", "gone"):
        for offset in (4, 59, 61, 90):
            assert names_at(after, TWO, offset, name) == names_at(before, TWO, offset, name)
    assert names_at(after, ONE, 75) is None
    assert '"bin.000001"' not in file.path.read_text()
    file.append([line("covered", THREE, 4)])
    file.purge(THREE)
    assert names_at(read_schema(tmp_path), THREE, 4, "u") == ["c"]


# ---- what the intake and the archive's files tell ----------------------------------------------------------------------


def binlog_of(*statements: str) -> BinlogBuilder:
    binlog = BinlogBuilder()
    for text in statements:
        binlog.ddl(text)
    return binlog


def test_the_archived_binlogs_tell_what_was_not_noted(tmp_path: Path) -> None:
    binlog = binlog_of("CREATE TABLE a (x INT)", "INSERT INTO a VALUES (1)", "ALTER TABLE a ADD y INT")
    path = tmp_path / ONE
    path.write_bytes(binlog.data)
    starts = [event.start for event in binlog.events]
    found = list(scan_definitions(path, 4, binlog.size))
    assert [event.offset for event in found] == [starts[1], starts[3]]
    assert [event.offset for event in scan_definitions(path, starts[2], binlog.size)] == [starts[3]]
    assert found[0].raw == bytes(binlog.data[starts[1] : starts[2]])
    with pytest.raises(ValueError, match=r"bin\.000001"):
        list(scan_definitions(path, starts[2] + 1, binlog.size))
    with pytest.raises(ValueError, match="was expected"):
        list(scan_definitions(path, 4, binlog.size + 1))


def test_more_definitions_than_the_kernel_lists_at_once_are_all_found(tmp_path: Path) -> None:
    texts = [text for number in range(200) for text in (f"CREATE TABLE t{number} (x INT)", "INSERT INTO a VALUES (1)")]
    path = tmp_path / ONE
    path.write_bytes(binlog_of(*texts).data)
    found = [event.raw for event in scan_definitions(path, 4, path.stat().st_size)]
    assert len(found) == 200
    assert all(raw is not None and f"t{number} (".encode() in raw for number, raw in enumerate(found))


def test_notes_are_bounded_and_what_is_left_out_makes_everything_unknown() -> None:
    notes = DefinitionNotes(None)
    ingest = Ingest()
    data = bytearray(binlog_of(*["DROP TABLE t"] * 3).data[4:])
    for turn in range(5000):
        ingest.begin_file(4)
        ingest.feed(data, 0, len(data))
        notes.walked(ingest, f"bin.{turn + 1:06}", data, 0, 4)
    taken, place = notes.take()
    assert len(taken) == 10_001
    assert [taken[0].event is None, taken[-2].event is None, taken[-1].event is None] == [False, True, True]
    assert taken[-1].file == "bin.005000"
    assert place == Position("bin.005000", len(data) + 4)


def test_an_event_too_long_to_look_at_is_noted_without_its_text() -> None:
    notes = DefinitionNotes(None)
    ingest = Ingest()
    data = bytearray(binlog_of("CREATE TABLE t (a INT) COMMENT '" + "x" * 1_100_000 + "'").data[4:])
    ingest.feed(data, 0, len(data))
    notes.walked(ingest, ONE, data, 0, 4)
    ((note,), _place) = notes.take()
    assert note.event is not None and note.event.raw is None


async def test_a_fault_of_ours_is_told_and_nothing_is_noted_any_more_for_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_what: object) -> None:
        raise ZeroDivisionError("a bug")

    async def unused() -> NoReturn:
        raise AssertionError

    monkeypatch.setattr(SchemaFile, "open", fail)
    with structlog.testing.capture_logs() as logs:
        watch = SchemaWatch(SchemaRecording(unused, "repl"), tmp_path, [], None, lambda: None)
        watch.join(10)
    (told,) = logs
    assert (told["event"], told["again"]) == ("source_schema_failed", "at the next attachment")
    assert isinstance(told["exc_info"], ZeroDivisionError)
    assert not watch.notes.wanted
    watch.close()


def test_the_files_of_an_archive_are_as_they_were_when_it_was_asked(tmp_path: Path) -> None:
    files = [describe_new_file(f"mysql-bin.{number:06d}", bytes(BinlogBuilder().data[4:])) for number in (1, 2, 3)]
    for file in files:
        file.end = file.number * 100
    scanned = ScannedFiles(tmp_path, files)
    files[-1].end = 999
    files.append(describe_new_file("mysql-bin.000004", bytes(BinlogBuilder().data[4:])))
    wanted = [ScannedFile(f"mysql-bin.{n:06d}", tmp_path / f"mysql-bin.{n:06d}", n * 100) for n in (1, 2, 3)]
    assert (list(scanned), list(reversed(scanned)), scanned[1:]) == (wanted, wanted[::-1], wanted[1:])
    assert not ScannedFiles(tmp_path, [])
