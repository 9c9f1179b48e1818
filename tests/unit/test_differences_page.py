"""The page of the survey has the table that its data give."""

from tests.survey import page


def test_the_table_on_the_page_is_that_of_the_data() -> None:
    assert page.written() == page.tables()
