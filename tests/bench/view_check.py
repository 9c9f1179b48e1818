"""`view check`: how long a DBA waits for the list of what will stop a view, and the same of a view that stops very often."""

import json
import time
from pathlib import Path
from typing import Final

from pymysql.constants import CLIENT

from deploy.servers.mysql56 import MySQL56
from tests.bench.figures import GB, MB, Report
from tests.bench.relays import make_relay
from tests.support.relay_process import RelayProcess
from tests.support.view_chain import VIEW, add_views, view_keys

_STATEMENTS: Final = 400_000
_STOPS: Final = 1_000
_AT_ONCE: Final = 500
_AIM_S_PER_GB: Final = 60.0
_AIM_STOPS_S: Final = 10.0
_TIMEOUT_S: Final = 900.0
_DEFINITIONS: Final = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.customer (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(80), mail VARCHAR(120), at DATETIME, n INT)",
    "CREATE TABLE shop.sale (id INT PRIMARY KEY AUTO_INCREMENT, customer INT, what TEXT, price DECIMAL(10,2), KEY (customer))",
)


def run(directory: Path, quick: bool) -> Report:
    """Check an archive of MySQL 5.6 in STATEMENT format without a stop, then one with 1,000."""
    statements, stops = (2_000, 20) if quick else (_STATEMENTS, _STOPS)
    report = Report("view-check", f"{statements:,} statements of MySQL 5.6 without a stop, and {stops:,} that stop")
    source = MySQL56()
    source.start(server_id=1, options=["--binlog-format=STATEMENT", "--max-binlog-size=1G"])
    try:
        source.execute_many(_DEFINITIONS)
        for number in range(0, statements, _AT_ONCE):
            _write(source, [_ordinary(one) for one in range(number, number + _AT_ONCE)])
        with make_relay(directory / "relay", source) as relay:
            add_views(relay, [view_keys()])
            _wait_archived(relay, source)
            relay.stop()
            size = _size(source)
            seconds, found = _checked(relay)
            assert found["stops"] == 0, found
            report.add("no stop: checked", size / seconds / MB, "MB/s")
            report.add("no stop: 1 GB takes", seconds / size * GB, "s", aim=_AIM_S_PER_GB)
            report.add("no stop: statements a second", statements / seconds)
            for number in range(0, stops, _AT_ONCE):
                _write(source, [_stopping(one) for one in range(number, min(stops, number + _AT_ONCE))])
            relay.start()
            _wait_archived(relay, source)
            relay.stop()
            seconds, found = _checked(relay)
            assert found["stops"] == stops, found
            report.add(f"{stops:,} stops, of a stopped view", seconds, "s", aim=_AIM_STOPS_S)
    finally:
        source.stop()
    return report


def _ordinary(number: int) -> str:
    if number % 4 == 0:
        return (
            "INSERT INTO shop.customer (name, mail, at, n) VALUES "
            f"('Customer number {number} of the shop', 'customer.{number}@example.com', NOW(), {number % 97})"
        )
    if number % 4 == 1:
        return f"UPDATE shop.customer SET n = n + 1, at = '2024-05-01 10:00:00' WHERE id = {number // 4}"
    if number % 4 == 2:
        words = f"what customer {number} has bought, and how it was wrapped; " * (1 + number % 7)
        return f"INSERT INTO shop.sale (customer, what, price) VALUES ({number // 4}, '{words}', {number % 1000}.99)"
    return f"DELETE FROM shop.sale WHERE id = {number // 16} AND customer <> {number}"


def _stopping(number: int) -> str:
    return f"UPDATE shop.customer SET n = {number} WHERE mail REGEXP '^customer.{number}'"


def _write(source: MySQL56, statements: list[str]) -> None:
    with source.connect(client_flag=CLIENT.MULTI_STATEMENTS) as client, client.cursor() as cursor:
        cursor.execute(";".join(statements))
        while cursor.nextset():
            pass


def _size(source: MySQL56) -> int:
    return sum(path.stat().st_size for path in source.binlogs())


def _wait_archived(relay: RelayProcess, source: MySQL56) -> None:
    newest = source.binlogs()[-1]
    relay.wait_archived(newest.name, newest.stat().st_size, timeout_s=240)


def _checked(relay: RelayProcess) -> tuple[float, dict[str, object]]:
    """Return the seconds that `view check` took, and its last line, about the whole."""
    began = time.monotonic()
    done = relay.command("view", "check", VIEW, "--json", timeout_s=_TIMEOUT_S)
    took = time.monotonic() - began
    return took, json.loads(done.stdout.splitlines()[-1])
