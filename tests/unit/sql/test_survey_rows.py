"""The survey itself: its values have the classes they are kept under, its rows are what was tried, and no function is missing."""

import pytest

from protocol.sql.server_functions import functions_of
from protocol.sql.survey.survey_row import KINDS, read_row
from protocol.sql.survey.value_class import ValueClass, classes_of_type
from tests.survey.compressing import Cell, Cells, rows_of
from tests.survey.constructs import LEFT_OUT, constructs_of
from tests.survey.expressions import expressions_of
from tests.survey.values import columns, values_by_class

_SYNTAX = {"CAST", "CONVERT", "CHARACTER"}
"""Words that the list of functions has for their brackets: casts are constructs of other names, and CHARACTER is CHAR."""
_EVERY = (ValueClass.NULL, ValueClass.INTEGER, ValueClass.DATE)


@pytest.mark.parametrize("version", ["5.6.24", "9.7.4", "10.11.19-MariaDB", "11.8.9-MariaDB"])
def test_every_function_of_a_source_is_asked_for_or_left_out_by_name(version: str) -> None:
    asked = {construct.name.partition("(")[0] for construct in constructs_of(version)}
    assert functions_of(version) - asked - set(LEFT_OUT) - _SYNTAX == set()


@pytest.mark.parametrize("column", columns(), ids=lambda column: column.name)
def test_a_column_of_the_table_of_values_may_have_its_class(column: object) -> None:
    assert column.kind in classes_of_type(column.type)  # type: ignore[attr-defined]


def test_every_class_but_json_has_several_values() -> None:
    assert {kind for kind, values in values_by_class().items() if len(values) > 1} == set(ValueClass) - {
        ValueClass.TEXT_EMPTY,
        ValueClass.JSON,
    } | {ValueClass.TEXT_EMPTY}


def test_the_same_expressions_are_asked_each_time() -> None:
    construct = next(iter(constructs_of("5.6.24")))
    assert list(expressions_of(construct)) == list(expressions_of(construct))


def cell(kind: str) -> Cell:
    return Cell(kind, "", ("x", "1", "2"))


def test_rows_cover_what_was_tried_and_nothing_else() -> None:
    cells: Cells = {
        (one, other): cell("differs" if one is other is ValueClass.DATE else "same")
        for one in _EVERY
        for other in _EVERY
        if (one, other) != (ValueClass.NULL, ValueClass.INTEGER)
    }
    lines = rows_of("F()", {"strict": cells, "loose": dict(cells)}, _EVERY, is_variadic=False)
    rows = [read_row(line, frozenset(_EVERY)) for line in lines]
    for one in _EVERY:
        for other in _EVERY:
            found = [row for row in rows if row.common([frozenset({one}), frozenset({other})], strict=True)]
            assert [KINDS[row.kind] for row in found] == ([cells[one, other].kind] if (one, other) in cells else [])


def test_modes_that_agree_are_one_row() -> None:
    cells: Cells = {(ValueClass.NULL,): cell("same")}
    other: Cells = {(ValueClass.NULL,): cell("differs")}
    assert [
        line.split("\t")[2] for line in rows_of("F()", {"strict": cells, "loose": cells}, _EVERY, is_variadic=False)
    ] == ["*"]
    assert sorted(
        line.split("\t")[2] for line in rows_of("F()", {"strict": cells, "loose": other}, _EVERY, is_variadic=False)
    ) == ["loose", "strict"]
