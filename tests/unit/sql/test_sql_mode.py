"""The bits of sql_mode have one home; compiled code has its own copy of two."""

from protocol.columns.codes import column_codes
from protocol.sql import sql_mode

MODES = {
    name: value
    for name, value in vars(sql_mode).items()
    if isinstance(value, int) and name not in ("STRICT", "IN_BOTH", "OF_MARIADB", "OTHER_GRAMMARS")
}


def test_each_mode_is_one_bit_and_no_two_of_one_server_are_the_same() -> None:
    assert all(value.bit_count() == 1 for value in MODES.values())
    of_mysql = [value for value in MODES.values() if value <= sql_mode.TIME_TRUNCATE_FRACTIONAL]
    # TIME_TRUNCATE_FRACTIONAL of MySQL is EMPTY_STRING_IS_NULL of MariaDB.
    assert len(of_mysql) - len(set(of_mysql)) == 1


def test_a_client_may_set_every_mode_that_has_a_bit() -> None:
    assert set(MODES) <= sql_mode.MODE_NAMES


def test_compiled_code_has_the_same_bits() -> None:
    assert (column_codes.ANSI_QUOTES, column_codes.NO_BACKSLASH_ESCAPES) == (
        sql_mode.ANSI_QUOTES,
        sql_mode.NO_BACKSLASH_ESCAPES,
    )
