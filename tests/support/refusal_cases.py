"""Statements of every kind, with every clause and option of the source's grammar, for the survey of what a newer server refuses."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from protocol.sql.server_functions import REMOVED_FROM_MYSQL
from protocol.sql.server_words import NEW_IN_MYSQL
from tests.support.refusal_trial import RefusalCase


def _parts() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("refusal_statements.txt").read_text().splitlines():
        if line.startswith("== "):
            found[line[3:]] = []
        elif line and not line.startswith("# "):
            found[list(found)[-1]].append("" if line == "(nothing)" else line)
    return found


_PARTS: Final = _parts()
MYSQL_STATEMENTS: Final = _PARTS["statements"]
MARIADB_STATEMENTS: Final = _PARTS["statements of MariaDB"]
_NAME_PLACES: Final = [
    (tuple(one for one in before.split(" ; ") if one), text)
    for before, _, text in (line.rpartition(" || ") for line in _PARTS["names"])
]
_T: Final = "CREATE TABLE t (a INT PRIMARY KEY, b INT, s VARCHAR(99), d DATE, f FLOAT, KEY kb (b)) ENGINE=InnoDB"
_FILLED: Final = (
    _T,
    "INSERT INTO t VALUES (1, 10, 'x', '2020-01-01', 1.5), (2, 20, 'y', '2020-01-02', 2.5)",
)
_MYISAM: Final = _T.replace("InnoDB", "MyISAM")
_PARENT: Final = (
    "CREATE TABLE p (a INT PRIMARY KEY, b INT, c INT, u INT UNSIGNED, s VARCHAR(20), KEY (b), KEY (c, b)) ENGINE=InnoDB"
)
_WIDE: Final = (
    (33, "CHAR(250) CHARACTER SET latin1"), (250, "VARCHAR(10)"), (200, "VARCHAR(10)"), (150, "VARCHAR(40) CHARACTER SET latin1"),
    (60, "TEXT"), (200, "TEXT"), (100, "BLOB"), (500, "BIGINT"), (900, "BIGINT"), (1017, "INT"), (196, "VARCHAR(255)"),
    (80, "CHAR(100)"),
)  # fmt: skip
"""Numbers of columns with their type: rows of about half a page, and more."""


def mysql_cases() -> Iterator[RefusalCase]:
    """Yield the cases for a MySQL 5.6. Those that it refuses are a part: the grammar is not known here."""
    for word in sorted(NEW_IN_MYSQL):
        for prepared, text in _NAME_PLACES:
            yield RefusalCase((text.format(w=word.lower()),), tuple(one.format(w=word.lower()) for one in prepared))
    for type_ in _PARTS["types"]:
        for attribute in _PARTS["attributes"]:
            yield RefusalCase((f"CREATE TABLE n (x {type_} {attribute})",), (_PARENT,) if "p (" in attribute else ())
        yield RefusalCase((f"CREATE TABLE n (k INT, x {type_} NULL, PRIMARY KEY (x))",))
        yield RefusalCase((f"CREATE TABLE n (x {type_}) ENGINE=MyISAM",))
        yield RefusalCase(
            (
                f"ALTER TABLE t ADD x {type_} NOT NULL",
                f"ALTER TABLE t MODIFY b {type_}",
                f"ALTER TABLE t CHANGE b bb {type_} NULL",
            ),
            _FILLED,
        )
        yield RefusalCase((f"CREATE PROCEDURE q(x {type_}) BEGIN DECLARE y {type_}; END",))
    for engine in _PARTS["engines"]:
        yield RefusalCase((f"CREATE TABLE n (a INT NOT NULL) ENGINE={engine}",), sql_mode="NO_ENGINE_SUBSTITUTION")
        yield RefusalCase((f"CREATE TABLE n (a INT NOT NULL) ENGINE={engine}", "INSERT INTO n VALUES (1)"))
        yield RefusalCase((f"CREATE TABLE n (a INT NOT NULL) ENGINE={engine} PARTITION BY HASH (a)",))
        yield RefusalCase((f"CREATE TEMPORARY TABLE n (a INT NOT NULL) ENGINE={engine}",))
        yield RefusalCase((f"ALTER TABLE t ENGINE={engine}",), (_T,))
    for option in _PARTS["options"]:
        for engine in ("InnoDB", "MyISAM", "MEMORY"):
            yield RefusalCase((f"CREATE TABLE n (a INT, s VARCHAR(20)) ENGINE={engine} {option}",))
        yield RefusalCase((f"ALTER TABLE t {option}",), (_T,))
        yield RefusalCase((f"ALTER TABLE t {option}",), (_MYISAM,))
        yield RefusalCase((f"CREATE TEMPORARY TABLE n (a INT) {option}",))
    for action in _PARTS["alterations"]:
        for table in (_T, _MYISAM):
            yield RefusalCase((f"ALTER TABLE t {action}",), (table, _FILLED[1]))
    for partition in _PARTS["partitions"]:
        for engine in ("InnoDB", "MyISAM", "MEMORY"):
            yield RefusalCase((f"CREATE TABLE n (a INT, d DATE) ENGINE={engine} {partition}",))
    for keys in _PARTS["foreign keys"]:
        for checks in (1, 0):
            yield RefusalCase(
                (f"SET foreign_key_checks = {checks}", f"CREATE TABLE c (k INT, {keys}) ENGINE=InnoDB"), (_PARENT,)
            )
        yield RefusalCase((f"CREATE TABLE c (k INT, {keys}) ENGINE=MyISAM",), (_PARENT,))
    for key in _PARTS["keys"]:
        for engine in ("InnoDB", "MyISAM", "MEMORY"):
            yield RefusalCase(
                (f"CREATE TABLE n (a INT, a2 INT, s VARCHAR(500), t TEXT, g POINT NOT NULL, {key}) ENGINE={engine}",)
            )
    for columns, of in _WIDE:
        made = ", ".join(f"c{number} {of}" for number in range(columns))
        for more in (
            "",
            "ROW_FORMAT=DYNAMIC",
            "ROW_FORMAT=COMPACT",
            "ROW_FORMAT=REDUNDANT",
            "ROW_FORMAT=COMPRESSED",
            "ENGINE=MyISAM",
        ):
            yield RefusalCase((f"CREATE TABLE n ({made}) CHARSET utf8mb4 {more}",))
    for statement in MYSQL_STATEMENTS:
        yield RefusalCase((statement,), _FILLED)
    for mode in _PARTS["modes"]:
        for statement in _PARTS["statements of modes"]:
            yield RefusalCase((statement,), _FILLED, sql_mode=mode)
    for name in sorted(REMOVED_FROM_MYSQL):
        for arguments in _PARTS["arguments"]:
            yield RefusalCase((f"UPDATE t SET s = HEX({name}{arguments})",), _FILLED)
        yield RefusalCase(
            (f"CREATE TABLE n ({name} INT)", f"INSERT INTO n ({name}) VALUES (1)", f"UPDATE n SET {name} = ({name})")
        )
        yield RefusalCase(
            (
                f"CREATE FUNCTION {name}1() RETURNS INT DETERMINISTIC RETURN 1",
                f"INSERT INTO t (a) VALUES ({name}1() + 70)",
            ),
            (_T,),
        )


def mariadb_cases() -> Iterator[RefusalCase]:
    """Yield the cases for a MariaDB: those of MySQL, without the words that it reserves, and its own."""
    for mode in ("", "STRICT_TRANS_TABLES"):
        yield from (RefusalCase((statement,), _FILLED, sql_mode=mode) for statement in MARIADB_STATEMENTS)
    yield from mysql_cases()
