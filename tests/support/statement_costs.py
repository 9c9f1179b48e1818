"""Texts that cost a reader of statements much, and the readers of a relay with the texts that they accept."""

import gc
import random
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from protocol.binlog.event_type import EventType
from protocol.binlog.layout import HEADER_SIZE
from protocol.binlog.schema.definition_statement import defines, may_define
from protocol.binlog.statement_text import one_line
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.statements.statement_names import defined_names
from protocol.sql.tables.ddl_parser import parse_ddl
from relay.export.table_choice import TableChoice
from relay.feed.statements.logged_changes import logged_changes
from relay.schema_history.logged_definition import LoggedDefinition, logged_definition
from relay.source_tables.applied_definition import DefiningSession, apply_definition
from relay.source_tables.table_book import SourceTables
from relay.view.rules.group import GroupRules
from relay.view.rules.mariadb.statement_translation import translate_statement
from relay.view.rules.settings import ViewSettings
from relay.view.stops.stop_reason import Untranslatable
from relay.view.view_rules import rules_of
from tests.support.mariadb_statements import MARIADB_10, MARIADB_11, context_of, told
from tests.support.rule_groups import STATUS
from tests.support.target_groups import Event, group_of, statement

SIZES: Final = (4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20)
"""The sizes in bytes; the larger ones only for what is quick."""
MOST_US_A_BYTE: Final = 60.0
"""The limit of processor time, on a slow machine, if every byte is a word of a definition."""
MOST_GROWTH: Final = 2.2
"""A text may cost at most so many times as much a byte as one that is a quarter as long: a quadratic cost would be four times as
much."""
_LEAST_S: Final = 0.02
"""Shorter times are not compared: the clock is too coarse."""
Reader = Callable[[bytes], object]
_REFUSALS: Final = (Untranslatable, UnsupportedSyntax)

