"""A stream of transactions: where it starts and ends, and that a query that is stopped and started sees each once."""

import errno
import itertools
import json
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from pyspark.errors import PySparkException

from protocol.position import Position
from relay.binlog_tables.decode.read_options import ReadOptions
from relay.binlog_tables.plan.packed_store import ArchiveStore
from relay.binlog_tables.plan.places import PositionGone
from relay.binlog_tables.plan.read_finding import FileLost, ReadRefused
from relay.binlog_tables.plan.schemas import TRANSACTIONS
from relay.spark.micro_batches import BinlogStreamReader, StreamBounds, limits_reads, starting_position
from tests.audit.test_splits import SPLIT, add_transaction, big_binlog, rows, split_list, splits_of, write
from tests.support.binlog_builder import BinlogBuilder
from tests.support.generation_filling import A, mariadb_series, mysql_series

OPTIONS = ReadOptions("transactions", tuple(TRANSACTIONS), False)
LONGEST_S = 200
"""Of a query, on a machine that is busy otherwise."""


def reader(path: Path, start: str | datetime = "earliest", **bounds: Any) -> BinlogStreamReader:
    return BinlogStreamReader((str(path),), SPLIT, OPTIONS, StreamBounds(start, **bounds))


def starts(splits: Any) -> list[tuple[str, int]]:
    return [(row["file"], row["start"]) for row in rows(split_list(splits), "transactions")]


def test_a_stream_starts_where_it_is_told(tmp_path: Path) -> None:
    first, second = big_binlog(5), big_binlog(7)
    write(tmp_path, "bin.000001", first.data)
    write(tmp_path, "bin.000002", second.data)
    assert reader(tmp_path).initialOffset() == {"file": "bin.000001", "position": 4}
    assert reader(tmp_path, "latest").initialOffset() == {"file": "bin.000002", "position": second.size}
    boundary = second.boundaries[3]
    assert reader(tmp_path, f"bin.000002:{boundary}").initialOffset() == {"file": "bin.000002", "position": boundary}


def test_a_start_inside_a_transaction_is_refused(tmp_path: Path) -> None:
    binlog = big_binlog(5)
    write(tmp_path, "bin.000001", binlog.data)
    inside = next(event.start for event in binlog.events if event.start not in binlog.boundaries)
    for position in (inside, inside + 1, binlog.size + 1):
        with pytest.raises(ValueError, match=f"bin.000001:{position} is not between two transactions"):
            reader(tmp_path, f"bin.000001:{position}").initialOffset()


@pytest.mark.parametrize("text", ["", "first", "bin.000001", "bin.000001:", ":77", "bin.000001:3", "bin.000001:-4"])
def test_what_is_no_starting_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="earliest, latest or FILE:POSITION"):
        starting_position(text)


def test_a_position_in_a_file_that_is_gone_says_where_to_go_on(tmp_path: Path) -> None:
    write(tmp_path, "bin.000002", big_binlog(2).data)
    with pytest.raises(PositionGone, match=r"The first position there is bin\.000002:4"):
        reader(tmp_path).partitions({"file": "bin.000001", "position": 4}, {"file": "bin.000002", "position": 4})


def test_a_transaction_that_is_still_written_is_not_there_yet(tmp_path: Path) -> None:
    binlog = big_binlog(3)
    for size in range(binlog.size - 700, binlog.size):
        path = write(tmp_path, "bin.000001", binlog.data[:size])
        end = reader(tmp_path).latestOffset()
        assert end == {"file": "bin.000001", "position": max(b for b in binlog.boundaries if b <= size)}
    path.write_bytes(binlog.data)
    assert reader(tmp_path).latestOffset() == {"file": "bin.000001", "position": binlog.size}


def test_ranges_that_follow_each_other_hold_every_transaction_once(tmp_path: Path) -> None:
    limits = pytest.importorskip("pyspark.sql.streaming.datasource", reason="Spark before 4.2 limits no reads")
    for number, count in enumerate((60, 1, 400, 30), 1):
        write(tmp_path, f"bin.{number:06}", big_binlog(count).data)
    every = starts(reader(tmp_path).partitions(reader(tmp_path).initialOffset(), reader(tmp_path).latestOffset()))
    assert len(every) == 491
    found: list[tuple[str, int]] = []
    at = reader(tmp_path).initialOffset()
    for turn in itertools.count():
        end = reader(tmp_path).latestOffset(at, limits.ReadMaxBytes(100_000))
        if end == at:
            break
        part = starts(reader(tmp_path).partitions(at, end))
        assert len(part) < 80, f"too much at once in turn {turn}"
        found += part
        at = end
    assert found == every
    assert turn > 5


