"""What a machine of a cluster may lack: the package, the archive's directory, the output's; and what is told of it."""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema

from relay.audit.runner.run_job import write_frame
from relay.binlog_tables.plan.read_finding import ReadRefused
from relay.binlog_tables.plan.schemas import arrow_schema
from relay.commands.outcome import CommandFailed
from relay.spark.datasource import BinlogDataSource
from relay.spark.spark_task import SplitTask
from tests.audit.test_rows import shop_binlog
from tests.audit.test_splits import write


def reader_of(path: Path | str) -> Any:
    columns = ("file", "operation")
    return BinlogDataSource({"path": str(path), "level": "rows"}).reader(
        from_arrow_schema(arrow_schema("rows", columns))
    )


# An executor's Python: it has what is installed, and {gone} not.
_EXECUTOR = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {gone} or name in {gone}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

sys.meta_path.insert(0, Missing())
sys.path.insert(0, {root!r})
from pyspark.serializers import CloudPickleSerializer
CloudPickleSerializer().loads(open({packed!r}, "rb").read())
"""


@pytest.mark.parametrize(
    ("gone", "told"),
    [
        ({"relay", "protocol"}, "has no package binlog-relay: No module named 'relay'"),
        (
            {"relay.binlog_tables.plan.wanted"},
            "has another version of binlog-relay: it has no relay.binlog_tables.plan.wanted",
        ),
        (set(), ""),
    ],
)
def test_an_executor_without_the_package_says_so(tmp_path: Path, gone: set[str], told: str) -> None:
    write(tmp_path, "bin.000001", shop_binlog(1).data)
    packed = tmp_path / "packed"
    packed.write_bytes(cloudpickle.dumps(reader_of(tmp_path)))
    root = str(Path(__file__).resolve().parents[2])
    program = _EXECUTOR.format(gone=gone or {"nothing"}, root=root, packed=str(packed))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert bool(told) == bool(done.returncode), done.stderr
    if told:
        assert f"RuntimeError: The executor on {os.uname().nodename} (Python 3." in done.stderr
        assert told in done.stderr
        assert "docs/SPARK.md, 'On a cluster'" in done.stderr


def test_a_reader_that_was_sent_reads_the_same(tmp_path: Path) -> None:
    write(tmp_path, "bin.000001", shop_binlog(3).data)
    reader = reader_of(tmp_path)
    (task,) = reader.partitions()
    sent, sent_task = pickle.loads(cloudpickle.dumps((reader, task)))
    assert isinstance(sent_task, SplitTask)
    assert list(sent.read(sent_task)) == list(reader.read(task)) != []


def test_a_path_that_depends_on_where_a_process_works_is_made_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "bin.000001", shop_binlog(1).data)
    monkeypatch.chdir(tmp_path)
    reader = reader_of("bin.000001")
    (task,) = reader.partitions()
    monkeypatch.chdir("/")
    assert sum(batch.num_rows for batch in reader.read(task)) == 4


def test_a_machine_without_the_archives_directory_stops_and_one_whose_file_was_purged_goes_on(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.mkdir()
    write(archive, "bin.000001", shop_binlog(1).data)
    reader = reader_of(archive)
    (task,) = reader.partitions()
    (archive / "bin.000001").unlink()
    assert sum(batch.num_rows for batch in reader.read(task)) == 1  # the finding
    archive.rmdir()
    with pytest.raises(ReadRefused, match=f"{os.uname().nodename} has no directory {archive}, where the driver found"):
        list(reader.read(task))


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="a URL with a password in it is shown in plans") as caught:
        reader_of("s3://AKIA:hidden-word@bucket/archive")
    assert "hidden-word" not in str(caught.value)


def test_rows_that_executors_wrote_elsewhere_are_missed(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.range(10, numPartitions=3)
    write_frame(frame, tmp_path / "whole.parquet")
    write_frame(frame.where("id > 10"), tmp_path / "empty.parquet")
    write_frame(spark.createDataFrame([], "a int"), tmp_path / "nothing.parquet")
    glob = Path.glob
    # what one of the executors wrote is on its own disk
    monkeypatch.setattr(Path, "glob", lambda path, pattern: sorted(glob(path, pattern))[1:])
    with pytest.raises(CommandFailed, match=r"executors wrote 10 rows to apart\.parquet, and 7 of them are in"):
        write_frame(frame, tmp_path / "apart.parquet")


def test_spark_shows_what_a_reader_says(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="a URL with a password in it"):
        spark.read.format("binlog").load("s3://a:b@c/d").count()
