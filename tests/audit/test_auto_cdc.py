"""What AUTO CDC makes of level changes, as far as it can be tried without a table format that can MERGE."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")

from tests.audit.test_rows import add_map, add_rows, image, recorded, shop_binlog
from tests.audit.test_splits import write

ROOT = Path(__file__).resolve().parents[2]


def archive_of_orders(directory: Path) -> Path:
    """Orders 0 to 3: 0 was changed, 1 deleted; 2 became 7, and 3 became 2."""
    binlog = shop_binlog(2).begin()
    add_map(binlog, b"orders")
    add_rows(binlog, 31, image(2, "row 2") + image(7, "row 2") + image(3, "row 3") + image(2, "row 3"))
    write(directory, "bin.000001", binlog.xid().data)
    recorded(directory, "id", "name")
    return directory


def test_the_newest_change_of_each_key_is_the_table(spark: Any, tmp_path: Path) -> None:
    changes = spark.read.format("binlog").option("table", "shop.orders").load(str(archive_of_orders(tmp_path)))
    changes.createOrReplaceTempView("order_changes")
    newest = spark.sql(
        "SELECT id, newest.* FROM (SELECT id, max_by(struct(name, _change_type), struct(_commit_version, _change_number)) AS newest"
        " FROM order_changes GROUP BY id) WHERE newest._change_type IN ('insert', 'update_postimage') ORDER BY id"
    )
    assert [(row["id"], row["name"]) for row in newest.collect()] == [(0, "changed"), (2, "row 3"), (7, "row 2")]


@pytest.mark.skipif(
    not os.environ.get("BINLOG_RELAY_PIPELINES"),
    reason="starts a Spark of its own for a minute: BINLOG_RELAY_PIPELINES=1 python -m pytest tests/audit/test_auto_cdc.py",
)
def test_the_example_of_a_pipeline_is_one_that_spark_takes(tmp_path: Path) -> None:
    pytest.importorskip("pyspark.pipelines.api", reason="Spark before 4.3 has no AUTO CDC")
    pytest.importorskip("grpc", reason="pipelines need pip install 'pyspark[pipelines]'")
    program = Path(sys.executable).parent / "spark-pipelines"
    if shutil.which("java") is None or not program.exists():
        pytest.skip("there is no Java, or no spark-pipelines beside this Python")
    (tmp_path / "archive").mkdir()
    archive_of_orders(tmp_path / "archive")
    shutil.copy(ROOT / "deploy" / "spark" / "orders_pipeline.py", tmp_path)
    (tmp_path / "spark-pipeline.yml").write_text(
        f"name: orders\nstorage: file://{tmp_path}/storage\nlibraries: [{{glob: {{include: orders_pipeline.py}}}}]\n"
    )
    environment = os.environ | {
        "BINLOG_ARCHIVE": str(tmp_path / "archive"),
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    done = subprocess.run(
        [program, "run", "--conf", "spark.driver.memory=1g", "--conf", "spark.driver.host=127.0.0.1"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    # all of the flow is understood: what is left is the table format, which pyspark does not have
    assert "AUTOCDC_TARGET_DOES_NOT_SUPPORT_MERGE" in done.stdout + done.stderr
