"""The data source as queries see it, in one local Spark session."""

import inspect
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, LessThanOrEqual, Not, StringStartsWith
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType, _parse_datatype_string

from relay.binlog_tables.decode.levels import read_split
from relay.binlog_tables.decode.read_options import ReadOptions
from relay.binlog_tables.plan.schemas import LEVELS, arrow_schema, known_columns
from relay.binlog_tables.plan.series_files import find_files
from relay.binlog_tables.plan.splits import written_between
from relay.binlog_tables.plan.store import LocalStore
from relay.binlog_tables.plan.wanted import Range, Wanted
from relay.spark.datasource import BinlogDataSource, PushingReader
from relay.spark.pushdown import push
from relay.spark.spark_task import tasks_of
from tests.audit.test_splits import big_binlog, split_list, splits_of, write
from tests.corpus.expected import WITH_PAYLOADS
from tests.support.archive_filling import fill
from tests.support.binlog_builder import BinlogBuilder

RECORDED = Path(__file__).resolve().parents[1] / "corpus" / "recorded"
EVERY = str(RECORDED / "*.binlog")


def read(spark: Any, path: str | Path, level: str = "events", **options: Any) -> Any:
    reader = spark.read.format("binlog").option("level", level)
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load(str(path))


def listed_events(path: Path) -> Counter[str]:
    """How often each kind of event stands in the server's own SHOW BINLOG EVENTS."""
    lines = path.with_suffix(".listing").read_text().splitlines()
    return Counter(line.split("\t")[1] for line in lines if not line.startswith("#"))


@pytest.mark.parametrize("level", LEVELS)
def test_batches_have_the_types_that_spark_makes_of_the_columns(spark: Any, level: str) -> None:
    known = known_columns(level)
    spark_schema = _parse_datatype_string(", ".join(f"`{name}` {kind}" for name, kind in known.items()))
    since_42 = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    assert to_arrow_schema(spark_schema, **since_42).equals(arrow_schema(level, tuple(known)))  # type: ignore[arg-type]


def test_events_are_counted_as_the_server_lists_them(spark: Any) -> None:
    counted = read(spark, EVERY).groupBy("file").count().collect()
    listed = {path.name: listed_events(path).total() for path in RECORDED.glob("*.binlog")}
    found = {row["file"]: row["count"] for row in counted}
    for name in WITH_PAYLOADS:
        assert found.pop(f"{name}.binlog") < listed.pop(f"{name}.binlog")
    assert found == listed


def test_transactions_can_be_queried(spark: Any) -> None:
    path = RECORDED / "mysql56.binlog"
    transactions = read(spark, path, "transactions")
    assert [row.asDict() for row in transactions.groupBy("kind").count().orderBy("kind").collect()] == [
        {"kind": "ddl", "count": 3},
        {"kind": "mixed", "count": 1},
        {"kind": "row", "count": 5},
        {"kind": "statement", "count": 5},
    ]
    assert transactions.where("rolled_back").count() == 1
    assert transactions.where("array_contains(tables, 'test.nontrx')").count() == 1
    rows = transactions.agg(F.sum("rows_inserted"), F.sum("bytes"), F.max("end")).first()
    assert tuple(rows) == (13, 4564 - 120, 4564)


def test_tasks_share_a_file_and_lose_nothing(spark: Any, tmp_path: Path) -> None:
    binlog = big_binlog()
    path = write(tmp_path, "bin.000001", binlog.data)
    cut = read(spark, path, "transactions", splitBytes=65536)
    assert cut.rdd.getNumPartitions() > 5
    assert cut.count() == 600
    assert read(spark, path, splitBytes=65536).count() == len(binlog.events)
    assert read(spark, path, splitBytes=65536, columns="transaction_ordinal").agg(F.max("transaction_ordinal")).first()[
        0
    ] == (600)


async def test_an_archive_can_be_read_while_it_is_there(spark: Any, tmp_path: Path) -> None:
    first, second = big_binlog(20), big_binlog(30)
    await fill(tmp_path, ("mysql-bin.000001", bytes(first.data)), ("mysql-bin.000002", bytes(second.data)))
    found = read(spark, tmp_path, "transactions").groupBy("file").count().orderBy("file").collect()
    assert [tuple(row) for row in found] == [("mysql-bin.000001", 20), ("mysql-bin.000002", 30)]
    assert read(spark, tmp_path, "findings").count() == 0


