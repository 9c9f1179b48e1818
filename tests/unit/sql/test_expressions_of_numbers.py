"""What exact numbers make."""

import pytest

from tests.unit.sql.test_expressions import used


@pytest.mark.parametrize(
    ("expression", "construct"),
    [
        ("FLOOR(id / 10)", "FLOOR() decimal"),
        ("CEIL(n / 20)", "CEIL() decimal"),
        ("ROUND(AVG(n))", "ROUND() decimal"),
        ("ROUND(SUM(n))", "ROUND() decimal"),
        ("FLOOR(COS(1) / 10)", "FLOOR() double"),
        ("GREATEST(id - 1, 0)", "GREATEST() INT? , integer"),
        ("LEAST(id + 1, 10)", "LEAST() INT? , integer"),
        ("IF(id, id - 1, 0)", "IF() INT? , INT? , integer"),
        ("LEAST(18446744073709551615 - id, 10)", "LEAST() WHOLE? , integer"),
        ("LEAST(id * id, 10)", "LEAST() INT? , integer"),
    ],
)
def test_exact_numbers_make_exact_numbers(expression: str, construct: str) -> None:
    assert used(f"SELECT {expression} FROM u")[-1] == construct
