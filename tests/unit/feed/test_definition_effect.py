"""Which changes of a column leave every value as it was, so that the feed may follow them."""

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[feed]'")

from relay.feed.rows.feed_place import FeedPlace
from relay.feed.statements.definition_effect import is_kept
from relay.schema_history.tables.source_table import Column


def column(type: str, charset: str = "", *, nullable: bool = True) -> Column:
    return Column("c", type, charset, nullable=nullable)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (column("int(11)"), column("bigint(20)")),
        (column("smallint(5) unsigned"), column("int(11)")),
        (column("varchar(9)", "latin1"), column("varchar(20)", "utf8mb4")),
        (column("varchar(9)", "utf8mb4"), column("text", "utf8mb4")),
        (column("decimal(10,2)"), column("decimal(12,4)")),
        (column("decimal(50,5)"), column("decimal(50,5)")),  # which is text in the lake, and stays as it is
        (column("float"), column("double")),
        (column("enum('a','b')"), column("enum('x','b','a')")),
        (column("set('a','b')"), column("set('a','b','c')")),
        (column("datetime"), column("datetime(3)")),
        (column("int(11)", nullable=False), column("int(11)")),
    ],
)
def test_what_only_became_wider_is_followed(old: Column, new: Column) -> None:
    assert is_kept(old, new, strict=False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (column("bigint(20)"), column("int(11)")),
        (column("int(10) unsigned"), column("int(11)")),
        (column("int(11)"), column("varchar(20)", "latin1")),
        (column("varchar(20)", "latin1"), column("varchar(9)", "latin1")),
        (column("varchar(9)", "utf8mb4"), column("varchar(9)", "latin1")),
        (column("varchar(9)", "latin1"), column("char(9)", "latin1")),
        (column("decimal(10,2)"), column("decimal(10,4)")),
        (column("decimal(10,4)"), column("decimal(12,2)")),
        (column("double"), column("float")),
        (column("enum('a','b')"), column("enum('a')")),
        (column("set('a','b')"), column("set('b','a')")),
        (column("datetime(3)"), column("datetime")),
        (column("timestamp"), column("datetime")),
        (column("int(11)"), column("int(11)", nullable=False)),
        (column("binary(3)"), column("binary(5)")),
    ],
)
def test_what_may_have_changed_a_value_is_not(old: Column, new: Column) -> None:
    assert not is_kept(old, new, strict=False)


def test_a_statement_that_fails_where_a_value_would_change_has_changed_none() -> None:
    assert is_kept(column("bigint(20)"), column("int(11)"), strict=True)
    assert is_kept(column("int(11)"), column("int(11)", nullable=False), strict=True)
    assert not is_kept(column("decimal(10,4)"), column("decimal(12,2)"), strict=True)  # rounding is no error


@pytest.mark.parametrize(
    "place",
    [FeedPlace(1, 1, 4), FeedPlace(1, 999_999, 1 << 33), FeedPlace(2, 1, 4), FeedPlace(255, 2_097_151, (1 << 34) - 1)],
)
def test_a_place_is_one_number_and_back(place: FeedPlace) -> None:
    assert FeedPlace.of_version(place.version) == place
    assert 0 < place.version < 1 << 63


def test_places_sort_by_source_then_file_then_offset_as_numbers_and_as_places() -> None:
    names = [
        "mysql-bin.000001:4",
        "mysql-bin.000001:900",
        "mysql-bin.999999:4",
        "mysql-bin.1000000:4",
        "g0002/a.000001:4",
    ]
    places = [FeedPlace.of_text(name) for name in names]
    assert sorted(places) == places
    assert sorted(one.version for one in places) == [one.version for one in places]