def test_workers_read_through_fsspec(spark: Any, tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    write(tmp_path, "bin.000001", big_binlog(20).data)
    found = read(spark, f"local://{tmp_path}", "transactions").collect()
    assert [row["file"] for row in found] == ["bin.000001"] * 20


# ---- columns ---------------------------------------------------------------------------------------------------------


def test_columns_are_chosen_by_an_option_or_a_schema(spark: Any) -> None:
    path = RECORDED / "mysql56.binlog"
    by_option = read(spark, path, columns="position, type_code")
    by_schema = spark.read.format("binlog").schema("position bigint, type_code int").load(str(path))
    assert by_option.columns == by_schema.columns == ["position", "type_code"]
    assert by_option.collect() == by_schema.collect()


@pytest.mark.parametrize(
    ("options", "schema", "message"),
    [
        ({"level": "pages"}, None, "there is no level 'pages'; there are events, transactions, "),
        ({"columns": "position,colour"}, None, "level events has no column 'colour'; it has file"),
        ({"mode": "sometimes"}, None, "there is no mode 'sometimes'; there are permissive and failfast"),
        ({"splitBytes": "many"}, None, "splitBytes is 'many'"),
        ({"pushdown": "perhaps"}, None, "pushdown is 'perhaps'"),
        ({"since": "2026-02-01", "until": "2026-01-01"}, None, "is not before until"),
        ({"since": "yesterday"}, None, "since is 'yesterday'; it takes a time like"),
        ({"endingPosition": "latest"}, None, "endingPosition is 'latest'; it takes FILE:POSITION"),
        ({"spliBytes": "65536"}, None, "there is no option spliBytes"),
        ({}, StructType().add("position", "integer"), "column position of level events is bigint, not int"),
        ({}, StructType().add("colour", "string"), "level events has no column 'colour'"),
    ],
)
def test_a_wrong_option_is_refused_with_what_there_is(
    options: dict[str, str], schema: StructType | None, message: str
) -> None:
    source = BinlogDataSource({"path": str(RECORDED / "mysql56.binlog"), **options})
    with pytest.raises(ValueError, match=re.escape(message)):
        source.reader(schema or source.schema())


@pytest.mark.parametrize(
    ("options", "schema", "message"),
    [
        ({"columns": "position,colour"}, None, "level events has no column 'colour'; it has file"),
        ({"spliBytes": "65536"}, None, "there is no option splibytes"),
        ({}, "position int", "column position of level events is bigint, not int"),
    ],
)
def test_spark_says_why_an_option_was_refused(
    spark: Any, options: dict[str, str], schema: str | None, message: str
) -> None:
    reader = spark.read.format("binlog").options(**options)
    if schema:
        reader = reader.schema(schema)
    with pytest.raises(PySparkException, match=re.escape(message)):
        reader.load(str(RECORDED / "mysql56.binlog")).collect()


def test_a_path_with_nothing_to_read_is_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="holds no binlog"):
        read(spark, tmp_path).collect()


# ---- filters ---------------------------------------------------------------------------------------------------------

FILTERS = [
    "type = 'Query'",
    "type IN ('Query', 'Xid') AND position > 1000",
    "position BETWEEN 1000 AND 2000",
    "position = 1345 OR type = 'Xid'",
    "table = 'trx'",
    "schema = 'test' AND table IS NULL",
    "table <> 'trx'",
    "time >= '2026-11-20 20:27:33' AND time < '2026-11-20 20:27:34'",
    "time > timestamp '2026-11-20 20:27:33 UTC'",
    "file LIKE 'mysql56%'",
    "file = 'mysql56.binlog' AND boundary = 'End Transaction'",
    "type = 'No such type'",
    "finding IS NOT NULL",
]


@pytest.mark.parametrize("condition", FILTERS)
def test_a_filter_gives_what_it_gives_without_being_pushed(spark: Any, condition: str) -> None:
    pushed, held = (
        {tuple(row) for row in read(spark, EVERY, pushdown=on).where(condition).select("file", "position").collect()}
        for on in ("true", "false")
    )
    assert pushed == held


def test_a_frame_gives_all_its_rows_after_a_query_that_wanted_some(spark: Any) -> None:
    events = read(spark, RECORDED / "mysql56.binlog")
    every = events.count()
    some, none = events.where("type = 'Xid'"), events.where("type = 'No such type'")
    assert 0 < some.count() < every
    assert none.count() == 0
    assert events.count() == every
    assert some.unionByName(none).count() == none.unionByName(some).count() == some.count()


def wanted_by(filters: list[Filter], level: str = "events") -> Wanted:
    wanted = Wanted()
    push(filters, level, wanted)
    return wanted


