"""How many transactions may run side by side, and why others may not: the same before a view is made, in its list, and for monitors."""

import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from tests.audit.job_runs import run
from tests.conftest import ServerFactory
from tests.interop.test_monitor_programs import collected
from tests.interop.test_view_dependencies import TABLES, changes, write
from tests.support.chain import wait_until
from tests.support.client_tools import need_tool
from tests.support.numbered_groups import width_of
from tests.support.view_chain import VIEW, ViewChain, view_keys

pytestmark = pytest.mark.interop
# Groups of which the last file knows the tables by those before, and some that rules take apart.
MORE = (
    "ALTER TABLE plain ADD INDEX more (name, id)",
    "CREATE TABLE mixed (id INT PRIMARY KEY) ENGINE=MyISAM",
    *("BEGIN", "INSERT INTO mixed VALUES (1)", "INSERT INTO keyless VALUES (1, 'x')", "COMMIT"),
    "CREATE TEMPORARY TABLE passing (id INT)",
    "DROP TABLE lists",
    "CREATE TABLE lists (a INT, b VARCHAR(10) COLLATE utf8_bin, UNIQUE (a, b)) ENGINE=MyISAM",
)


def test_the_audit_the_view_and_the_metrics_have_the_same_figures(
    servers: ServerFactory, spark: Any, tmp_path: Path
) -> None:
    need_tool("mysqld_exporter")
    chain = ViewChain(servers, "mysql56", tmp_path, views=[view_keys(dependencies="writeset")])
    chain.relay.add_account(user="finder", password="finder-password", view=VIEW, plugin="mysql_native_password")
    with chain:
        chance = random.Random(6)
        write(chain, [*TABLES, *changes(chance, 700)])
        for more in ([], MORE):
            chain.source.sql("FLUSH BINARY LOGS")
            write(chain, ["COMMIT", *more, *changes(chance, 700)])
        chain.wait_viewed()
        made = listed(chain)
        assert made["transactions"] > 800 and made["beside_the_one_before"] > 100
        assert made["mean_width"] == round(width_of(sorted(chain.view_directory().glob("mysql-bin.??????"))), 2)
        assert {("no_key", "d.keyless"), ("statement", None), ("cascade", "d.parent")} <= set(serial(made))
        check_metrics(chain, made, tmp_path / "exporter.log")
        audited = run(spark, "transactions", chain.relay.archive, tmp_path)
    (total,) = audited.parquet("dependencies")
    assert serial({"serial": audited.parquet("serial")}) == serial(made)
    assert total == {name: value for name, value in made.items() if name != "serial"}


def listed(chain: ViewChain) -> dict[str, Any]:
    """What `view list` says of the view, once it says it of all transactions."""
    known: dict[str, Any] = {}

    def is_of_all() -> bool:
        done = chain.relay.command("view", "list", "--json")
        assert done.returncode == 0, done.stderr
        known.update(json.loads(done.stdout)["dependencies"] or {})
        return known.get("transactions") == int(variables(chain)["Binlog_relay_view_transactions"])

    wait_until(is_of_all, "the counts are kept", 30)
    return known


def serial(told: Mapping[str, Any]) -> dict[tuple[str, str | None], int]:
    """By cause and table."""
    return {(one["why"], one["table"]): one["transactions"] for one in told["serial"]}


def variables(chain: ViewChain) -> dict[str, str]:
    return {str(name): str(value) for name, value in chain.view_sql("SHOW GLOBAL STATUS LIKE 'Binlog_relay_view%'")}


def check_metrics(chain: ViewChain, made: Mapping[str, Any], log: Path) -> None:
    """What Prometheus is told by its exporter for MySQL."""
    text, failed = collected(f"finder:finder-password@(127.0.0.1:{chain.relay.port})/", log)
    assert "global_status" not in failed, log.read_text()
    of_view = re.findall(r"^mysql_global_status_binlog_relay_view_(\w+) (\S+)$", text, re.MULTILINE)
    metrics = {name: float(value) for name, value in of_view}
    assert metrics["transactions"] == made["transactions"]
    assert metrics["transactions_beside"] == made["beside_the_one_before"]
    assert metrics["batches"] == made["batches"]
    assert metrics["mean_width"] == made["mean_width"]
    assert metrics["share_beside"] == pytest.approx(made["beside_the_one_before"] / made["transactions"], abs=1e-4)
    causes = {why for why, _table in serial(made)}
    for cause in causes:
        assert metrics[f"serial_{cause}"] == sum(count for (why, _table), count in serial(made).items() if why == cause)
    assert {name for name, value in metrics.items() if name.startswith("serial_") and value and "_of_" not in name} == {
        f"serial_{cause}" for cause in causes
    }
    assert metrics["serial_no_key_of_d_keyless"] == serial(made)["no_key", "d.keyless"]