_HEADS: Final = (
    "", "(", "CREATE TABLE t (a INT", "CREATE TABLE t (a INT) ", "CREATE TABLE t (a INT COMMENT '",
    "CREATE TABLE t (a ENUM(", "CREATE TABLE t SELECT ", "CREATE TABLE t (", "CREATE TABLE ", "ALTER TABLE t ",
    "ALTER TABLE t ADD (", "INSERT INTO t VALUES (", "INSERT INTO t VALUES ", "INSERT INTO t SELECT ",
    "INSERT INTO t (", "REPLACE INTO t SET a = ", "UPDATE t SET a = ", "UPDATE ", "UPDATE t SET a = 1 WHERE ",
    "DELETE FROM t WHERE ", "DELETE ", "DELETE t FROM ", "DROP TABLE ", "DROP TABLE IF EXISTS a, ",
    "GRANT SELECT ON ", "REVOKE ", "CREATE USER ", "SET PASSWORD ", "SET @a = ", "SAVEPOINT ", "ROLLBACK TO ",
    "XA COMMIT ", "XA ", "BEGIN ", "COMMIT ", "RENAME TABLE ", "RENAME TABLE a TO ", "CREATE VIEW v AS SELECT ",
    "WITH x AS (SELECT ", "TRUNCATE ", "CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW ",
    "CREATE PROCEDURE p() BEGIN ", "CREATE FUNCTION f(", "CREATE EVENT e ", "CREATE DEFINER = ", "CREATE OR REPLACE ",
    "CREATE INDEX i ON t (", "DROP INDEX ", "LOAD DATA INFILE 'x' INTO TABLE t ", "CALL p(", "CREATE DATABASE d ",
    "CREATE SEQUENCE s ", "ANALYZE TABLE ", "CREATE SERVER s ", "/*!50000 ", "/*!99999 ", "/*M! ", "/* ", "-- ",
    "CREATE TABLE t (a INT) PARTITION BY RANGE (a) (", "CREATE TABLE t (a INT) ENGINE=MyISAM ",
    "CREATE TEMPORARY TABLE t (", "CREATE TABLE t (a INT) CONNECTION='", "FEDERATED CONNECTION ", "DO ", "VALUES ",
    "HANDLER ", "EXPLAIN ", "CREATE ",
)  # fmt: skip
_UNITS: Final = (
    "'", '"', "`", "''", '""', "``", "' '", "'a',", '"a",', "`a`,", "`a`.", "\\", "\\'", "'\\'", "/*", "*/", "/**/",
    "/* * */", "/*!", "/*!*/", "/*!50000 ", "/*!50000 1*/", "/*!99999 ", "/*!99999 x*/", "/*M!", "/*M! 1*/", "/*+",
    "/*+ SET_VAR(a=1) */", "*", "/", "--", "-- ", "--\n", "-- x\n", "#", "#\n", "-", " ", "\t", "\n", "(", ")", "()",
    "(a)", "((a)),", "(1),", "(1,2),", "('a'),", "(1", ",", "a,", "a ", "1,", "1", "1 ", "0", "0x", "0x1 ", "1e",
    "1e1 ", "1.", ".", ".1", "a", "a.", "$", "_", "@", "@a", "@a:=", "@'a'", "@@", "@@a ", ":=", "=", "a=1,", "<=>",
    "->", ";", "; ", "\0", "\xa0", "\xe9", "\x81'", "\x81\x5c", "N'a' ", "_utf8 'a' ", "x'1',", "ADD x INT, ",
    "ADD COLUMN ", "DROP x, ", "DROP PRIMARY KEY, ", "FOREIGN KEY (a) REFERENCES p (a), ",
    "ADD FOREIGN KEY (a) REFERENCES p (a) MATCH FULL ON DELETE CASCADE, ", "REFERENCES ", "REFERENCES p (a) ",
    "ON DELETE CASCADE ", "ON UPDATE ", "MATCH ", "CHECK ", "CHECK (a), ", "CHECK (", "CONSTRAINT ", "KEY (a), ",
    "KEY ", "INDEX i (a), ", "b INT, ", "b INT DEFAULT 1, ", "b TIMESTAMP, ", "b INT REFERENCES p (a), ", "INT ",
    "NOT NULL ", "COMMENT 'x' ", "ENGINE ", "ENGINE=", "ENGINE=MyISAM ", "ENGINE = 'x', ", "TYPE=", "CHARSET utf8 ",
    "COLLATE x ", "CHARACTER SET ", "AUTO_INCREMENT ", "AS (", "AS (1), ", "GENERATED ALWAYS AS (1) ", "PARTITION ",
    "PARTITION p VALUES LESS THAN (1), ", "SELECT ", "SELECT 1 ", "(SELECT ", "SELECT 1 UNION ", "FROM ", "FROM t ",
    "JOIN t ", "JOIN t ON 1 ", "WHERE ", "LIMIT ", "LIMIT 1 ", "ORDER BY ", "UPDATE ", "UPDATE t IGNORE ",
    "UPDATE t SET ", "IGNORE ", "INSERT ", "INSERT INTO ", "INSERT INTO t VALUES ", "INSERT LOW_PRIORITY ", "DELETE ",
    "DELETE FROM ", "DELETE FROM t; ", "REPLACE ", "INTO ", "VALUES ", "VALUES (", "VALUES (1", "SET ", "TABLE ",
    "TABLE t ", "CREATE ", "CREATE TABLE ", "CREATE TABLE t (", "ALTER ", "ALTER TABLE t ", "DROP ", "RENAME ",
    "RENAME TO x, ", "a TO b, ", "TO ", "AS ", "IF ", "IF EXISTS ", "IF NOT EXISTS ", "THEN ", "END ", "END; ",
    "BEGIN ", "CASE ", "WHEN 1 THEN 2 ", "LOOP ", "DECLARE ", "CALL ", "CALL p(", "f(", "f(1),", "f (", "IF(",
    "JSON_VALUE(", "REGEXP_REPLACE(", "LPAD(", "GREATEST(", "NOW(), ", "seq_1_to_2 ", "UUID ", "CONNECTION ",
    "CONNECTION=", "CONNECTION='", "IDENTIFIED ", "IDENTIFIED BY 'x' ", "SET PASSWORD ", "FEDERATED ", "USER ",
    "TRIGGER ", "DEFINER=a@b ", "WITH ", "WITH TABLE ", "x AS (SELECT 1), ", "XA ", "OR REPLACE ", "TO SAVEPOINT ",
    "WORK ", "OF ", "LOCK ", "AGAINST ", "2020-01-01 00:00:00.1", "'2020-01-01 00:00:00.1+00:00',", "+00:00", "-1",
    "+", "INTERVAL 1 DAY ", "NULL,", "DEFAULT,", "AND ", "NOT ", "a IN (1) AND ", "BETWEEN ", "OVER (", "WINDOW ",
    "EXCEPT ", "RETURNING ", "PERIOD FOR ", "WITHOUT SYSTEM VERSIONING ", "WAIT 1 ",
)  # fmt: skip
_TAILS: Final = (
    "",
    ")",
    "'",
    "*/",
    "\n",
    ";",
    " x",
    ", x INT)",
    ") ENGINE=MyISAM",
    " SELECT 1",
    " LIMIT 1",
    " CREATE TABLE REFERENCES MATCH",
)
_PAIRS: Final = (
    ("(", ")"), ("(SELECT ", ")"), ("f(", ")"), ("BEGIN ", "END; "), ("IF a THEN ", "END IF; "),
    ("CASE WHEN ", " END"), ("/*!50000 ", "*/"), ("((", "),1)"), ("NOT (", ")"), ("(SELECT 1 FROM (", ") x)"),
    ("CHECK (", ")"), ("/*", "*/"), ("CASE 1 WHEN 2 THEN ", "END CASE; "),
)  # fmt: skip


