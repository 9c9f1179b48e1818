"""The audit `readiness` on whole archives: statements, events and tables, and an archive in which there is nothing to find."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from protocol.binlog.event_type import EventType
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.gtid_set import GtidSet
from protocol.sql.tables.source_table import Key, Table
from relay.archive.archive import Archive
from relay.archive.storage.files import SCHEMA_NAME
from relay.archive.write.options import ArchiveOptions
from relay.audit.jobs import JOBS
from relay.audit.jobs.view_stops import view_stops
from relay.audit.readiness.defined_tables import read_table_map
from relay.audit.readiness.events import CHECKS
from relay.audit.runner.audit import Audit
from relay.audit.runner.audit_result import AuditOptions
from relay.schema_history.schema_record import line, table_line
from relay.source_tables.table_facts import table_facts
from relay.view.inspect.named_view import named_view
from relay.view.inspect.view_outlook import view_outlook
from relay.view.rules.settings import ViewSettings
from relay.view.running.view_opening import open_view
from tests.audit.job_runs import run
from tests.audit.test_job_boundaries import stamped
from tests.audit.test_splits import write
from tests.support.archive_filling import fill
from tests.support.binlog_builder import ALONE, CLOSES, INSIDE, OPENS, BinlogBuilder
from tests.support.event_stream import query_body
from tests.support.generation_filling import (
    A,
    B,
    append_files,
    behind_a_gap,
    change_source,
    identity,
    mysql_series,
    two_generations,
)
from tests.support.gtid_binlog import add_mysql, mysql_binlog


def table_map(
    types: bytes, metadata: bytes, optional: bytes = b"", schema: bytes = b"test", table: bytes = b"t"
) -> bytes:
    names = bytes([len(schema)]) + schema + b"\0" + bytes([len(table)]) + table + b"\0"
    nulls = bytes((len(types) + 7) // 8)
    return (
        struct.pack("<IHH", 42, 0, 1)
        + names
        + bytes([len(types)])
        + types
        + bytes([len(metadata)])
        + metadata
        + nulls
        + optional
    )


def clean_binlog() -> BinlogBuilder:
    """A table with a primary key, two transactions with GTIDs, and their end."""
    binlog = BinlogBuilder().event(EventType.PREVIOUS_GTIDS, encode_gtid_set(GtidSet.from_text("")), ALONE)
    gtid = b"\x01" + bytes(range(16)) + struct.pack("<Q", 1) + bytes(17)
    binlog.event(EventType.GTID, gtid, "opens").query("CREATE TABLE t (a INT PRIMARY KEY)", "closes")
    binlog.event(EventType.GTID, gtid[:17] + b"\x02" + gtid[18:], "opens").query("BEGIN", INSIDE)
    binlog.event(EventType.TABLE_MAP, table_map(b"\x03", b"", b"\x04\x02\x01a\x08\x01\x00"), INSIDE)
    binlog.event(EventType.WRITE_ROWS, struct.pack("<IHHH", 42, 0, 1, 2) + b"\x01\xff" + bytes(5), INSIDE)
    return binlog.xid().stop()


@pytest.mark.parametrize("job", [job for job in JOBS if job != "history"])  # that is about one row
async def test_no_audit_finds_anything_in_a_clean_archive(spark: Any, tmp_path: Path, job: str) -> None:
    await fill(tmp_path / "archive", ("bin.000001", stamped(clean_binlog().data)))
    done = run(spark, job, tmp_path / "archive", tmp_path)
    assert done.outcome.result.findings == []
    assert not done.outcome.found
    if job == "readiness":
        assert "Nothing here is known to stop a newer MySQL replica" in done.outcome.result.verdict


def test_statements_events_and_tables_are_counted_with_their_first_places(spark: Any, tmp_path: Path) -> None:
    binlog = BinlogBuilder()
    binlog.query("ALTER IGNORE TABLE t ADD UNIQUE (b)")
    for number in range(3):
        binlog.query(f"UPDATE t SET b = {number} LIMIT 1")
    binlog.query("SET PASSWORD FOR 'a'@'b' = PASSWORD('hunter2')")
    binlog.begin().event(EventType.TABLE_MAP, table_map(b"\x0c\x03", b"", b"\x04\x04\x01a\x01b"), INSIDE)
    binlog.event(EventType.WRITE_ROWS_V1, struct.pack("<IHH", 42, 0, 1) + b"\x02\xff" + bytes(13), INSIDE).xid()
    binlog.event(EventType.INCIDENT, b"\x01\x00\x00", ALONE)
    path = write(tmp_path, "bin.000001", binlog.data)
    done = run(spark, "readiness", path, tmp_path)
    counts = {finding.name: finding.count for finding in done.outcome.result.findings}
    assert counts == {
        "alter_ignore": 1,
        "limit_without_order": 3,
        "older_tables_changed": 3,
        "set_password_function": 1,
        "rows_v1": 1,
        "incident": 1,
        "view_stops": 2,  # the same incident, and the ALTER IGNORE
        "old_temporal_types": 1,
        "no_primary_key": 1,
        "zero_date_rows": 1,
        "no_gtids": 1,
    }
    assert done.places("limit_without_order") == [f"bin.000001:{binlog.events[2].start}"]
    assert done.finding("limit_without_order").severity == "warning"
    assert done.finding("rows_v1").severity == "error"
    assert [place.text for place in done.finding("no_primary_key").places] == ["test.t"]
    assert "hunter2" not in (done.out / "report.html").read_text() + (done.out / "audit.json").read_text()
    assert {row["check"] for row in done.parquet("cases")} == set(counts)
    assert "hunter2" not in str(done.parquet("cases"))


def test_tables_that_are_older_than_the_binlogs_are_named_with_what_to_ask_the_source(
    spark: Any, tmp_path: Path
) -> None:
    statements = (
        "CREATE TABLE made (a INT)", "CREATE TEMPORARY TABLE own (a INT)", "CREATE TABLE IF NOT EXISTS perhaps (a INT)",
        "DELETE FROM made", "DELETE FROM `Made` WHERE a = 1", "INSERT INTO own VALUES (1)", "DELETE FROM perhaps",
        "DELETE FROM old WHERE a = 1", "DELETE FROM old WHERE a = 2", "UPDATE other.old SET a = 1", "INSERT INTO mysql.x VALUES (1)",
    )  # fmt: skip
    for version, expected in (("5.6.24-log", 4), ("9.7.4", 0)):
        binlog = BinlogBuilder(version=version)
        for statement in statements:
            binlog.query(statement)
        directory = tmp_path / version
        directory.mkdir()
        done = run(spark, "readiness", write(directory, "bin.000001", binlog.data), directory)
        counts = {finding.name: finding.count for finding in done.outcome.result.findings}
        assert counts.get("older_tables_changed", 0) == expected
        if expected:
            finding = done.finding("older_tables_changed")
            assert sorted(place.text for place in finding.places) == ["other.old", "test.old", "test.perhaps"]
            assert finding.severity == "note"
            assert "information_schema.REFERENTIAL_CONSTRAINTS" in finding.advice


def test_each_check_of_events_and_tables_finds_what_it_is_about(spark: Any, tmp_path: Path) -> None:
    """Old event types and columns, rows of system tables, a mode that is gone, and keys that only the relay recorded."""
    binlog = BinlogBuilder().event(
        EventType.QUERY, query_body("FLUSH TABLES", status=b"\x01" + struct.pack("<Q", 1 << 28)), ALONE
    )
    for code in (6, 8, 10, 12):
        binlog.event(code, bytes(40), ALONE)
    binlog.event(EventType.ANONYMOUS_GTID, bytes(25), "opens").query("BEGIN", INSIDE)
    for table in (b"keyed", b"bare", b"untold"):
        binlog.event(EventType.TABLE_MAP, table_map(b"\x03", b"", table=table), INSIDE)
    binlog.event(EventType.TABLE_MAP, table_map(b"\x03", b"", schema=b"mysql", table=b"proc"), INSIDE)
    binlog.event(EventType.TABLE_MAP, table_map(b"\x0c\x00\xfd", b"\x0a\x02\x14\x00", table=b"keyed"), INSIDE).xid()
    binlog.begin().event(EventType.TABLE_MAP, table_map(b"\x03", b"", table=b"keyed"), INSIDE)
    binlog.event(20, struct.pack("<IHH", 42, 0, 1) + b"\x01\xff\0\x01\0\0\0", INSIDE).xid()
    keys = (("PRIMARY", Key(("a",), True)),)
    tables = (Table("test", "keyed", "InnoDB", (), keys), Table("test", "bare", "MyISAM"))
    lines = [line("watched", "bin.000001", 4), *(table_line(table_facts(table), "bin.000001", 4) for table in tables)]
    (tmp_path / SCHEMA_NAME).write_text("".join(lines))
    done = run(spark, "readiness", write(tmp_path, "bin.000001", binlog.data), tmp_path)
    counts = {finding.name: finding.count for finding in done.outcome.result.findings}
    assert counts == {
        "rows_v0": 1,
        "rows_unreadable": 1,  # which is said of them too: nothing here reads their rows
        "load_events": 4,
        "view_stops": 4,  # three transactions of load events, and the rows
        "anonymous_transactions": 1,
        "sql_mode_gone": 1,
        "old_temporal_types": 1,
        "old_decimal": 1,
        "old_varchar": 1,
        "system_table_rows": 1,
        "mixed_engines": 1,
        "no_primary_key": 1,
        "primary_key_unknown": 1,
    }
    assert [place.text for place in done.finding("no_primary_key").places] == ["test.bare"]
    assert [place.text for place in done.finding("primary_key_unknown").places] == ["test.untold"]
    assert [place.text for place in done.finding("system_table_rows").places] == ["mysql.proc"]


def in_transaction(binlog: BinlogBuilder, *texts: str) -> BinlogBuilder:
    """A transaction of statements."""
    binlog.query("BEGIN", OPENS)
    for text in texts:
        binlog.query(text, INSIDE)
    return binlog.xid()


async def two_files_that_stop_a_view(archive: Path) -> tuple[list[str], str]:
    """Where a view stops, and where it makes several transactions of one: that changes tables of both kinds, by two statements."""
    mixed = "UPDATE i, m SET i.a = 1, m.a = 'hunter2'"
    first = BinlogBuilder().query("CREATE TABLE i (a INT) ENGINE=InnoDB").query("CREATE TABLE m (a INT) ENGINE=MyISAM")
    places = [f"bin.000001:{first.size}"]
    in_transaction(first, mixed).rotate("bin.000002")
    second = BinlogBuilder(timestamp=1_700_010_000)
    places.append(f"bin.000002:{second.size}")
    in_transaction(second, mixed)
    places.append(f"bin.000002:{second.size}")
    second.query("CREATE TABLE c ENGINE=MyISAM SELECT 'hunter2'")
    taken_apart = f"bin.000002:{second.size}"
    in_transaction(second, "INSERT INTO i VALUES (1)", "INSERT INTO m VALUES (1)")
    await fill(archive, ("bin.000001", stamped(first.data)), ("bin.000002", stamped(second.data)))
    return places, taken_apart


async def test_what_stops_a_view_is_told_by_the_rules_that_make_it(spark: Any, tmp_path: Path) -> None:
    """With errors and ways on; what the rules judge is not counted once more as mixed."""
    places, taken_apart = await two_files_that_stop_a_view(tmp_path / "archive")
    done = run(spark, "readiness", tmp_path / "archive", tmp_path)
    assert done.places("view_stops") == places
    assert done.finding("view_stops").severity == "error"
    assert [(row["reason"], row["replica_error"]) for row in done.parquet("view_stops")] == [
        ("statement_mixes_engines", 1785),
        ("statement_mixes_engines", 1785),
        ("create_select", 1786),
    ]
    assert done.places("mixed_engines") == [taken_apart]
    assert [row[:2] for row in done.table("Reasons")] == [("statement_mixes_engines", 2), ("create_select", 1)]
    assert "hunter2" not in (done.out / "report.html").read_text() + (done.out / "audit.json").read_text()


async def test_what_stops_a_view_at_another_time_is_left_out_and_its_tables_are_known(tmp_path: Path) -> None:
    places, _ = await two_files_that_stop_a_view(tmp_path / "archive")
    for since, until, expected in ((1_700_009_000, None, places[1:]), (None, 1_700_009_000, places[:1])):
        times = [None if time is None else datetime.fromtimestamp(time, UTC) for time in (since, until)]
        found = view_stops(Audit(None, AuditOptions(str(tmp_path / "archive"), *times)))  # type: ignore[arg-type]
        assert [f"{stop.file}:{stop.offset}" for stop in found.stops] == expected


async def test_what_stops_a_view_is_told_of_files_that_are_read_over_a_network(tmp_path: Path) -> None:
    system = pytest.importorskip("fsspec").filesystem("memory")
    places, _ = await two_files_that_stop_a_view(tmp_path / "archive")
    for name in ("bin.000001", "bin.000002"):
        system.pipe(f"/readiness/{name}", (tmp_path / "archive" / name).read_bytes())
    found = view_stops(Audit(None, AuditOptions("memory://readiness")))  # type: ignore[arg-type]
    assert [f"{stop.file}:{stop.offset}" for stop in found.stops] == places


async def test_where_no_view_goes_on_is_told_and_what_nobody_could_look_at(spark: Any, tmp_path: Path) -> None:
    """A gap in the same archive, and a damaged file before it."""
    archive = tmp_path / "archive"
    await (await behind_a_gap(archive)).close()
    file = archive / "mysql-bin.000001"
    data = bytearray(file.read_bytes())
    data[-60] ^= 1
    file.write_bytes(data)
    done = run(spark, "readiness", archive, tmp_path)
    assert [row["reason"] for row in done.parquet("view_stops")] == ["gap_in_archive"]
    assert len(done.places("view_unknown")) == 1
    assert done.places("view_unknown")[0].startswith("mysql-bin.000001:")


async def goes_on(archive: Path) -> Archive:
    """Two sources whose transactions all have GTIDs."""
    return await two_generations(archive)


async def gave_numbers(archive: Path) -> Archive:
    """A source with a transaction without a GTID, and another one."""
    mirror = await Archive.open(archive)
    mirror.current.set_identity(identity(A, 1))
    await append_files(mirror, [("mysql-bin.000001", add_mysql(mysql_binlog(GtidSet()), None).data)])
    await change_source(mirror, identity(B, 2), mysql_series(2, f"{A}:1-3"))
    return mirror


async def lacks_gtids(archive: Path) -> Archive:
    """Another source, of which one transaction has no GTID."""
    mirror = await Archive.open(archive)
    mirror.current.set_identity(identity(A, 1))
    await append_files(mirror, mysql_series(1, f"{A}:1-3"))
    binlog = add_mysql(mysql_binlog(GtidSet.from_text(f"{A}:1-3")), None)
    await change_source(mirror, identity(B, 2), [("mysql-bin.000002", binlog.data)])
    return mirror


@pytest.mark.parametrize(
    ("make", "reasons"),
    [
        (goes_on, []),
        (gave_numbers, ["source_changed"]),
        (lacks_gtids, ["source_changed"]),
        (behind_a_gap, ["gap_in_archive"]),
    ],
)
async def test_of_another_source_the_audit_says_what_a_view_of_the_relay_would_do(
    tmp_path: Path, make: Callable[[Path], Awaitable[Archive]], reasons: list[str]
) -> None:
    mirror = await make(tmp_path / "archive")
    settings = ViewSettings("v", "assign", UUID(int=7))
    view = await open_view(mirror, settings, ArchiveOptions())
    view.begin()
    async with asyncio.timeout(20):
        while view.status.stop is None and view.status.behind_bytes:
            await asyncio.sleep(0.005)
    stop = view.status.stop
    await view.close()
    await mirror.close()
    assert [stop.reason.name] == reasons if stop is not None else not reasons
    audited = view_stops(Audit(None, AuditOptions(str(tmp_path / "archive")))).stops  # type: ignore[arg-type]
    ahead = view_outlook(named_view(tmp_path / "archive", replace(settings, name="w"))).found.stops
    for found in (audited, ahead):
        assert [one.reason.name for one in found] == reasons
        if stop is not None and make is not behind_a_gap:
            assert (found[0].file.rpartition("/")[2], found[0].offset) == (stop.file, stop.offset)
    assert [(one.file.rpartition("/")[2], one.offset) for one in audited] == [(one.file, one.offset) for one in ahead]


async def test_behind_a_change_at_which_a_view_ends_the_stops_of_another_are_listed(tmp_path: Path) -> None:
    mirror = await gave_numbers(tmp_path / "archive")
    binlog = add_mysql(add_mysql(mysql_binlog(GtidSet()), None), None)
    await change_source(mirror, identity(A, 3), [("mysql-bin.000005", binlog.data)])
    await mirror.close()
    found = view_stops(Audit(None, AuditOptions(str(tmp_path / "archive")))).stops  # type: ignore[arg-type]
    # A view of the second source gives no numbers and goes on, but each of these two transactions has no GTID.
    assert [(one.reason.name, one.file) for one in found] == [
        ("source_changed", "mysql-bin.000001"),
        ("source_changed", "g0003/mysql-bin.000005"),
        ("source_changed", "g0003/mysql-bin.000005"),
    ]


def test_a_newer_mariadb_is_judged_by_its_own_checks(spark: Any, tmp_path: Path) -> None:
    binlog = BinlogBuilder("mariadb").begin()
    binlog.event(EventType.TABLE_MAP, table_map(b"\x8c", b"\x02\x00", b"\x04\x02\x01a\x08\x01\x00"), INSIDE).xid()
    done = run(spark, "readiness", write(tmp_path, "bin.000001", binlog.data), tmp_path)
    assert {finding.name for finding in done.outcome.result.findings} == {"mariadb_events", "compressed_columns"}
    assert "newer MariaDB replica" in done.outcome.result.verdict


def test_a_mariadb_is_judged_for_mysql_where_that_is_asked_for(spark: Any, tmp_path: Path) -> None:
    binlog = BinlogBuilder("mariadb")
    for number in range(3):
        binlog.mariadb_gtid(standalone=False).query(f"UPDATE t SET b = {number} WHERE a = 1", INSIDE).xid()
    binlog.mariadb_gtid(standalone=True).query("CREATE TABLE k (a INT) ENGINE=Aria", CLOSES)
    path = write(tmp_path, "bin.000001", binlog.data)
    own = run(spark, "readiness", path, tmp_path)
    assert {finding.name for finding in own.outcome.result.findings} == {"mariadb_events"}
    done = run(spark, "readiness", path, tmp_path, target="mysql-9.7")
    assert "newer MySQL replica" in done.outcome.result.verdict
    assert ("judged for", "replicas of MySQL 9.7") in [(fact.name, fact.text) for fact in done.outcome.result.facts]
    assert "logged_changes" in done.names
    logged = done.finding("logged_changes")
    assert (logged.count, [place.text for place in logged.places]) == (3, ["UPDATE"])
    assert "mariadb_events" not in done.names


def test_an_archive_is_judged_for_the_version_that_is_asked_for(spark: Any, tmp_path: Path) -> None:
    binlog = BinlogBuilder().begin()
    binlog.event(EventType.TABLE_MAP, table_map(b"\x12", b"\x03", b"\x04\x02\x01a\x08\x01\x00"), INSIDE).xid()
    path = write(tmp_path, "bin.000001", binlog.data)
    assert "view_stops" not in run(spark, "readiness", path, tmp_path).names
    done = run(spark, "readiness", path, tmp_path, target="mysql-5.5")
    assert ("judged for", "replicas of MySQL 5.5") in [(fact.name, fact.text) for fact in done.outcome.result.facts]
    assert [place.text for place in done.finding("view_stops").places] == [
        "column_type_not_in_target (error 1677): column 1 of test.t is of type DATETIME, which MySQL 5.5 does not have"
    ]
    assert "for MySQL 5.5" in done.page.text


def test_primary_keys_are_known_with_full_metadata_only() -> None:
    told = {
        b"": None,
        b"\x01\x01\x00": None,
        b"\x04\x02\x01a": False,
        b"\x04\x02\x01a\x08\x01\x00": True,
        b"\x04\x02\x01a\x09\x02\x00\x05": True,
        b"\x04\x7f": None,
    }
    for optional, expected in told.items():
        assert read_table_map(table_map(b"\x03", b"", optional)[6:]).has_primary_key is expected


@pytest.mark.parametrize(
    ("code", "metadata", "name"),
    [
        (7, b"", "old_temporal_types"),
        (11, b"", "old_temporal_types"),
        (12, b"", "old_temporal_types"),
        (0, b"", "old_decimal"),
        (253, b"\x14\x00", "old_varchar"),
        (140, b"\x02", "compressed_columns"),
        (18, b"\x00", None),
        (246, b"\x0a\x00", None),
        (15, b"\x14\x00", None),
    ],
)
def test_old_column_types_are_found(code: int, metadata: bytes, name: str | None) -> None:
    found = [check.name for check in read_table_map(table_map(bytes([code]), metadata)[6:]).checks()]
    assert found == ([name] if name else [])


def test_every_event_type_belongs_to_one_check() -> None:
    types = [code for codes in CHECKS.values() for code in codes]
    assert len(types) == len(set(types))
