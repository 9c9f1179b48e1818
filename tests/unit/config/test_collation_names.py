"""`collations` of a view, by the names of the source's and of the replicas' collations."""

import pytest

from relay.config.collation_names import numbered_collations
from relay.config.text.problems import Wrong
from relay.config.values import checked_collations


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"255": 45}, {"255": 45}),
        ({"utf8mb4_0900_ai_ci": "utf8mb4_general_ci"}, {"255": 45}),
        ({"utf8mb4_uca1400_ai_ci": "utf8mb4_bin", "2048": "utf8_bin"}, {"2304": 46, "2048": 83}),
        ({"UTF8_uca1400_ai_ci": "UTF8MB3_BIN"}, {"2048": 83}),
        ({"latin1_swedish_nopad_ci": "latin1_swedish_ci"}, {"1032": 8}),
        ({"utf8mb4_croatian_mysql561_ci": "utf8mb4_croatian_ci"}, {"245": 245}),
    ],
)
def test_names_and_numbers_mean_the_same(written: dict[str, object], meant: dict[str, int]) -> None:
    found = numbered_collations(written)
    assert found == meant
    assert checked_collations(meant) == meant


@pytest.mark.parametrize(
    ("written", "part"),
    [
        ({"utf8mb4_croatian_ci": 46}, "is another collation in MariaDB than in MySQL"),
        ({"2304": "utf8mb4_uca1400_ai_ci"}, "MySQL has no collation utf8mb4_uca1400_ai_ci"),
        ({"255": 45, "utf8mb4_0900_ai_ci": 46}, "is there twice"),
    ],
)
def test_a_name_that_is_none_or_two_is_refused(written: dict[str, object], part: str) -> None:
    with pytest.raises(Wrong, match=part):
        numbered_collations(written)


@pytest.mark.parametrize("table", [["utf8mb4_bin"], None, 45, {"utf8": 45}, {"255": "45"}])
def test_what_is_no_name_stays_for_the_other_checks(table: object) -> None:
    assert numbered_collations(table) == table


def test_numbers_of_a_mariadb_go_further_than_those_of_mysql() -> None:
    assert checked_collations({"4095": 2047}) == {"4095": 2047}
    for wrong in ({"4096": 45}, {"255": 2048}, {"0": 45}):
        with pytest.raises(Wrong, match="no collation has such a number"):
            checked_collations(wrong)