def test_a_stream_never_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binlog = big_binlog(5)
    path = write(tmp_path, "bin.000001", binlog.data)
    stream = reader(tmp_path)
    end = stream.latestOffset(stream.initialOffset())
    path.write_bytes(binlog.data[: binlog.boundaries[2]])
    assert stream.latestOffset(end) == end
    assert stream.latestOffset() == end  # as Spark 4.1 asks
    path.write_bytes(binlog.data)

    def refuse(self: ArchiveStore, path: str) -> None:
        raise OSError(errno.EIO, "Input/output error", path)

    monkeypatch.setattr(ArchiveStore, "open", refuse)
    with pytest.raises(OSError, match=r"Input/output error.*bin\.000001"):
        reader(tmp_path).latestOffset(end)


def test_a_stream_stops_at_a_file_that_it_cannot_read_rather_than_leave_it_out(tmp_path: Path) -> None:
    binlog = big_binlog(5)
    path = write(tmp_path, "bin.000001", binlog.data)
    stream = reader(tmp_path)
    (task,) = stream.partitions(stream.initialOffset(), stream.latestOffset())
    path.write_bytes(binlog.data[: binlog.boundaries[2]])
    with pytest.raises(FileLost, match=r"file_shrunk in bin\.000001 at .* goes on from its checkpoint"):
        list(stream.read(task))
    path.unlink()
    with pytest.raises(FileLost, match=r"file_gone in bin\.000001 at 4"):
        list(stream.read(task))
    path.write_bytes(binlog.data)
    assert sum(batch.num_rows for batch in stream.read(task)) == 5


@pytest.mark.parametrize("in_use", [False, True])
@pytest.mark.parametrize("cut", ["between two transactions", "in one", "in an event"])
def test_a_stream_stops_at_a_file_that_is_not_all_there_yet(tmp_path: Path, cut: str, in_use: bool) -> None:
    binlog = big_binlog(5)
    data = bytearray(binlog.data)
    data[4 + 17] |= in_use  # as a file has it that its server is writing; it has no part in the checksum
    end = binlog.boundaries[3] + {"between two transactions": 0, "in one": 1, "in an event": 30}[cut]
    if cut == "in one":
        end = next(event.end for event in binlog.events if event.start == binlog.boundaries[3])
    path = write(tmp_path, "bin.000001", data[:end])
    stream = reader(tmp_path)
    before = stream.latestOffset()
    assert before == {"file": "bin.000001", "position": binlog.boundaries[3]}
    write(tmp_path, "bin.000002", BinlogBuilder(started=False).transaction(20).data)
    for start in (stream.initialOffset(), before):
        with pytest.raises(FileLost, match=r"file_incomplete in bin\.000001 at .*Copy it again"):
            for task in stream.partitions(start, stream.latestOffset()):
                list(stream.read(task))
    assert [row["finding"] for row in rows(splits_of(tmp_path), "findings")][-1] == "file_incomplete"
    assert "transaction_cut" not in [row["finding"] for row in rows(splits_of(tmp_path), "transactions")]
    path.write_bytes(binlog.rotate("bin.000002").data)
    found = [batch.num_rows for task in stream.partitions(before, stream.latestOffset()) for batch in stream.read(task)]
    assert sum(found) == len(binlog.boundaries[3:-1])


def test_a_stream_stops_where_a_file_between_two_is_not_there(tmp_path: Path) -> None:
    binlog = big_binlog(5)
    for number in (1, 2, 5):
        write(tmp_path, f"bin.{number:06}", binlog.data)
    stream = reader(tmp_path)
    start, end = stream.initialOffset(), stream.latestOffset()
    with pytest.raises(FileLost, match=r"files_missing in bin\.000005 at 4: bin\.000003 to bin\.000004 are not there"):
        for task in stream.partitions(start, end):
            list(stream.read(task))
    skipping = reader(tmp_path, fails=False)
    found = [
        one for task in skipping.partitions(start, end) for batch in skipping.read(task) for one in batch.to_pylist()
    ]
    assert [one["finding"] for one in found].count("files_missing") == 1 and len(found) == 16
    write(tmp_path, "bin.000003", binlog.data)
    write(tmp_path, "bin.000004", binlog.data)
    assert sum(batch.num_rows for task in stream.partitions(start, end) for batch in stream.read(task)) == 25


def test_damage_in_the_newest_file_does_not_hold_a_stream_up(tmp_path: Path) -> None:
    binlog = big_binlog(5)
    data = bytearray(binlog.data)
    data[binlog.events[6].start + 25] ^= 1
    write(tmp_path, "bin.000001", data)
    assert reader(tmp_path).latestOffset() == {"file": "bin.000001", "position": binlog.size}


# ---- where it starts and ends ------------------------------------------------------------------------------------------


