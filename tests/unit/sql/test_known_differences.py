"""What real servers of both versions were seen to do, where the survey's samples do not decide."""

import pytest

from protocol.sql.expressions.constructs import Classes
from protocol.sql.expressions.known_differences import known_difference
from protocol.sql.survey.surveyed import SurveyKind
from protocol.sql.survey.value_class import ANY, ValueClass, classes_of_type

MYSQL = "5.6.24-log"
MARIADB = "10.11.19-MariaDB-log"


def test_a_geometry_stays_as_it_is_in_a_column_of_geometries() -> None:
    found = known_difference("store GEOMETRY", (classes_of_type("point"),), MYSQL, (9, 7))
    assert found is not None and found.kind is SurveyKind.SAME


@pytest.mark.parametrize("stored", [ANY, classes_of_type("varchar(9)"), frozenset((ValueClass.NULL,))])
def test_of_other_values_for_a_column_of_geometries_the_survey_decides(stored: Classes) -> None:
    assert known_difference("store GEOMETRY", (stored,), MYSQL, (9, 7)) is None


@pytest.mark.parametrize("name", ["=", "<", ">=", "IN", "BETWEEN"])
def test_datetimes_compare_alike_whatever_zeros_they_have(name: str) -> None:
    now = frozenset((ValueClass.DATETIME,))
    found = known_difference(name, (classes_of_type("timestamp(3)"), now), MARIADB, (9, 7))
    assert found is not None and found.kind is SurveyKind.SAME


@pytest.mark.parametrize("other", ["date", "varchar(9)", "int"])
def test_of_a_datetime_and_another_type_the_survey_decides(other: str) -> None:
    compared = (classes_of_type("datetime"), classes_of_type(other))
    assert known_difference("<", compared, MARIADB, (9, 7)) is None
    assert known_difference("<", compared[::-1], MARIADB, (9, 7)) is None
