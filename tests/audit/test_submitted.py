"""The example of deploy/spark, an audit and the feed, submitted to a cluster whose executors have nothing but a shared path."""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")
pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

import pyarrow.parquet as pq

from deploy.spark.package import package
from tests.audit.cluster_archive import Orders
from tests.audit.cluster_killing import failed_tasks
from tests.audit.cluster_run import fed_tables, without_spark
from tests.audit.test_rows import shop_binlog
from tests.audit.test_splits import write
from tests.support.spark_cluster import SparkCluster, need_java

ROOT = Path(__file__).resolve().parents[2]
SUBMIT = ROOT / "deploy" / "spark" / "submit"
EXAMPLE = ROOT / "deploy" / "spark" / "changes_per_hour.py"
FEED = ROOT / "deploy" / "spark" / "feed_tables.py"
AUDIT = ROOT / "relay" / "spark_submit.py"
_LONGEST_S: Final = 800
"""A quiet machine needs 40 s; one that is busy ten times as long."""

# Every query is small and runs once: to compile it, in Java or to Java, costs more than it saves.
_BRIEF = (
    "--conf spark.sql.codegen.wholeStage=false --conf spark.sql.codegen.factoryMode=NO_CODEGEN "
    "--conf spark.sql.adaptive.enabled=false"
)
# For spark-submit's own Java too, the driver's and the executor's.
_BRIEF_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"


