"""The sign of zero is no difference to the survey. A number with more digits after the point is one of form, and one of another type
has that type.
"""

import pytest

from protocol.sql.survey.surveyed import PAIRS, SurveyKind, read_survey
from protocol.sql.survey.value_class import ValueClass
from tests.survey.asking import Answer
from tests.survey.comparing import judge
from tests.survey.expressions import Expression

_PRODUCT = Expression("*", (ValueClass.NEGATIVE, ValueClass.DOUBLE), "(-1 * 0e0)")


@pytest.mark.parametrize(
    ("source", "target", "kind", "error"),
    [
        (Answer(b"0", "double"), Answer(b"-0", "double"), "same", ""),
        (Answer(b"-0.0000", "decimal"), Answer(b"0.0000", "decimal"), "same", ""),
        (Answer(b"0", "integer"), Answer(b"-0", "double"), "differs", "type"),
        (Answer(b"0.00", "decimal"), Answer(b"-0", "double"), "differs", "form"),
        (Answer(b"2.50", "decimal"), Answer(b"2.5", "decimal"), "differs", "form"),
        (Answer(b"1000", "double"), Answer(b"1e3", "double"), "differs", "form"),
        (Answer(b"255", "integer"), Answer(b"\xff", "integer"), "differs", ""),
        (Answer(b"1", "double"), Answer(b"-1", "double"), "differs", ""),
        (Answer(b"0", "text"), Answer(b"-0", "text"), "differs", ""),
        (Answer(None, "double"), Answer(b"-0", "double"), "differs", ""),
    ],
)
def test_results_that_are_equal_but_for_the_sign_of_zero_are_the_same(
    source: Answer, target: Answer, kind: str, error: str
) -> None:
    assert judge(_PRODUCT, source, target)[1:3] == (kind, error)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(
    ("construct", "arguments"),
    [
        ("*", (ValueClass.DOUBLE, ValueClass.DECIMAL)),
        ("*", (ValueClass.NEGATIVE, ValueClass.DOUBLE)),
        ("/", (ValueClass.YEAR, ValueClass.DOUBLE)),
        ("%", (ValueClass.NEGATIVE, ValueClass.DECIMAL)),
        ("unary -", (ValueClass.DOUBLE,)),
    ],
)
def test_ordinary_arithmetic_is_the_same_everywhere(
    pair: tuple[str, str], construct: str, arguments: tuple[ValueClass, ...]
) -> None:
    found = read_survey(*pair).verdict(construct, [frozenset({one}) for one in arguments], strict=False)
    assert found.kind is SurveyKind.SAME or found.only_type
