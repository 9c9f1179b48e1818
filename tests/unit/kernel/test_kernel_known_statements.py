"""Statements with one number are judged alike: whatever has one number has one shape, in both builds."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.sql.expressions.constructs import BOUNDS
from protocol.sql.expressions.statement_shape import shape_of, shortens_all
from tests.support.kernel_builds import KernelBuild, builds

PARTS = [
    "'a'", "'b''c'", "'x\\'y'", "'2024-01-02'", "'2024-02-30'", "'0000-00-00'", "'2024-01-02 10:20:30'",
    "'2024-01-02T10:20:30'", "'2024-01-02 10:20:30+02:00'", "'10:20:30'", "'12'", "'0'", "'00.0'", "'1e5'", "'-5'", "''", "' '",
    "'{\"a\": 1}'", "'0xFF'", "'x''FF'''", "'é'", "\"a\"", "\"2024-13-01\"", "x'41'", "x'FF'", "b'1'", "_utf8'a'",
    "DATE '2024-01-02'", "TIMESTAMP '2024-01-02'", "0", "00", "7", "99999", "100000", "1000000000", "2147483648",
    "10000000000000", "18446744073709551615", "1.5", "0.0", "1e3", "0x41", "NULL", "a", "`b'c`", "`d(`", "t.5", "@v", "@@v",
    "=", "(", ")", ",", "+", "-", "/", "*", "%", " ", "  ", "\n", "AND", "LIKE", "DIV", "VALUES", "VALUE", "-- c", "/* c */",
    "#", "FORMAT(", "UNHEX(", "'" + "z" * 70 + "'", "'" + "1" * 70 + "'", "'" + "y" * 140 + "'", "'" + "0" * 70 + "'",
    "'" + "0" * 140 + "'", "'" + "\\n" * 70 + "'", "\\", "é", ".5", "5.", "$x", ":=",
]  # fmt: skip


SEED = bytes(range(16))


def number(known: Any, statement: str) -> bytes | None:
    return known.number_of(statement.encode(), 0, 0, 0)  # type: ignore[no-any-return]


def as_read(statement: str) -> str:
    return statement.encode().decode("latin-1")


def check(known: Any, first: str, second: str) -> bool:
    """True if both have one number; they have one shape then, where all literals of the first are shortened."""
    found = number(known, first)
    if found is None or number(known, second) != found:
        return False
    first, second = as_read(first), as_read(second)
    if shortens_all(first) and shortens_all(second) and shape_of(first, 0) is not None:
        assert shape_of(first, 0) == shape_of(second, 0), (first, second)
    return True


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=8), st.integers(0, 7), st.sampled_from(PARTS))
def test_statements_with_one_number_have_one_shape(parts: list[str], place: int, other: str) -> None:
    changed = [*parts]
    changed[place % len(parts)] = other
    for build in builds():
        known = build.known_statements.KnownStatements(BOUNDS, SEED)
        check(known, "".join(parts), "".join(changed))
        check(known, "UPDATE t SET a = " + " ".join(parts), "UPDATE t SET a = " + " ".join(changed))


def test_many_statements_with_one_number_have_one_shape() -> None:
    chance = random.Random(41)
    known = next(iter(builds())).known_statements.KnownStatements(BOUNDS, SEED)
    alike = 0
    literals = PARTS[: PARTS.index("NULL")]
    for _ in range(100_000):
        parts = chance.choices(literals if chance.random() < 0.8 else PARTS, k=chance.randrange(1, 6))
        changed = [*parts]
        changed[chance.randrange(len(parts))] = chance.choice(literals)
        glue = chance.choice(["", " ", ", ", " = ", "("])
        alike += parts != changed and check(known, glue.join(parts), glue.join(changed))
    assert alike > 300


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        ("UPDATE t SET a = 1 WHERE id = 5", "UPDATE t SET a = 2 WHERE id = 77", True),
        ("UPDATE t SET a = 1 WHERE id = 5", "UPDATE t SET a = 1 WHERE id = 500000", False),
        ("INSERT INTO t VALUES ('a', '2024-01-02')", "INSERT INTO t VALUES ('it''s é', '2023-12-28')", False),
        ("INSERT INTO t VALUES ('a', '2024-01-02')", "INSERT INTO t VALUES ('it''s', '2023-12-28')", True),
        ("INSERT INTO t VALUES ('2024-01-02')", "INSERT INTO t VALUES ('2024-02-30')", False),
        ("INSERT INTO t VALUES ('{}')", "INSERT INTO t VALUES ('{\"a\": [1, 2]}')", True),
        ("DELETE FROM t WHERE a > '5'", "DELETE FROM t WHERE a > '0'", False),
        ("DELETE FROM t WHERE a LIKE 'b%'", "DELETE FROM t WHERE a LIKE 'c%'", False),
        ("DELETE FROM t WHERE `a` = 5", "DELETE FROM t WHERE `b` = 5", False),
    ],
)
def test_literals_of_one_class_are_taken_for_each_other(
    build: KernelBuild, first: str, second: str, alike: bool
) -> None:
    known = build.known_statements.KnownStatements(BOUNDS, SEED)
    assert (number(known, first) == number(known, second)) is alike


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET a = 'x",
        "UPDATE t SET a = 1 -- c",
        "UPDATE t SET a = 1 /* c */",
        "UPDATE t SET é = 1",
        "UPDATE `t(",
    ],
)
def test_what_a_few_bytes_do_not_explain_has_no_number(build: KernelBuild, statement: str) -> None:
    assert number(build.known_statements.KnownStatements(BOUNDS, SEED), statement) is None


def test_both_builds_know_the_same_statements() -> None:
    chance = random.Random(7)
    for _ in range(300):
        first, second = ("".join(chance.choices(PARTS, k=4)) for _ in range(2))
        found = set()
        for build in builds():
            known = build.known_statements.KnownStatements(BOUNDS, SEED)
            numbers = [number(known, one) for one in (first, second)]
            found.add((numbers[0] is None, numbers[1] is None, numbers[0] == numbers[1]))
        assert len(found) == 1, (first, second)
