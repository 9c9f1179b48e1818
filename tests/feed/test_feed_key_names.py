"""Foreign keys say names in any case: what a server changes by them makes tables stale, whichever case the binlog has."""

from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from relay.feed.lake.lake_table import STALE_REASON
from tests.conftest import ServerFactory
from tests.support.feed_histories import lake_rows, true_rows
from tests.support.feed_lake import SmallFeed, copied_binlogs

pytestmark = pytest.mark.interop

_ROWS = ["INSERT INTO {parent} VALUES (1, 1), (2, 2), (3, 3)", "INSERT INTO child VALUES (1, 1), (2, 2), (3, 3)"]
# What is said of the foreign key; what then changes the child.
OF_A_COLUMN = ("FOREIGN KEY (P) REFERENCES parent (ID) ON UPDATE CASCADE", "UPDATE parent SET id = 4 WHERE id = 2", [])
OF_A_TABLE = (
    "FOREIGN KEY (p) REFERENCES Parent (id) ON DELETE CASCADE",
    "DELETE FROM PARENT WHERE id = 2",
    ["--lower-case-table-names=1"],
)


@pytest.mark.parametrize("fed", [["shop.*"], ["shop.child"]], ids=["both are fed", "the child alone"])
@pytest.mark.parametrize("modes", [["current"], ["current", "changes"]], ids=["current", "with changes"])
@pytest.mark.parametrize("told", [OF_A_COLUMN, OF_A_TABLE], ids=["a column", "a table"])
@pytest.mark.parametrize("name", ["mysql56", "mariadb"])
def test_a_child_is_stale_whichever_case_its_key_names_the_parent_in(
    tmp_path: Path,
    servers: ServerFactory,
    name: str,
    told: tuple[str, str, list[str]],
    modes: list[str],
    fed: list[str],
) -> None:
    key, change, options = told
    server = servers(name).start(server_id=1, options=["--binlog-format=ROW", *options])
    child = f"CREATE TABLE child (id INT PRIMARY KEY, p INT, {key})"
    parent = "CREATE TABLE Parent" if options else "CREATE TABLE parent"
    rows = [one.format(parent=parent.split()[-1]) for one in _ROWS]
    made = f"{parent} (id INT PRIMARY KEY, n INT)"
    server.execute_many(["CREATE DATABASE shop", "USE shop", made, child, *rows, change])
    feed = SmallFeed(tmp_path, copied_binlogs(server, tmp_path / "binlogs"), "shop", modes=modes, tables=fed)
    stop = feed.run()
    names, true = true_rows(server, "shop", "child")
    current = feed.lake().open("current", "shop", "child")
    assert current is not None
    with current.scan() as reader:
        assert lake_rows(reader.read_all(), names) != true
    assert stop is not None or feed.property("child", STALE_REASON)
