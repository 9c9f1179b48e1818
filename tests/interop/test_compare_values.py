"""`binlog-relay compare` over values of every kind, from each kind of source to MySQL 9.7: equal ones are equal, others are found."""

from typing import Final

import pytest

from tests.conftest import ServerFactory
from tests.support.compare_run import CompareRun, unlogged
from tests.support.view_chain import ViewChain, view_keys, wait_executed

pytestmark = pytest.mark.interop
COLUMNS: Final = {
    "i": ("BIGINT UNSIGNED", "18446744073709551615", "1"),
    "z": ("INT(8) UNSIGNED ZEROFILL", "42", "43"),
    "de": ("DECIMAL(30,10)", "-12345678901234567890.0123456789", "-12345678901234567890.0123456788"),
    "f": ("FLOAT", "1.2345678", "1.2345679"),
    "d": ("DOUBLE", "2.2250738585072014e-308", "2.2250738585072024e-308"),
    "b": ("BIT(60)", "b'101'", "b'100'"),
    "e": ("ENUM('a','b')", "'b'", "'a'"),
    "s": ("SET('a','b','c')", "'a,c'", "'a,b'"),
    "y": ("YEAR", "2020", "2021"),
    "da": ("DATE", "'0000-00-00'", "'2020-01-01'"),
    "dt": ("DATETIME(6)", "'2020-02-03 04:05:06.000007'", "'2020-02-03 04:05:06.000008'"),
    "ts": ("TIMESTAMP NULL", "'2020-02-03 04:05:06'", "'2020-02-03 03:05:06'"),
    "ti": ("TIME(2)", "'-100:11:12.13'", "'100:11:12.13'"),
    "c": ("CHAR(10) CHARACTER SET latin1", "'ä'", "'a'"),
    "v": ("VARCHAR(30) CHARACTER SET utf8", "'a '", "'a'"),
    "m": ("TEXT CHARACTER SET utf8mb4", "'😀'", "'😃'"),
    "bi": ("VARBINARY(9)", "X'0001'", "X'000100'"),
    "bl": ("LONGBLOB", "REPEAT('x', 300000)", "CONCAT(REPEAT('x', 299999), 'y')"),
    "nu": ("VARCHAR(9) CHARACTER SET latin1", "NULL", "''"),
    "g": ("POINT", "POINT(1, 2)", "POINT(2, 1)"),
}
NEWER: Final = {"j": ("JSON", """'{"b": [1, 2.5], "a": null}'""", """'{"b": [1, 2.5], "a": 0}'""")}
"""Columns that 5.6 has not. There also is a generated one, which a repair must leave out."""
KEYS: Final = (
    "CREATE TABLE kinds.by_text (k VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci PRIMARY KEY) ENGINE=InnoDB",
    "INSERT INTO kinds.by_text VALUES ('a'), ('B'), ('ä x'), ('ß'), ('Z'), ('_'), ('😀'), ('é'), ('10'), ('9'), ('日本')",
    "CREATE TABLE kinds.by_bytes (k VARBINARY(9) NOT NULL, e ENUM('z','a') NOT NULL, t DATETIME NOT NULL, PRIMARY KEY (k, e, t))"
    " ENGINE=InnoDB",
    "INSERT INTO kinds.by_bytes VALUES ('', 'a', '2020-01-01'), ('', 'z', 0), (X'00', 'z', 0), (X'ff', 'a', '2020-01-01')",
    "CREATE TABLE kinds.by_float (f DOUBLE NOT NULL, n DECIMAL(20,10) NOT NULL, PRIMARY KEY (f, n)) ENGINE=InnoDB",
    "INSERT INTO kinds.by_float VALUES (0.1, 0.1), (0.1, 0.2), (1e300, -1), (-1.5e-7, 5)",
)


@pytest.mark.parametrize("name", ["mysql56", "mysql97", "mariadb", "mariadb118"])
def test_values_of_all_kinds_are_equal_and_each_that_is_not_is_named(
    servers: ServerFactory, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    options = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"] if name == "mysql97" else []
    keys = view_keys(gtids="keep") if name == "mysql97" else view_keys()
    directory = tmp_path_factory.mktemp("values") / "relay"
    with ViewChain(servers, name, directory, options=options, views=[keys]) as chain:
        kinds = COLUMNS if name == "mysql56" else COLUMNS | NEWER
        columns = ", ".join(f"{column} {kind}" for column, (kind, _value, _other) in kinds.items())
        columns += "" if name == "mysql56" else ", made INT AS (id + 1) STORED"
        names, values = ", ".join(kinds), ", ".join(value for _kind, value, _other in kinds.values())
        mode = "SET sql_mode = '', time_zone = '+01:00', binlog_format = ROW"
        made = f"CREATE TABLE kinds.all_of (id INT PRIMARY KEY, {columns}) ENGINE=InnoDB"
        filled = [f"INSERT INTO kinds.all_of (id, {names}) VALUES ({number}, {values})" for number in range(len(kinds))]
        chain.source.execute_many(
            ["SET NAMES utf8mb4", mode, "CREATE DATABASE kinds", made, *filled, *KEYS, *texts_as_keys(name)]
        )
        target = chain.view_replica()
        chain.wait_viewed()
        wait_executed(target, chain.gtids_of_view(), chain.relay)
        compared = CompareRun(chain.relay, chain.source, target)
        compared.check_equal("--chunk-seconds", "0.01")
        changes = [
            f"UPDATE kinds.all_of SET {column} = {other} WHERE id = {number}"
            for number, (column, (_kind, _value, other)) in enumerate(kinds.items())
        ]
        unlogged(target, "SET NAMES utf8mb4", mode.rpartition(",")[0], *changes)
        script = tmp_path_factory.mktemp("script") / "repair.sql"
        found = compared.records("--script", str(script), code=1)
        assert {one["key"]["id"]: list(one["values"]) for one in found} == {
            number: [column] for number, column in enumerate(kinds)
        }
        compared.repair(script)
        compared.check_equal()


def texts_as_keys(name: str) -> list[str]:
    """Return statements that make a table of some ranges whose keys servers order otherwise: 11.8's collations no MySQL has."""
    collation = "utf8mb4_uca1400_ai_ci" if name == "mariadb118" else "utf8mb4_general_ci"
    letters = "aZ_-.!~жяéz0ß"
    rows = ", ".join(f"('{letters[number % len(letters)]}{number % 50} {number}', {number})" for number in range(3000))
    return [
        f"CREATE TABLE kinds.by_collation (k VARCHAR(30) CHARACTER SET utf8mb4 COLLATE {collation} PRIMARY KEY, n INT) ENGINE=InnoDB",
        f"INSERT INTO kinds.by_collation VALUES {rows}",
    ]