def timed(*times: int) -> BinlogBuilder:
    """A transaction for each time, in seconds."""
    binlog = BinlogBuilder()
    for time_s in times:
        binlog.timestamp = time_s
        add_transaction(binlog, 10)
    return binlog


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def test_a_stream_starts_and_ends_at_times(tmp_path: Path) -> None:
    first, second = timed(1000, 1010, 1020), timed(1030, 1025, 1040)
    write(tmp_path, "bin.000001", first.data)
    write(tmp_path, "bin.000002", second.data)
    of_first, of_second = list(first.groups), list(second.groups)
    places = {
        1005: ("bin.000001", of_first[1]),
        1020: ("bin.000001", of_first[2]),
        1025: ("bin.000002", of_second[0]),
        1031: ("bin.000002", of_second[2]),
        1041: ("bin.000002", second.size),
    }
    for seconds, (file, position) in places.items():
        place = {"file": file, "position": position}
        assert reader(tmp_path, at(seconds)).initialOffset() == place
        assert reader(tmp_path, end_time=at(seconds)).latestOffset() == place


def test_a_stream_ends_at_a_position_whatever_is_behind_it(tmp_path: Path) -> None:
    first, second = timed(1, 2, 3), timed(4, 5, 6)
    write(tmp_path, "bin.000001", first.data)
    write(tmp_path, "bin.000002", second.data)
    place = list(first.groups)[2]
    end = {"file": "bin.000001", "position": place}
    stream = reader(tmp_path, end=Position("bin.000001", place))
    assert stream.latestOffset(stream.initialOffset()) == stream.latestOffset(end) == end
    assert stream.reportLatestOffset() == end
    behind = {"file": "bin.000002", "position": 4}
    assert stream.latestOffset(behind) == behind
    inside = reader(tmp_path, end=Position("bin.000001", place + 1))
    assert inside.latestOffset() == end
    ahead = reader(tmp_path, end=Position("bin.000009", 4))
    assert ahead.latestOffset() == {"file": "bin.000002", "position": second.size}


