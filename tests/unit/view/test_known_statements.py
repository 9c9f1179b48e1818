"""What the kernel passes because the rules passed its like is what the rules would have passed."""

import random
import struct
from pathlib import Path

import pytest

from protocol.binlog.event_type import EventType
from relay.view.inspect.dry_run_stops import find_stops
from relay.view.rules.group import OutGroup, SourceGroup
from relay.view.rules.group_rules import MysqlRules
from tests.support.binlog_builder import INSIDE, OPENS, BinlogBuilder
from tests.support.view_making import settings
from tests.unit.view.test_dry_run_stops import FIRST, file_of

UTF8 = b"\x01" + bytes(8) + b"\x04" + struct.pack("<HHH", 33, 33, 33)
"""sql_mode '' and the character sets of a client."""
TABLES = (
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT, s VARCHAR(80), d DATE, at DATETIME, c DECIMAL(8,2), u BIGINT UNSIGNED)",
    "CREATE TABLE m (id INT PRIMARY KEY, s VARCHAR(80)) ENGINE=MyISAM",
    "CREATE TABLE p (id INT PRIMARY KEY, n INT, s VARCHAR(80))",
    "CREATE TABLE r (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
)
DEFINITIONS = (
    "CREATE TRIGGER tr BEFORE INSERT ON p FOR EACH ROW SET NEW.n = IFNULL(NEW.n, 5)",
    "DROP TRIGGER tr",
    "ALTER TABLE t MODIFY s VARCHAR(60)",
    "ALTER TABLE t ADD x INT",
    "ALTER TABLE t DROP x",
    "CREATE TEMPORARY TABLE t (id INT)",
    "DROP TEMPORARY TABLE t",
    "ALTER TABLE m ENGINE=InnoDB",
    "ALTER TABLE m ENGINE=MyISAM",
)
CHANGES = (
    "INSERT INTO t (n, s, d) VALUES ({}, {}, {})", "INSERT INTO t (s, at) VALUES ({}, {}), ({}, {})",
    "UPDATE t SET n = {} WHERE id = {}", "UPDATE t SET s = {} WHERE d BETWEEN {} AND {}", "UPDATE t SET at = {} WHERE s = {}",
    "DELETE FROM t WHERE s REGEXP {}", "DELETE FROM t WHERE n / {} > {}", "UPDATE t SET c = {} WHERE u > {}",
    "INSERT INTO m VALUES ({}, {})", "UPDATE m SET s = {}", "INSERT INTO p VALUES ({}, NULL, {})",
    "REPLACE INTO p VALUES ({}, {}, {})", "DELETE FROM p WHERE id = {}", "INSERT INTO r VALUES ({}, {})",
    "INSERT INTO t (s) SELECT CONCAT(s, {}) FROM t WHERE id < {}", "UPDATE t SET s = UNHEX({}) WHERE id = {}",
    "DELETE FROM t LIMIT {}", "UPDATE t SET s = FORMAT(n, {})", "INSERT IGNORE INTO p (id, s) VALUES ({}, {})",
    "UPDATE t SET d = {}", "UPDATE t SET s = {} -- c\n", "INSERT INTO p (id, n) VALUES ({}, {}) ON DUPLICATE KEY UPDATE n = {}",
    "UPDATE IGNORE p SET id = {} WHERE id = {}",
)  # fmt: skip
LITERALS = (
    "1", "7", "0", "99999999999", "18446744073709551615", "1.50", "'a'", "'it''s'", "'é'", "''", "'0'", "'12'", "'4142'",
    "'2024-01-02'", "'2024-02-31'", "'2024-01-02 10:20:30'", "'2024-01-02 10:20:30+02:00'", "'0000-00-00'", "NULL",
    "'{\"a\": 1}'", "'x\\'y'", "-5", "0x41",
)  # fmt: skip


def history(seed: int) -> BinlogBuilder:
    """Transactions of one and of several statements, and definitions between them."""
    chance = random.Random(seed)
    made = BinlogBuilder()
    made.query("CREATE DATABASE test", status=UTF8)
    for table in TABLES:
        made.query(table, status=UTF8)

    def change() -> None:
        form = chance.choice(CHANGES)
        if chance.random() < 0.3:
            made.event(EventType.INTVAR, b"\2" + struct.pack("<Q", chance.randrange(9)), INSIDE)
        if chance.random() < 0.05:
            made.event(EventType.USER_VAR, struct.pack("<I", 1) + b"v\1", INSIDE)
        text = form.format(*(chance.choice(LITERALS) for _ in range(form.count("{}"))))
        made.query(text, INSIDE, UTF8 if chance.random() < 0.9 else b"")

    for _ in range(600):
        if chance.random() < 0.02:
            made.query(chance.choice(DEFINITIONS), status=UTF8)
            continue
        made.query("BEGIN", OPENS, UTF8)
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            change()
        made.xid()
    return made


@pytest.mark.parametrize("engines", ["keep", "innodb"])
@pytest.mark.parametrize("seed", range(4))
def test_a_view_stops_where_it_would_if_each_statement_were_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, engines: str
) -> None:
    planned = 0
    plan = MysqlRules.plan

    def counted(self: MysqlRules, group: SourceGroup) -> list[OutGroup]:
        nonlocal planned
        planned += 1
        return plan(self, group)

    monkeypatch.setattr(MysqlRules, "plan", counted)
    file = file_of(tmp_path, FIRST, history(seed))
    found = find_stops([file], settings(engines=engines), most=10_000)
    remembering, planned = planned, 0
    monkeypatch.setattr(MysqlRules, "known_at", None)
    each = find_stops([file], settings(engines=engines), most=10_000)
    assert [(stop.offset, stop.reason) for stop in found.stops] == [(stop.offset, stop.reason) for stop in each.stops]
    assert 50 < found.total < 550
    assert remembering < planned
