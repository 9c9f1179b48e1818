"""A stream of transactions: where it starts and ends, and that a query that is stopped and started sees each once."""

import errno
import itertools
import threading
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from pyspark.errors import PySparkException

from relay.audit.decode.levels import ReadOptions
from relay.audit.micro_batches import BinlogStreamReader, limits_reads, starting_position
from relay.audit.plan.places import PositionGone
from relay.audit.plan.read_finding import FileLost
from relay.audit.plan.schemas import TRANSACTIONS
from relay.audit.plan.store import LocalStore
from tests.audit.test_splits import SPLIT, big_binlog, rows, split_list, write

OPTIONS = ReadOptions("transactions", tuple(TRANSACTIONS), False)


def reader(path: Path, start: str = "earliest", most_bytes: int | None = None) -> BinlogStreamReader:
    return BinlogStreamReader((str(path),), SPLIT, OPTIONS, start, most_bytes)


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

    def refuse(self: LocalStore, path: str) -> None:
        raise OSError(errno.EIO, "Input/output error", path)

    monkeypatch.setattr(LocalStore, "open", refuse)
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


def test_damage_in_the_newest_file_does_not_hold_a_stream_up(tmp_path: Path) -> None:
    binlog = big_binlog(5)
    data = bytearray(binlog.data)
    data[binlog.events[6].start + 25] ^= 1
    write(tmp_path, "bin.000001", data)
    assert reader(tmp_path).latestOffset() == {"file": "bin.000001", "position": binlog.size}


def run(spark: Any, source: Path, work: Path, **options: Any) -> None:
    """One run of a query over what is there now, with its checkpoint in `work`."""
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
    assert query.awaitTermination(60)


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
