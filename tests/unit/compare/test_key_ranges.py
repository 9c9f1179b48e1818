"""Conditions for ranges of keys."""

from relay.compare.rows.column_forms import PairedColumn
from relay.compare.rows.key_ranges import key_condition, range_condition
from relay.compare.rows.table_shape import ShapeColumn


def column(name: str, kind: str, charset: str = "", collation: str = "") -> PairedColumn:
    one = ShapeColumn(name, kind, False, charset, collation, None, "", "")
    return PairedColumn(one, one)


NUMBER, OTHER = column("a", "int"), column("b", "int")
TEXT = column("t", "varchar(9)", "latin1", "latin1_swedish_ci")


def test_a_table_without_bounds_is_read_as_a_whole() -> None:
    assert range_condition([NUMBER], None, None) == "1"


def test_one_column_is_compared_alone() -> None:
    assert range_condition([NUMBER], (1,), (5,)) == "`a` > 1 AND `a` <= 5"


def test_the_first_column_bounds_what_is_read_of_several() -> None:
    text = range_condition([NUMBER, OTHER], (1, 2), None)
    assert text == "`a` >= 1 AND ((`a` > 1) OR (`a` = 1 AND `b` > 2))"


def test_what_both_bounds_begin_with_is_compared_for_equality() -> None:
    assert range_condition([NUMBER, OTHER], (1, 2), (1, 9)) == "`a` = 1 AND `b` > 2 AND `b` <= 9"


def test_texts_that_may_be_equal_by_their_collation_are_compared_by_the_server() -> None:
    text = range_condition([TEXT, OTHER], ("41", 5), ("61", 9))
    assert "`t` = _latin1 X'41' COLLATE latin1_swedish_ci AND `b` > 5" in text
    assert "`t` = _latin1 X'61' COLLATE latin1_swedish_ci AND `b` <= 9" in text


def test_a_row_is_found_by_all_of_its_key() -> None:
    assert key_condition([NUMBER, OTHER], (1, 2)) == "`a` = 1 AND `b` = 2"