def test_what_can_be_used_of_a_filter_is_used() -> None:
    wanted = wanted_by(
        [
            EqualTo(("type",), "Query"),
            GreaterThan(("position",), 10),
            LessThanOrEqual(("position",), 20),
            In(("table",), ("a", "b")),
            In(("type_code",), (2, 16)),
            StringStartsWith(("file",), "mysql"),
            Not(EqualTo(("schema",), "x")),
            EqualTo(("nothing",), 1),
            EqualTo(("schema",), "t\\xffst"),  # as names are shown that are no UTF-8
        ]
    )
    assert wanted.names == {"type": frozenset({"Query"}), "table": frozenset({"a", "b"})}
    assert wanted.ranges == {"position": Range(11, 20), "type_code": Range(2, 16)}
    assert wanted.wants_file("mysql-bin.000001")
    assert not wanted.wants_file("mariadb-bin.000001")


@pytest.mark.parametrize(
    ("level", "filters", "test"),
    [
        ("transactions", [EqualTo(("kind",), "row")], lambda row: row["kind"] == "row"),
        ("transactions", [GreaterThan(("rows_inserted",), 1)], lambda row: row["rows_inserted"] > 1),
        ("transactions", [EqualTo(("gtid",), "0-1-4")], lambda row: row["gtid"] == "0-1-4"),
        ("transactions", [LessThanOrEqual(("xid",), 1 << 63)], lambda row: row["xid"] is not None),
        (
            "rows",
            [EqualTo(("row",), 0), In(("operation",), ("update", "delete"))],
            lambda row: row["row"] == 0 and row["operation"] in ("update", "delete"),
        ),
        ("events", [EqualTo(("crc",), "none"), EqualTo(("type",), "Xid")], lambda row: False),
        ("statements", [GreaterThan(("position",), 1000)], lambda row: row["position"] > 1000),
    ],
)
def test_rows_that_a_filter_leaves_out_are_not_handed_to_spark(
    level: str, filters: list[Filter], test: Callable[[dict[str, Any]], bool]
) -> None:
    def found(wanted: Wanted) -> list[dict[str, Any]]:
        options = ReadOptions(level, tuple(LEVELS[level]), False)
        (split,) = splits_of(RECORDED / "mariadb.binlog", 1 << 30)
        return [row for batch in read_split(LocalStore(), split, options, wanted) for row in batch.to_pylist()]

    every, some = found(Wanted()), found(wanted_by(filters, level))
    assert some == [row for row in every if test(row)]
    assert len(some) < len(every)


