"""Audits of what a real old source wrote: an old MySQL with both kinds of engines, in statement format and in rows."""

import contextlib
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from deploy.servers import Server
from tests.audit.job_runs import run
from tests.audit.test_real_servers import mysqlbinlog
from tests.conftest import ServerFactory

pytestmark = pytest.mark.interop


def write_mixture(server: Server) -> Path:
    """The finished binlog with two groups that mix, one of them in the unsafe order, one rolled back, one error."""
    server.execute_many(
        [
            "CREATE DATABASE mix",
            "FLUSH BINARY LOGS",
            "CREATE TABLE mix.inno (a INT PRIMARY KEY) ENGINE=InnoDB",
            "CREATE TABLE mix.my (a INT PRIMARY KEY) ENGINE=MyISAM",
        ]
    )
    connection = server.connect("mix")
    try:
        with connection.cursor() as cursor:
            for statement in (
                "SET binlog_format = STATEMENT",
                "INSERT INTO inno VALUES (1)",
                "INSERT INTO my VALUES (1)",
                *("BEGIN", "INSERT INTO inno VALUES (2)", "INSERT INTO my VALUES (2)", "COMMIT"),
                *("BEGIN", "INSERT INTO inno VALUES (3)", "UPDATE my SET a = a + 100", "ROLLBACK"),
            ):
                cursor.execute(statement)
            with contextlib.suppress(Exception):
                cursor.execute("INSERT INTO my VALUES (7), (7)")  # the first row stays
            cursor.execute("SELECT count(*) FROM my WHERE a = 7")
            assert cursor.fetchone()[0] == 1
            for number in range(10, 30):
                cursor.execute(f"INSERT INTO inno VALUES ({number})")
            cursor.execute("SET binlog_format = ROW")
            cursor.execute("INSERT INTO inno VALUES (200), (201)")
            cursor.execute("DELETE FROM my")
    finally:
        connection.close()
    server.sql("FLUSH BINARY LOGS")
    return server.binlogs()[-2]


def test_mixed_engines_of_mysql56_are_found_and_its_counts_are_the_servers_own(
    servers: ServerFactory, spark: Any, tmp_path: Path
) -> None:
    server = servers("mysql56")
    server.start(server_id=7)
    path = write_mixture(server)
    listed = server.sql(f"SHOW BINLOG EVENTS IN '{path.name}'")
    printed = mysqlbinlog(server, path)
    statements = [str(row[5]) for row in listed if row[2] == "Query"]

    mixing = run(spark, "mixing", path, tmp_path)
    assert mixing.names == {"mixed_group", "late_change", "closed_by_rollback", "statement_with_error"}
    assert mixing.finding("mixed_group").count == 2
    assert mixing.finding("late_change").count == 2
    assert mixing.finding("closed_by_rollback").count == statements.count("ROLLBACK") == 1
    errors = re.findall(r"error_code=([1-9]\d*)", printed)
    assert mixing.finding("statement_with_error").count == len(errors) == 1
    assert mixing.finding("statement_with_error").places[0].text == f"error {errors[0]}: INSERT INTO my VALUES (?)"
    begins = [row[1] for row in listed if row[2] == "Query" and str(row[5]) == "BEGIN"]
    assert {place.position for place in mixing.finding("mixed_group").places} <= set(begins)
    engines = {row["table"]: row["transactional"] for row in mixing.parquet("engines")}
    assert engines == {"mix.inno": True, "mix.my": False}

    transactions = run(spark, "transactions", path, tmp_path)
    counted = Counter[str]()
    rows = Counter[str]()
    for row in transactions.parquet("rates"):
        counted[row["closed_by"]] += row["transactions"]
        for verb in ("inserted", "updated", "deleted"):
            rows[verb] += row[f"rows_{verb}"]
    assert counted["xid"] == sum(row[2] == "Xid" for row in listed) == 23
    assert counted["commit"] == statements.count("COMMIT")
    assert counted["rollback"] == 1
    assert rows["inserted"] == len(re.findall(r"^### INSERT INTO", printed, re.MULTILINE)) == 2
    assert rows["deleted"] == len(re.findall(r"^### DELETE FROM", printed, re.MULTILINE))

    for name in ("boundaries", "continuity"):
        assert run(spark, name, path, tmp_path).names == set()
    whole = run(spark, "continuity", server.datadir, tmp_path)
    assert whole.names == set()
    assert whole.outcome.result.verdict.startswith("Complete from mysql-bin.000001:4")
