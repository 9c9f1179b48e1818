"""Versions of servers as numbers."""

import pytest

from protocol.sql.server_version import is_only_mysqls, version_id, version_numbers


@pytest.mark.parametrize(
    ("text", "numbers", "number"),
    [
        ("5.6.24-log", (5, 6, 24), 50_624),
        ("10.11.6-MariaDB-log", (10, 11, 6), 101_106),
        ("8.4", (8, 4, 0), 80_400),
        ("", (0, 0, 0), 0),
        ("strange", (0, 0, 0), 0),
        ("1.100.0", (1, 100, 0), 0),
        ("9" * 5000 + ".1.1", (0, 0, 0), 0),
    ],
)
def test_a_version_is_read_as_its_numbers(text: str, numbers: tuple[int, int, int], number: int) -> None:
    assert (version_numbers(text), version_id(text)) == (numbers, number)


def test_mariadb_skips_comments_for_versions_that_only_mysql_has() -> None:
    assert [is_only_mysqls(number) for number in (50_699, 50_700, 99_999, 100_000)] == [False, True, True, False]
