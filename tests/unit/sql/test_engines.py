"""Storage engines: each question has one answer, whoever asks."""

import pytest

from protocol.sql.engines import (
    becomes_innodb,
    default_engine,
    engine_of,
    has_transactions,
    names_of_engines,
    takes_foreign_keys,
)


@pytest.mark.parametrize(
    ("name", "alias"), [("MEMORY", "heap"), ("MRG_MyISAM", "MERGE"), ("InnoDB", "innobase"), ("Aria", "MARIA")]
)
def test_an_alias_is_the_engine(name: str, alias: str) -> None:
    engine = engine_of(alias)
    assert engine is not None and engine is engine_of(name)


@pytest.mark.parametrize(
    ("name", "has"),
    [
        ("INNODB", True),
        ("RocksDB", True),
        ("BLACKHOLE", True),
        ("MyISAM", False),
        ("Aria", False),
        ("PBXT", None),
        ("", None),
    ],
)
def test_an_engine_has_transactions_or_not_or_nobody_knows(name: str, has: bool | None) -> None:
    assert has_transactions(name) is has


@pytest.mark.parametrize(
    ("name", "takes"), [("InnoDB", True), ("", True), ("Nonesuch", True), ("heap", False), ("BLACKHOLE", False)]
)
def test_an_engine_that_nobody_knows_may_have_foreign_keys(name: str, takes: bool) -> None:
    assert takes_foreign_keys(name) is takes


def test_mysql_makes_innodb_of_engines_that_it_does_not_have_and_of_no_others() -> None:
    assert {name for name in names_of_engines() if becomes_innodb(name)} == {
        "aria", "isam", "maria", "rocksdb", "tokudb", "xtradb"
    }  # fmt: skip
    assert not becomes_innodb("Nonesuch")


def test_no_engine_may_be_innodb_whose_rows_are_elsewhere() -> None:
    assert not names_of_engines(lambda engine: engine.may_be_innodb and engine.rows_elsewhere)


@pytest.mark.parametrize(
    ("version", "engine"),
    [("5.1.73-log", "MyISAM"), ("5.5.5", "InnoDB"), ("10.11.6-MariaDB", "InnoDB"), ("unknown", "")],
)
def test_the_default_engine_is_the_version_s(version: str, engine: str) -> None:
    assert default_engine(version) == engine