def submit(cluster: SparkCluster, events: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs deploy/spark/submit, as somebody would who is not in the repository."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}:{environment['PATH']}",
        "PYSPARK_PYTHON": str(cluster.python),
        "MASTER": cluster.master,
        "JAVA_TOOL_OPTIONS": _BRIEF_JAVA,
        "SPARK_OPTIONS": "--driver-memory 1g --conf spark.executor.memory=512m --conf spark.executor.cores=1 --conf spark.cores.max=2 "
        "--conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=2 --conf spark.driver.host=127.0.0.1 "
        f"--conf spark.eventLog.enabled=true --conf spark.eventLog.dir={events.as_uri()} "
        f"--conf spark.eventLog.compress=false {_BRIEF}",
    }  # fmt: skip
    return subprocess.run(
        [str(SUBMIT), *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_LONGEST_S,
        check=False,
    )


# The scripts as spark-submit runs them, one after the other in one Spark, which takes long to start.
_ALL = """
import pathlib, runpy, sys
from pyspark.sql import SparkSession

def run(*command):
    sys.argv = list(command)
    runpy.run_path(command[0], run_name="__main__")

stop, SparkSession.stop = SparkSession.stop, lambda session: None
run({example!r}, {archive!r}, {out!r})
pathlib.Path({armed!r}).touch()
try:
    run({audit!r}, "tables", {archive!r}, "--out", {report!r})
except SystemExit as ended:
    code = ended.code
pathlib.Path({armed!r}).touch()
run({feed!r}, {config!r}, {checkpoint!r}, "--once")
stop(SparkSession.builder.getOrCreate())
sys.exit(code)
"""

# Of an executor's Python: where a file named so is there, its machine loses power while a task opens the second binlog.
_DIES = """
import os, signal, sys

armed = os.environ.get("DIES_IF_ARMED")

def dies(event, arguments):
    if event == "open" and str(arguments[0]).endswith("/bin.000002"):
        try:
            os.rename(armed, armed + ".dead")
        except FileNotFoundError:
            return
        os.killpg(os.getsid(0), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

if armed:
    sys.addaudithook(dies)
"""


class Replacing(threading.Thread):
    """Starts another worker for each that died. `died`: how many did."""

    def __init__(self, cluster: SparkCluster, dead: Path) -> None:
        super().__init__(name="replacing", daemon=True)
        self._cluster, self._dead = cluster, dead
        self._over = threading.Event()
        self.died = 0

    def run(self) -> None:
        while not self._over.wait(0.05):
            if self._dead.exists():
                self._dead.unlink()
                self.died += 1
                self._cluster.start_workers()

    def __enter__(self) -> "Replacing":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


@pytest.mark.timeout(_LONGEST_S + 60)
def test_the_example_an_audit_and_the_feed_are_whole_though_a_worker_dies_in_the_middle_of_the_last_two(
    tmp_path: Path,
) -> None:
    need_java()
    archive, out, report, events = (tmp_path / name for name in ("archive", "out", "report", "events"))
    archive.mkdir()
    events.mkdir()
    orders = Orders(7)
    # more than the feed's first batch, which has no beginning that Spark knows: the driver reads it
    write(archive, "bin.000001", orders.binlog(5000).data)
    second = orders.binlog(40).query("CREATE TABLE shop.others (id INT, name VARCHAR(20)) DEFAULT CHARSET=latin1")
    write(archive, "bin.000002", second.data)
    write(archive, "bin.000003", shop_binlog(10, table=b"others").data)
    config, armed = tmp_path / "feed.toml", tmp_path / "armed"
    config.write_text(
        f'[feed]\narchive = "{archive}"\ntarget = "{tmp_path / "lake"}"\ntables = ["shop.orders"]\nbatch_mb = 1\n'
    )
    every = tmp_path / "all.py"
    paths = {
        "archive": f"file://{archive}", "out": out, "report": report, "config": config, "armed": armed, "example": EXAMPLE,
        "audit": AUDIT, "feed": FEED, "checkpoint": tmp_path / "checkpoint",
    }  # fmt: skip
    every.write_text(_ALL.format(**{name: str(path) for name, path in paths.items()}))
    cluster = SparkCluster(tmp_path / "cluster")
    cluster.environment |= {"DIES_IF_ARMED": str(armed), "JAVA_TOOL_OPTIONS": _BRIEF_JAVA}
    with cluster:
        (library,) = cluster.python.parents[1].glob("lib/python*/site-packages")
        # No sitecustomize.py: Debian's Python has one of its own.
        (library / "dies_if_armed.py").write_text(_DIES)
        (library / "dies_if_armed.pth").write_text("import dies_if_armed\n")
        with Replacing(cluster, armed.with_name("armed.dead")) as replacing:
            done = submit(cluster, events, str(every), cwd=tmp_path)
    assert done.returncode == 1, done.stderr[-4000:]  # the audit found something
    assert replacing.died == 2
    assert failed_tasks(events) >= 2

    expected = without_spark(archive)
    counted = {key: rows for key, (rows, _sum, different) in expected.items() if rows == different}
    assert len(counted) == len(expected) == 6
    changes = pq.read_table(out / "changes").to_pylist()
    assert {(row["table"], name): row[name] for row in changes for name in ("insert", "update", "delete")} == counted
    assert pq.read_table(out / "findings").num_rows == 0

    assert f"Report: {report / 'report.html'}" in done.stdout
    told = json.loads((report / "audit.json").read_text())
    assert [finding["name"] for finding in told["findings"]] == ["no_primary_key"]
    for verb, name in (("insert", "rows_inserted"), ("update", "rows_updated"), ("delete", "rows_deleted")):
        assert told["figures"][name] == sum(rows for (_table, one), rows in counted.items() if one == verb)

    fed = fed_tables(config)
    assert {row["id"]: row["name"] for row in fed["current"]} == orders.rows
    places = {(row["sequence"], row["row"]) for row in fed["changes"]}
    assert len(places) == len(fed["changes"])
    operations = Counter(row["operation"] for row in fed["changes"])
    of_orders = {operation: rows for (table, operation), rows in counted.items() if table == "orders"}
    assert operations == {**of_orders, "create": 1}
    unpacked = list(cluster.directory.glob("worker*/app-*/*/binlog-relay/protocol/columns/rows/row_columns.*"))
    assert {path.suffix for path in unpacked} >= {".py"}


_ALONE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {others}:
            raise ImportError(name + " is not installed here")

sys.meta_path.insert(0, Missing())
sys.path.insert(0, {package!r})
from relay.spark.datasource import BinlogDataSource
from relay.binlog_tables.plan.schemas import LEVELS, arrow_schema
from pyspark.sql.pandas.types import from_arrow_schema

for level in LEVELS:
    source = BinlogDataSource(dict(path={archive!r}, level=level))
    reader = source.reader(from_arrow_schema(arrow_schema(level, tuple(LEVELS[level]))))
    print(level, sum(batch.num_rows for split in reader.partitions() for batch in reader.read(split)))
"""


def test_an_executor_needs_pyarrow_and_the_package_which_may_stay_a_zip(tmp_path: Path) -> None:
    write(tmp_path, "bin.000001", shop_binlog(3).data)
    zipped = package(tmp_path / "package.zip")
    others = {
        "structlog",
        "pydantic",
        "aiomysql",
        "pymysql",
        "typer",
        "rich",
        "uvloop",
        "cryptography",
        "aiohttp",
        "jinja2",
        "pygal",
    }
    program = _ALONE.format(others=others, package=str(zipped), archive=str(tmp_path / "bin.000001"))
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert dict(line.split() for line in done.stdout.splitlines()) | {"events": "", "statements": ""} == {
        "events": "",
        "transactions": "4",
        "rows": "8",
        "statements": "",
        "table_maps": "1",
        "findings": "0",
    }


def test_an_example_without_its_arguments_says_what_it_takes(tmp_path: Path) -> None:
    done = subprocess.run([str(SUBMIT)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "deploy/spark/submit JOB.py" in done.stdout
