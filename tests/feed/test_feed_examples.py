"""The examples of docs/FEED.md run as they stand there, on the tables of a feed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from tests.conftest import ServerFactory
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop
PAGE = Path(__file__).resolve().parents[2] / "docs" / "FEED.md"


def test_the_pages_python_reads_what_was_fed_and_its_airflow_task_feeds_it(
    tmp_path: Path, servers: ServerFactory
) -> None:
    page = PAGE.read_text(encoding="utf-8")
    server = servers("mysql56")
    server.start(server_id=1, options=["--binlog-format=ROW"])
    server.execute_many(
        [
            "CREATE DATABASE shop",
            "USE shop",
            "CREATE TABLE orders (id INT PRIMARY KEY, amount INT)",
            "INSERT INTO orders VALUES (1, 10), (2, 5)",
            "UPDATE orders SET amount = 20 WHERE id = 1",
        ]
    )
    feed = SmallFeed(tmp_path, copied_binlogs(server, tmp_path / "binlogs"), "shop")
    task = re.search(r'bash_command="(binlog-relay [^"]+)"', page)
    assert task is not None
    words = task[1].replace("/etc/feed.toml", str(feed.config)).split()
    subprocess.run([sys.executable, "-m", "relay", *words[1:]], check=True, capture_output=True)

    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert code is not None
    done = subprocess.run(
        [sys.executable, "-c", code[1].replace("/lake/shop", str(tmp_path / "lake"))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "25" in done.stdout and done.stdout.count("amount") >= 3