def test_what_is_gone_is_a_finding_where_a_stream_may_lose_it(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        write(tmp_path, f"bin.{number:06}", big_binlog(2).data)
    stream = reader(tmp_path, fails=False)
    start = stream.initialOffset()
    for number in (1, 2):
        (tmp_path / f"bin.{number:06}").unlink()
    end = stream.latestOffset(start)
    found = rows(split_list(stream.partitions(start, end)), "transactions", "file", "finding")
    assert [(row["file"], row["finding"]) for row in found] == [
        ("bin.000003", "files_gone"),
        *[("bin.000003", None)] * 2,
    ]
    with pytest.raises(PositionGone):
        reader(tmp_path).latestOffset(start)


@pytest.mark.parametrize("flavour", ["mysql", "mariadb"])
def test_a_stream_starts_behind_the_transactions_that_were_executed(tmp_path: Path, flavour: str) -> None:
    if flavour == "mysql":
        names, files = [f"{A}:{number}" for number in range(1, 7)], mysql_series(1, f"{A}:1-3", f"{A}:4-6")
        executed = [f"{A}:1-{number}" for number in range(1, 7)]
    else:
        names = ["0-1-1", "0-1-2", "1-1-1", "0-1-3", "0-2-4", "1-1-2"]
        files = mariadb_series(1, ",".join(names[:3]), ",".join(names[3:]))
        executed = ["0-1-1", "0-1-2", "0-1-2,1-1-1", "0-1-3,1-1-1", "0-2-4,1-1-1", "0-2-4,1-1-2"]
    for name, data in files:
        write(tmp_path, name, data)
    found = rows(splits_of(tmp_path), "transactions", "gtid", "file", "start")
    assert [row["gtid"] for row in found] == names
    for number in range(5):
        place = {"file": found[number + 1]["file"], "position": found[number + 1]["start"]}
        assert reader(tmp_path, executed=executed[number]).initialOffset() == place
    assert reader(tmp_path, executed=executed[5]).initialOffset() == reader(tmp_path).latestOffset()
    (tmp_path / files[0][0]).unlink()
    with pytest.raises(ReadRefused, match="begin behind these transactions"):
        reader(tmp_path, executed=executed[1]).initialOffset()
    with pytest.raises(ValueError, match="startingGtid is 'x'"):
        reader(tmp_path, executed="x").initialOffset()


def run(spark: Any, source: Path, work: Path, **options: Any) -> list[dict[str, Any]]:
    """One run of a query over what is there now, with its checkpoint in `work`; what it says of its batches with rows."""
    stream = spark.readStream.format("binlog").option("level", "transactions")
    for name, value in options.items():
        stream = stream.option(name, value)
    query = (
        stream.load(str(source))
        .select("file", "start", "rows_inserted")
        .writeStream.format("parquet")
        .option("path", str(work / "out"))
        .option("checkpointLocation", str(work / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(LONGEST_S)
    progress = [json.loads(one.json) for one in query.recentProgress]
    return [batch for batch in progress if batch["numInputRows"]]


def test_a_query_started_again_from_its_checkpoint_sees_every_transaction_once(spark: Any, tmp_path: Path) -> None:
    source, work = tmp_path / "source", tmp_path / "work"
    source.mkdir()
    first, second = big_binlog(120), big_binlog(80)
    # ends inside a transaction, then is whole and the next one has begun; then that is whole
    for files in (
        {"bin.000001": first.data[: first.size // 2]},
        {"bin.000001": first.data, "bin.000002": second.data[:9000]},
        {"bin.000002": second.data},
    ):
        for name, data in files.items():
            write(source, name, data)
        run(spark, source, work, **({"maxBytesPerTrigger": 200_000} if limits_reads() else {}))
    found = [tuple(row) for row in spark.read.parquet(str(work / "out")).collect()]
    groups = [("bin.000001", first), ("bin.000002", second)]
    assert sorted(found) == sorted((name, start, 2) for name, binlog in groups for start in binlog.groups)


def test_a_run_of_what_is_there_goes_to_the_end_fixed_at_its_start(spark: Any, tmp_path: Path) -> None:
    if not limits_reads():
        pytest.skip("Spark before 4.2 gives one batch for availableNow")
    source, work = tmp_path / "source", tmp_path / "work"
    source.mkdir()
    binlogs = {f"bin.{number:06}": big_binlog(30) for number in range(1, 6)}
    for name, binlog in binlogs.items():
        write(source, name, binlog.data)
    batches = run(spark, source, work, maxBytesPerTrigger=70_000)
    assert len(batches) > 4
    assert batches[-1]["sources"][0]["latestOffset"] == batches[-1]["sources"][0]["endOffset"]
    # as a driver that was killed inside of its second batch leaves it
    for directory, last in (("checkpoint/commits", 0), ("checkpoint/offsets", 1), ("out/_spark_metadata", 0)):
        for path in (work / directory).iterdir():
            number = path.name.strip(".").partition(".")[0]
            if number.isdigit() and int(number) > last:
                path.unlink()
    again = run(spark, source, work, maxBytesPerTrigger=70_000)
    assert len(again) == len(batches) - 1
    assert again[-1]["sources"][0]["endOffset"] == batches[-1]["sources"][0]["endOffset"]
    write(source, "bin.000006", big_binlog(3).data)
    assert [batch["numInputRows"] for batch in run(spark, source, work, maxTransactionsPerTrigger=2)] == [2, 1]
    found = [tuple(row) for row in spark.read.parquet(str(work / "out")).collect()]
    groups = [*binlogs.items(), ("bin.000006", big_binlog(3))]
    assert sorted(found) == sorted((name, start, 2) for name, binlog in groups for start in binlog.groups)


def test_a_query_follows_what_is_written_meanwhile(spark: Any, tmp_path: Path) -> None:
    source, work = tmp_path / "source", tmp_path / "work"
    source.mkdir()
    binlog = big_binlog(200)
    path = write(source, "bin.000001", binlog.data[:500])

    def grow() -> None:
        with path.open("ab") as file:
            for at in range(500, binlog.size, 7001):
                file.write(binlog.data[at : at + 7001])
                file.flush()
                time.sleep(0.05)

    query = (
        spark.readStream.format("binlog")
        .option("level", "transactions")
        .load(str(source))
        .select("start")
        .writeStream.format("parquet")
        .option("path", str(work / "out"))
        .option("checkpointLocation", str(work / "checkpoint"))
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    query.processAllAvailable()
    writer = threading.Thread(target=grow)
    writer.start()
    writer.join()
    query.processAllAvailable()
    batches = query.lastProgress["batchId"]
    query.stop()
    assert sorted(row["start"] for row in spark.read.parquet(str(work / "out")).collect()) == sorted(binlog.groups)
    assert batches >= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingPosition": "somewhere"}, "startingPosition is 'somewhere'"),
        ({"maxBytesPerTrigger": "all"}, "maxBytesPerTrigger is 'all'"),
        (
            {"startingTimestamp": "2026-01-01", "startingGtid": "0-1-1"},
            "startingTimestamp and startingGtid are both there",
        ),
        ({"level": "events", "columns": "transaction_ordinal"}, "transaction_ordinal counts from a file's start"),
    ],
)
def test_a_stream_option_that_cannot_be_is_refused(
    spark: Any, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    write(tmp_path, "bin.000001", big_binlog(1).data)
    stream = spark.readStream.format("binlog").options(**options)
    with pytest.raises(PySparkException, match=message):
        query = stream.load(str(tmp_path)).writeStream.format("noop").start()
        query.processAllAvailable()
