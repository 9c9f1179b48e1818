"""What the kernel passes because the rules passed its like is what the rules would have passed."""

import random
import struct
from pathlib import Path
from typing import Any

import pytest

from protocol.binlog.event_type import EventType
from relay.view import translation
from relay.view.inspect.file_pass import LookedAtFile
from relay.view.rules.group import OutGroup, SourceGroup
from relay.view.rules.group_rules import MysqlRules
from relay.view.rules.judged.statement_judge import StatementJudge
from relay.view.rules.settings import ViewSettings
from relay.view.rules.statement.logged_query import RunsAs
from relay.view.translation import FileTranslation
from relay.view.view_checkpoint import ViewCheckpoint
from relay.view.view_rules import rules_of
from tests.support.binlog_builder import CLOSES, INSIDE, OPENS, BinlogBuilder
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
    *["DROP TEMPORARY TABLE IF EXISTS t"] * 4,
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
    binlog = BinlogBuilder()
    binlog.query("CREATE DATABASE test", status=UTF8)
    for table in TABLES:
        binlog.query(table, status=UTF8)

    def change() -> None:
        form = chance.choice(CHANGES)
        if chance.random() < 0.3:
            binlog.event(EventType.INTVAR, b"\2" + struct.pack("<Q", chance.randrange(9)), INSIDE)
        if chance.random() < 0.05:
            binlog.event(EventType.USER_VAR, struct.pack("<I", 1) + b"v\1", INSIDE)
        text = form.format(*(chance.choice(LITERALS) for _ in range(form.count("{}"))))
        binlog.query(text, INSIDE, UTF8 if chance.random() < 0.9 else b"")
        if chance.random() < 0.03:
            binlog.query(chance.choice(("SAVEPOINT a", "ROLLBACK TO a", "RELEASE SAVEPOINT a")), INSIDE, UTF8)

    for _ in range(600):
        if chance.random() < 0.02:
            binlog.query(chance.choice(DEFINITIONS), status=UTF8)
            continue
        binlog.query("BEGIN", OPENS, UTF8)
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            change()
        if chance.random() < 0.03:
            binlog.query("ROLLBACK", CLOSES, UTF8)
        else:
            binlog.xid()
    return binlog


def made(file: LookedAtFile, given: ViewSettings) -> tuple[bytes, list[tuple[int, str]]]:
    """The bytes of the view of a file, and its stops, each of which is left out."""
    stops: list[tuple[int, str]] = []
    source = file.open()
    here = FileTranslation(
        file.name, source.read_into, given, rules_of(given), ViewCheckpoint.of_file(1, b""), {}, own_gtids=False
    )
    here.tables = file.tables
    here.on_stop = lambda stop: stops.append((stop.offset, stop.reason.text))
    found, buffer = bytearray(), bytearray(1 << 20)
    while written := here.fill(buffer, 0, file.end, sealed=True, ends_cut=True):
        found += buffer[:written]
    source.close()
    return bytes(found), stops


@pytest.mark.parametrize("engines", ["keep", "innodb"])
@pytest.mark.parametrize("gtids", ["assign", "anonymous", "keep"])
@pytest.mark.parametrize("seed", range(3))
def test_a_view_is_what_it_would_be_if_each_statement_were_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, gtids: str, engines: str
) -> None:
    planned = 0
    plan = MysqlRules.plan

    def counted(self: MysqlRules, group: SourceGroup) -> list[OutGroup]:
        nonlocal planned
        planned += 1
        return plan(self, group)

    monkeypatch.setattr(MysqlRules, "plan", counted)
    file = file_of(tmp_path, FIRST, history(seed))
    given = settings(gtids=gtids, engines=engines)
    found = made(file, given)
    remembering, planned = planned, 0
    monkeypatch.setattr(MysqlRules, "known_at", None)
    assert made(file, given) == found
    assert 50 < len(found[1]) < 550
    assert remembering < planned


def test_a_temporary_table_in_the_place_of_another_is_judged_by_itself(tmp_path: Path) -> None:
    change = "UPDATE t SET n = 5 WHERE s BETWEEN '2024-01-02' AND '2024-02-31'"
    binlog = BinlogBuilder().query("CREATE DATABASE test", status=UTF8)
    binlog.query("CREATE TABLE t (id INT, n INT, s VARCHAR(80))", status=UTF8)
    for definition in ("", "CREATE TEMPORARY TABLE t (id INT, n INT, s DATE)", "DROP TEMPORARY TABLE t"):
        if definition:
            binlog.query(definition, status=UTF8)
        for _ in range(3):
            binlog.query("BEGIN", OPENS, UTF8).query(change, INSIDE, UTF8).xid()
    _bytes, stops = made(file_of(tmp_path, FIRST, binlog), settings())
    assert ["BETWEEN" in text for _offset, text in stops] == [True] * 3


@pytest.mark.parametrize("engines", ["keep", "innodb"])
@pytest.mark.parametrize(
    "among",
    [
        "",
        "UPDATE t SET n = 5 WHERE s REGEXP 'a.b'",
        "INSERT INTO m VALUES (7, 'x')",
        "SAVEPOINT a",
        "CREATE TEMPORARY TABLE t (id INT)",
    ],
)
def test_a_long_transaction_is_what_it_would_be_if_each_statement_were_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, among: str, engines: str
) -> None:
    chance = random.Random(3)
    binlog = BinlogBuilder().query("CREATE DATABASE test", status=UTF8)
    for table in TABLES:
        binlog.query(table, status=UTF8)
    binlog.query("BEGIN", OPENS, UTF8)
    for number in range(1_000):
        if number == 900 and among:
            binlog.query(among, INSIDE, UTF8)
        binlog.event(EventType.INTVAR, b"\2" + struct.pack("<Q", number + 1), INSIDE)
        binlog.query(f"INSERT INTO t (n, s) VALUES ({number}, 'text {chance.random()}')", INSIDE, UTF8)
        binlog.query(f"UPDATE t SET d = '2024-03-{number % 28 + 1:02}' WHERE id = {number + 1}", INSIDE, UTF8)
    file = file_of(tmp_path, FIRST, binlog.xid())
    looked_at = 0
    judge = StatementJudge.check

    def counted(*given: Any, **named: Any) -> RunsAs:
        nonlocal looked_at
        looked_at += 1
        return judge(*given, **named)

    monkeypatch.setattr(StatementJudge, "check", counted)
    found = made(file, settings(engines=engines))
    by_samples = looked_at
    monkeypatch.setattr(translation, "sampled", lambda _group: None)
    assert made(file, settings(engines=engines)) == found
    assert (by_samples < 20) is (not among or (among.startswith("INSERT") and engines == "innodb"))
    assert looked_at - by_samples >= 1_000