def test_files_and_splits_outside_of_a_filter_are_not_planned(tmp_path: Path) -> None:
    binlog = big_binlog()
    for number in (1, 2):
        write(tmp_path, f"bin.00000{number}", binlog.data)

    def planned(*filters: Filter) -> list[tuple[str, int]]:
        source = BinlogDataSource({"path": str(tmp_path), "splitBytes": "65536", "pushdown": "true"})  # type: ignore[arg-type]
        reader = source.reader(source.schema())
        assert isinstance(reader, PushingReader)
        assert list(reader.pushFilters(list(filters))) == list(filters)
        return [(split.name, split.start) for split in split_list(reader.partitions())]

    every = planned()
    assert {name for name, _start in every} == {"bin.000001", "bin.000002"}
    assert planned(EqualTo(("file",), "bin.000002")) == [split for split in every if split[0] == "bin.000002"]
    late = planned(GreaterThan(("position",), len(binlog.data) - 100))
    assert late == [every[len(every) // 2 - 1], every[-1]]
    assert planned(EqualTo(("file",), "bin.3")) == []


def test_what_was_written_behind_the_ending_position_is_not_read(spark: Any, tmp_path: Path) -> None:
    first, second, third = big_binlog(3), big_binlog(5), big_binlog(7)
    for number, binlog in enumerate((first, second, third), start=1):
        write(tmp_path, f"bin.00000{number}", binlog.data)
    whole = read(spark, tmp_path, "transactions").where("file = 'bin.000002'").orderBy("end").collect()[1]["end"]

    def seen(position: str) -> list[tuple[str, int]]:
        counted = read(spark, tmp_path, "transactions", endingPosition=position).groupBy("file").count()
        return sorted(tuple(row) for row in counted.collect())

    assert seen(f"bin.000002:{whole}") == [("bin.000001", 3), ("bin.000002", 2)]
    assert seen(f"bin.000002:{second.size}") == [("bin.000001", 3), ("bin.000002", 5)]
    assert seen("bin.000002:4") == [("bin.000001", 3)]
    assert read(spark, tmp_path, "findings", endingPosition=f"bin.000002:{whole}").count() == 0
    (tmp_path / "bin.000002").unlink()
    lost = read(spark, tmp_path, "findings", endingPosition=f"bin.000002:{whole}").collect()
    assert [(row["file"], row["finding"]) for row in lost] == [("bin.000002", "file_gone")]


def test_since_and_until_leave_out_files_and_what_happened_at_other_times(spark: Any, tmp_path: Path) -> None:
    begun = 1_700_000_000
    for number in range(4):
        binlog = BinlogBuilder(timestamp=begun + 1000 * number)
        for second in range(3):
            binlog.timestamp = begun + 1000 * number + 100 * second
            binlog.ddl(f"CREATE TABLE t{second} (a INT)")
        write(tmp_path, f"bin.00000{number}", binlog.data)

    def seen(**options: str) -> list[tuple[int, int]]:
        frame = read(spark, tmp_path, "transactions", **options).selectExpr(
            "right(file, 1)", "unix_timestamp(first_time)"
        )
        return sorted((int(row[0]), int(row[1]) - begun) for row in frame.collect())

    def at(second: int) -> str:
        return datetime.fromtimestamp(begun + second, UTC).isoformat()

    assert len(seen()) == 12
    assert seen(since=at(1100), until=at(2100)) == [(1, 1100), (1, 1200), (2, 2000)]
    assert seen(since=at(3200)) == [(3, 3200)]
    assert seen(until=at(100).removesuffix("+00:00")) == [(0, 0)]
    files = find_files(LocalStore(), str(tmp_path))
    kept = written_between(LocalStore(), files, begun + 1100, begun + 2000)
    assert [file.name for file in kept] == ["bin.000001"]
    (tmp_path / "bin.000003").write_bytes(b"no binlog")
    assert [file.name for file in written_between(LocalStore(), files, begun + 9000, begun + 9001)] == [
        "bin.000002",  # when it ended is not known any more
        "bin.000003",
    ]


# ---- findings --------------------------------------------------------------------------------------------------------


def test_what_is_wrong_is_a_row_or_an_error_as_the_mode_says(spark: Any, tmp_path: Path) -> None:
    binlog = big_binlog(10)
    data = bytearray(binlog.data)
    bad = binlog.events[17]
    data[bad.start + 25] ^= 1
    write(tmp_path, "bin.000001", data)
    write(tmp_path, "bin.000002", b"\xfdbin" + bytes(600))
    for level in ("events", "transactions", "findings"):
        found = read(spark, tmp_path, level).where("finding IS NOT NULL").select("file", "finding").orderBy("file")
        assert [tuple(row) for row in found.collect()] == [
            ("bin.000001", "checksum_mismatch"),
            ("bin.000002", "file_encrypted"),
        ]
        with pytest.raises(PySparkException, match=f"checksum_mismatch in bin.000001 at {bad.start}"):
            read(spark, tmp_path / "bin.000001", level, mode="FAILFAST").collect()


def test_a_table_of_sql_keeps_its_options_and_several_paths_are_one_source(spark: Any, tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"part{number}").mkdir()
        write(tmp_path / f"part{number}", f"bin.{number:06}", big_binlog(3).data)
    parts = [str(tmp_path / f"part{number}") for number in (1, 2)]
    frame = spark.read.format("binlog").option("level", "transactions").load(parts)
    assert [row["file"] for row in frame.select("file").collect()] == ["bin.000001"] * 3 + ["bin.000002"] * 3
    where = f"LOCATION '{tmp_path / 'warehouse'}'"
    spark.sql(f"CREATE DATABASE binlogs {where}")
    try:
        spark.sql(f"CREATE TABLE binlogs.t USING binlog OPTIONS (level 'transactions') LOCATION '{parts[0]}'")
        assert spark.sql("SELECT count(*), min(kind) FROM binlogs.t").collect() == [(3, "row")]
        spark.sql(f"CREATE TABLE binlogs.own (gtid STRING) USING binlog OPTIONS (path '{parts[0]}')")
        with pytest.raises(PySparkException, match="CREATE TABLE without columns"):
            spark.sql("SELECT * FROM binlogs.own").collect()
    finally:
        spark.sql("DROP DATABASE binlogs CASCADE")


def test_small_files_share_a_task_as_far_as_every_core_has_one(tmp_path: Path) -> None:
    data = big_binlog(3).data
    for number in range(1, 101):
        write(tmp_path, f"bin.{number:06}", data)
    splits = splits_of(tmp_path, 128 << 20)
    for cores in (1, 2, 8):
        tasks = tasks_of(splits, 128 << 20, cores)
        assert split_list(tasks) == splits
        assert cores <= len(tasks) <= cores + 4
    assert len(tasks_of(splits, 4 << 20, 1)) == 100
