"""Which of two binlogs comes behind the other, as far as names say."""

import pytest

from protocol.position import is_later


@pytest.mark.parametrize(
    ("file", "other", "later", "later_or_same"),
    [
        ("mysql-bin.000002", "mysql-bin.000001", True, True),
        ("mysql-bin.1000000", "mysql-bin.999999", True, True),
        ("mysql-bin.000001", "mysql-bin.000001", False, True),
        ("mysql-bin.000001", "mysql-bin.000002", False, False),
        ("other-bin.000002", "mysql-bin.000001", False, False),
        ("no-binlog", "mysql-bin.000001", False, False),
    ],
)
def test_a_binlog_is_later_by_its_number_among_those_of_one_server(
    file: str, other: str, later: bool, later_or_same: bool
) -> None:
    assert is_later(file, other) == later
    assert is_later(file, other, or_same=True) == later_or_same