@dataclass(frozen=True)
class CostlyText:
    """A text: `head`, then `unit` repeatedly, then `close` as often, then `tail`."""

    head: str
    unit: str
    tail: str
    close: str = ""

    def of_size(self, size: int) -> bytes:
        """Return about so many bytes."""
        times = max(1, (size - len(self.head) - len(self.tail)) // len(self.unit + self.close))
        return (self.head + self.unit * times + self.close * times + self.tail).encode("latin-1")


def random_text(random_: random.Random) -> CostlyText:
    """Return a text of any kind."""
    head, tail = random_.choice(_HEADS), random_.choice(_TAILS)
    if random_.random() < 0.12:
        unit, close = random_.choice(_PAIRS)
        return CostlyText(head, unit, tail, close)
    return CostlyText(head, "".join(random_.choices(_UNITS, k=random_.choice((1, 1, 1, 2, 2, 3, 4)))), tail)


@dataclass(frozen=True)
class Finding:
    """A reader, the text, and seconds by sizes."""

    reader: str
    text: CostlyText
    seconds: Mapping[int, float]

    def __str__(self) -> str:
        spent = ", ".join(f"{size >> 10} KiB {spent:.3f} s" for size, spent in self.seconds.items())
        return f"{self.reader}: {spent} for {self.text}"


def measure(reader: str, text: CostlyText) -> Finding | None:
    """Return what is wrong with its cost; None if nothing. A reader that fails with anything but a refusal raises that."""
    _time(reader, text, 256)  # what is imported or made once is no cost of a text
    seconds: dict[int, float] = {}
    for size in SIZES:
        seconds[size] = _time(reader, text, size)
        if seconds.get(size // 4, 0) > _LEAST_S:
            break  # two sizes that the clock can compare: some readers turn to another way at some length
    for _ in range(6):  # again, for a machine that was busy: the least counts
        if not _is_wrong(seconds):
            return None
        for size in list(seconds)[-2:]:
            seconds[size] = min(seconds[size], _time(reader, text, size))
    return Finding(reader, text, seconds) if _is_wrong(seconds) else None


def _is_wrong(seconds: Mapping[int, float]) -> bool:
    (first, least), (last, most) = list(seconds.items())[-2:]
    if most <= _LEAST_S:
        return False
    return most / last * 1e6 > MOST_US_A_BYTE or most / last > MOST_GROWTH * least / first


def _time(reader: str, text: CostlyText, size: int) -> float:
    raw = text.of_size(size)
    gc.collect()
    gc.disable()  # a collection costs by what other tests left in the process
    try:
        begun = time.thread_time()
        with suppress(*_REFUSALS):
            READERS[reader](raw)
        return time.thread_time() - begun
    finally:
        gc.enable()


# --- the readers ----------------------------------------------------------------------------------------------------------------


def _query(raw: bytes, client: int = 8) -> Event:
    status = STATUS[:-6] + struct.pack("<HHH", client, 8, 8)
    body = struct.pack("<IIBHH", 7, 0, 1, 0, len(status)) + status + b"d\0" + raw
    return Event(EventType.QUERY, body)


def _noted(version: str) -> Reader:
    def read(raw: bytes) -> object:
        kind, body = _query(raw)
        event = bytes(4) + bytes((kind,)) + bytes(HEADER_SIZE - 5) + body
        may_define(event, 13, False)
        if not defines(event, 13, False):
            return None
        made = logged_definition(event, 13, False, version)
        if made is not None:
            _applied(made)
        return made

    return read


def _applied(made: LoggedDefinition) -> None:
    state = SourceTables()
    state.note_charset("d", ("utf8mb4", "utf8mb4_general_ci"))
    apply_definition(state, parse_ddl("CREATE TABLE t (a INT PRIMARY KEY)", "d", 0, "8.0.36"), _TELLER)
    assert made.facts is None or made.may_rename in (True, False)
    made.apply_to(state)


def _parsed(version: str, mode: int = 0) -> Reader:
    return lambda raw: parse_ddl(raw.decode("latin-1"), "d", mode, version)


def _planned(make: Callable[[], GroupRules], version: str, around: Callable[[bytes], list[Event]]) -> Reader:
    def read(raw: bytes) -> object:
        rules = make()
        return rules.plan(group_of(*around(raw), version=version))

    return read


def _settings(**changes: Any) -> ViewSettings:
    return ViewSettings(**{"name": "v", "gtids": "assign", "uuid": UUID(int=16), **changes})


def _of_mariadb(raw: bytes) -> list[Event]:
    return [Event(162, struct.pack("<QIB", 1, 0, 1) + bytes(6)), _query(raw, 45)]


def _in_transaction(raw: bytes) -> list[Event]:
    return [_query(b"BEGIN"), _query(raw), _query(b"COMMIT")]


def _fed(version: str) -> Reader:
    def read(raw: bytes) -> object:
        one = {
            "file": "b.000001", "transaction": 4, "position": 4, "end": 99, "statement": raw.decode("latin-1"), "schema": "d",
            "time": None, "sql_mode": 0, "error_code": 0, "thread_id": 1,
        }  # fmt: skip
        return logged_changes([one], {}, lambda _place: version, [("d", "t")], lambda _place: False)

    return read


_KNOWN: Final = told("CREATE TABLE t (a INT PRIMARY KEY, b INT) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4")


def _translated(version: str, mode: int = 0) -> Reader:
    return lambda raw: translate_statement(raw, context_of(version, sql_mode=mode), _KNOWN)


def _readers() -> Iterator[tuple[str, Reader]]:
    yield "definition_names", lambda raw: defined_names(raw, 0)
    yield "one_line", one_line
    yield "export's table choice", lambda raw: TableChoice(frozenset({("d", "t")})).is_about("d", raw, 0, "5.6.24-log")
    for version in ("5.6.24-log", "9.7.4", MARIADB_10):
        yield f"schema history of {version}", _noted(version)
        yield f"feed of {version}", _fed(version)
    yield "ddl_parser with ANSI_QUOTES, NO_BACKSLASH_ESCAPES", _parsed("8.0.36", 1 << 2 | 1 << 20)
    for version, changes in (
        ("5.6.24-log", {}), ("5.6.24-log", {"engines": "innodb", "dependencies": "writeset"}), ("8.0.36", {"engines": "innodb"}),
        ("5.1.73", {}),
    ):  # fmt: skip
        make = lambda changes=changes: rules_of(_settings(**changes))  # noqa: E731
        shown = f"view of {version} {', '.join(map(str, changes.values()))}".strip()
        yield shown, _planned(make, version, lambda raw: [_query(raw)])
        yield f"{shown}, in a transaction", _planned(make, version, _in_transaction)
    yield "view of 8.0.36 in gbk", _planned(lambda: rules_of(_settings()), "8.0.36", lambda raw: [_query(raw, 28)])
    for target in ("mysql-5.6", "mysql-5.7", "mysql-8.0"):
        make = lambda target=target: rules_of(_settings(target=target, gtids="anonymous"))  # noqa: E731
        yield (
            f"view of 9.7.4 for {target}",
            _planned(make, "9.7.4-2", lambda raw: [statement(raw, collations=(8, 8, 8))]),
        )
    yield "view of MariaDB", _planned(lambda: rules_of(_settings(flavour="mariadb")), MARIADB_10, _of_mariadb)
    yield "statements of MariaDB 10", _translated(MARIADB_10)
    yield "statements of MariaDB 11 with ANSI_QUOTES, NO_BACKSLASH_ESCAPES", _translated(MARIADB_11, 1 << 2 | 1 << 20)


_TELLER: Final = DefiningSession()
READERS: Final[dict[str, Reader]] = dict(_readers())
"""The readers by name."""
