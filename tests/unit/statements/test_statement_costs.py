"""What readers of statements cost grows as the text does; `python -m tests.statement_costs` looks at more texts."""

import random
from contextlib import suppress
from typing import Final

import pytest

from relay.view.stops.stop_reason import Untranslatable
from tests.support.interpreter_holds import LIMIT_S, longest_hold
from tests.support.statement_costs import READERS, CostlyText, measure, random_text

SEED: Final = 20261128
MARIADB: Final = "statements of MariaDB 11 with ANSI_QUOTES, NO_BACKSLASH_ESCAPES"
FOUND: Final = (
    (MARIADB, CostlyText("(", "AS AS (", " x")),
    (MARIADB, CostlyText("SELECT ", "CAST(AS INT ", "")),
    (MARIADB, CostlyText("SELECT ", "GROUP_CONCAT(", "1", ")")),
    (MARIADB, CostlyText("UPDATE t SET a = ", "LEAST(", "1", ")")),
    (MARIADB, CostlyText("INSERT INTO t SELECT ", "FROM ", "")),
    ("view of MariaDB", CostlyText("INSERT INTO t VALUES (", '"a",OVER (DROP x, ', " LIMIT 1")),
    ("feed of 5.6.24-log", CostlyText("CREATE DATABASE d ", ",/*VALUES (1", ") ENGINE=MyISAM")),
)


@pytest.mark.parametrize(("reader", "text"), FOUND)
def test_what_once_cost_more_and_more_does_not(reader: str, text: CostlyText) -> None:
    assert measure(reader, text) is None


def test_no_reader_costs_more_a_byte_for_a_longer_text() -> None:
    random_ = random.Random(SEED)
    found = [measure(random_.choice(list(READERS)), random_text(random_)) for _ in range(40)]
    assert [one for one in found if one is not None] == []


@pytest.mark.parametrize(
    "text",
    [b"/*" + b"*" * 12_000_000, b"CREATE TABLE t (a INT DEFAULT " + b"1" * 12_000_000, b"CREATE " + b" " * 12_000_000],
)
def test_a_statement_of_megabytes_lets_other_threads_run(text: bytes) -> None:
    def read() -> None:
        with suppress(Untranslatable):
            READERS["view of 5.6.24-log innodb, writeset"](text)

    assert longest_hold(read) < LIMIT_S
