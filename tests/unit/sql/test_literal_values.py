"""Literals and columns whose values decide: small amounts of time, dates of zeros, numbers that all servers read alike."""

import pytest

from protocol.sql.sql_mode import NO_ZERO_DATE, NO_ZERO_IN_DATE
from tests.unit.sql.test_expressions import used


@pytest.mark.parametrize(
    "expression",
    [
        "NOW() + INTERVAL id DAY",
        "NOW() + INTERVAL 99999 DAY",
        "NOW() + INTERVAL 999999999 SECOND",
        "DATE_ADD(NOW(), INTERVAL 3600000000 MICROSECOND)",
        "ADDDATE(NOW(), id)",
        "NOW() - INTERVAL NAME_CONST('i', 3) DAY",
    ],
)
def test_a_small_amount_moves_all_moments_alike(expression: str) -> None:
    assert used(f"UPDATE t SET at = {expression}") == ["NOW()"]


@pytest.mark.parametrize(
    "expression",
    [
        "NOW() + INTERVAL 100000 DAY",
        "NOW() + INTERVAL 1000000000 SECOND",
        "NOW() + INTERVAL id DAY_MICROSECOND",
        "NOW() + INTERVAL id * 2 DAY",
        "NOW() + INTERVAL s DAY",
        "NOW() + INTERVAL (SELECT n FROM u) DAY",
    ],
)
def test_another_amount_is_judged(expression: str) -> None:
    assert any(one.startswith("INTERVAL") for one in used(f"UPDATE t SET at = {expression}"))


@pytest.mark.parametrize("literal", ["'0000-00-00'", "'0000-00-00 00:00:00'", "'0000-00-00 00:00:00.000000'"])
@pytest.mark.parametrize("sign", ["=", "<>", "<", ">="])
def test_a_date_of_zeros_is_compared_as_a_date_where_it_is_allowed(literal: str, sign: str) -> None:
    (compared,) = used(f"DELETE FROM t WHERE at {sign} {literal}")
    assert compared == f"{sign} date zero|datetime , text date"


@pytest.mark.parametrize("mode", [NO_ZERO_DATE, NO_ZERO_IN_DATE])
def test_a_date_of_zeros_is_none_where_it_is_not_allowed(mode: int) -> None:
    assert used("DELETE FROM t WHERE at = '0000-00-00'", mode=mode) == ["= date zero|datetime , text no date"]


@pytest.mark.parametrize(
    "condition", ["s = '0000-00-00'", "at = '0000-00-01'", "at = '0000-00-00 00:00:01'", "GREATEST(at, '0000-00-00')"]
)
def test_what_is_no_comparison_of_dates_with_a_date_of_zeros_stays(condition: str) -> None:
    assert "text no date" in used(f"DELETE FROM t WHERE {condition}")[0]


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("CHAR(10)", "text other"),
        ("CHAR(200)", "TEXT?|bytes"),
        ("UNHEX('414243')", "text other"),
        ("UNHEX('ff')", "bytes"),
        ("DATE_ADD('2020-01-31', INTERVAL 1 DAY)", "text date"),
    ],
)
def test_a_call_with_literals_gives_what_they_say(expression: str, result: str) -> None:
    wanted = result.removesuffix("|bytes").replace("TEXT?", "text other")
    assert wanted in used(f"UPDATE t SET s = LOWER({expression})")[-1]
    assert ("bytes" in used(f"UPDATE t SET s = LOWER({expression})")[-1]) == ("bytes" in result)


@pytest.mark.parametrize("expression", ["FROM_UNIXTIME(1588673472)", "FORMAT(id, 2)", "CHAR(13)"])
def test_a_call_that_all_servers_read_alike_is_not_judged(expression: str) -> None:
    assert used(f"UPDATE t SET s = {expression}") == []


@pytest.mark.parametrize(
    "expression",
    [
        "FROM_UNIXTIME(0)",
        "FROM_UNIXTIME(-5)",
        "FROM_UNIXTIME(9999999999)",
        "FROM_UNIXTIME(UNIX_TIMESTAMP() * 2)",
        "FROM_UNIXTIME(UNIX_TIMESTAMP() + 999999)",
        "FORMAT(id, 65)",
        "FORMAT(id, -2)",
        "FORMAT(s, 2)",
    ],
)
def test_a_call_with_other_numbers_is_judged(expression: str) -> None:
    assert used(f"UPDATE t SET s = {expression}")


def test_a_time_after_2038_is_none_of_an_older_server() -> None:
    assert used("UPDATE t SET at = FROM_UNIXTIME(2147483648)") == ["FROM_UNIXTIME() unsigned"]


@pytest.mark.parametrize("expression", ["b & UNHEX('0F')", "BIT_COUNT(UNHEX('3132'))", "b | CHAR(15)", "~UNHEX('31')"])
def test_bits_of_bytes_are_those_of_bytes(expression: str) -> None:
    assert used(f"UPDATE t SET b = {expression}")[-1].endswith("bytes")


@pytest.mark.parametrize("value", ["x.z", "(SELECT '0000-00-00')", "'0000-00-00' COLLATE utf8_bin"])
def test_a_date_of_zeros_is_compared_as_a_date_only_as_a_literal(value: str) -> None:
    text = f"UPDATE t, (SELECT '0000-00-00' AS z) x SET t.id = 1 WHERE t.at = {value}"
    assert "text no date" in used(text)[-1]


def test_nullif_of_a_date_of_zeros_gives_no_date() -> None:
    assert used("UPDATE t SET id = TO_DAYS(NULLIF('0000-00-00', at))")[-1] == "TO_DAYS() text no date"
