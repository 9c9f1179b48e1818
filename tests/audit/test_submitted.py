"""The example of deploy/spark, and an audit, submitted to executors that have nothing but a shared path."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

import pyarrow.parquet as pq
import pyspark

from deploy.spark.package import package
from tests.audit.test_rows import recorded, shop_binlog
from tests.audit.test_splits import write

ROOT = Path(__file__).resolve().parents[2]
SUBMIT = ROOT / "deploy" / "spark" / "submit"
EXAMPLE = ROOT / "deploy" / "spark" / "changes_per_hour.py"
AUDIT = ROOT / "relay" / "spark_submit.py"


# Every query is small and runs once: to compile it, in Java or to Java, costs more than it saves.
_BRIEF = "--conf spark.sql.codegen.wholeStage=false --conf spark.sql.codegen.factoryMode=NO_CODEGEN"
# For spark-submit's own Java too, the driver's and the executor's.
_BRIEF_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """pyspark's own distribution, with a place for the work of executors that the test may throw away."""
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("there is no Java: Spark needs 17 or later")
    home = tmp_path / "spark-home"
    home.mkdir()
    for path in Path(pyspark.__file__).parent.iterdir():
        if path.name in ("bin", "jars", "python", "sbin"):
            (home / path.name).symlink_to(path)
    yield home


def submit(home: Path, master: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs deploy/spark/submit, as somebody would who is not in the repository."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {
        "SPARK_HOME": str(home),
        "PATH": f"{home / 'bin'}:{environment['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
        "MASTER": master,
        "JAVA_TOOL_OPTIONS": _BRIEF_JAVA,
        "SPARK_OPTIONS": "--driver-memory 1g --conf spark.executor.memory=512m --conf spark.ui.enabled=false "
        "--conf spark.sql.shuffle.partitions=2 --conf spark.driver.host=127.0.0.1 " + _BRIEF,
    }
    return subprocess.run(
        [str(SUBMIT), *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


# Both scripts as spark-submit runs them, one after the other in one Spark, which takes long to start.
_BOTH = """
import runpy, sys
from pyspark.sql import SparkSession

stop, SparkSession.stop = SparkSession.stop, lambda session: None
sys.argv = [{example!r}, {archive!r}, {out!r}]
runpy.run_path({example!r}, run_name="__main__")
SparkSession.stop = stop
sys.argv = [{audit!r}, "tables", {archive!r}, "--out", {report!r}]
runpy.run_path({audit!r}, run_name="__main__")
"""


def test_the_example_and_an_audit_run_where_executors_see_the_archive_and_nothing_else(
    home: Path, tmp_path: Path
) -> None:
    archive, out, report = tmp_path / "archive", tmp_path / "out", tmp_path / "report"
    archive.mkdir()
    write(archive, "bin.000001", shop_binlog(50).data)
    write(archive, "bin.000002", shop_binlog(10, table=b"others").data)
    recorded(archive, "id", "name")
    both = tmp_path / "both.py"
    both.write_text(
        _BOTH.format(
            example=str(EXAMPLE), archive=f"file://{archive}", out=str(out), audit=str(AUDIT), report=str(report)
        )
    )
    # a cluster of one worker with processes of its own: they run elsewhere, and get the code from spark-submit
    done = submit(home, "local-cluster[1,1,512]", str(both), cwd=tmp_path)
    assert done.returncode == 1, done.stderr[-4000:]  # the audit found something
    assert "warning: Tables without a primary key: 1\n  bin.000001:" in done.stdout
    assert f"Report: {report / 'report.html'}" in done.stdout
    found = {finding["name"] for finding in json.loads((report / "audit.json").read_text())["findings"]}
    assert found == {"no_primary_key", "primary_key_unknown"}
    changes = pq.read_table(out / "changes").to_pylist()
    assert sorted((row["table"], row["insert"], row["update"], row["delete"]) for row in changes) == [
        ("orders", 100, 1, 1),
        ("others", 20, 1, 1),
    ]
    assert pq.read_table(out / "findings").num_rows == 0
    unpacked = list(home.glob("work/app-*/0/binlog-relay/protocol/columns/rows/row_columns.*"))
    assert {path.suffix for path in unpacked} >= {".py"}


_ALONE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {others}:
            raise ImportError(name + " is not installed here")

sys.meta_path.insert(0, Missing())
sys.path.insert(0, {package!r})
from relay.audit.datasource import BinlogDataSource
from relay.audit.plan.schemas import LEVELS, arrow_schema
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
