"""Which numbers of a JSON document a lake keeps: only numbers of the document count, whatever other columns and texts contain."""

import json
from collections.abc import Sequence

import pytest

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install '.[feed]'")

import duckdb
import pyarrow as pa

from protocol.sql.tables.source_table import Column
from relay.feed.rows.document_numbers import inexact_number, inexact_number_of
from relay.feed.rows.feed_stop import FeedStop
from relay.feed.rows.lake_columns import lake_column
from relay.feed.rows.net_changes import CHANGES, TableRows, net_changes

UUID = '{"uuid": "550e8400-e29b-41d4-a716-446655440000"}'
SNOWFLAKE = 1182733990134743040


def stop_of(documents: Sequence[str], key: int = 1) -> str:
    """Return the name of what stops a table with these documents; '': nothing."""
    columns = [lake_column(Column("id", "bigint unsigned", "")), lake_column(Column("j", "json", ""))]
    rows = TableRows("shop.orders", [one for one in columns if one is not None], ("id",), "mysql-bin.000001:4")
    images = [f'{{"id": {key + number}, "j": {document}}}' for number, document in enumerate(documents)]
    changes = pa.table(
        [[1] * len(images), list(range(len(images))), ["insert"] * len(images), [None] * len(images), images],
        schema=CHANGES,
    )
    with duckdb.connect() as connection:
        try:
            net_changes(connection, changes, rows)
        except FeedStop as stop:
            return stop.name
    return ""


@pytest.mark.parametrize(
    "document",
    [
        UUID,
        '{"double": 1e300, "other": -2.5E-8}',
        '{"text": "1.23456789012345678901234", "1.23456789012345678901234": 1}',
        "18446744073709551615",
        "[0.30000000000000004, 9007199254740993]",
        r'{"quoted": "\"1.23456789012345678901234\\"}',
    ],
)
def test_a_document_whose_numbers_a_double_keeps_is_fed_beside_a_long_key(document: str) -> None:
    assert stop_of([document], SNOWFLAKE) == ""


@pytest.mark.parametrize(
    "number",
    [
        "1.12345678901234567891",
        "12345678.123456789012",
        "12345678.10000000000000001",
        "8.2345678901234561",
        "123456789012345678901",
        "-0.0000000123456789012345678",
    ],
)
def test_a_number_that_a_double_does_not_keep_stops_the_table(number: str) -> None:
    assert stop_of([UUID, f'{{"a": [1, {{"b": {number}}}]}}']) == "document_number"


def test_a_thousand_documents_before_the_number_do_not_hide_it() -> None:
    documents = [json.dumps({"n": 0.1 + number / 1e9}) for number in range(2_500)]
    assert stop_of([*documents, "1.12345678901234567891"]) == "document_number"


def test_an_image_and_a_document_alone_are_judged_alike() -> None:
    for number in ("1.5", "1e300", "1.12345678901234567891", "9007199254740993", "184467440737095516160"):
        assert inexact_number(f"[{number}]") == inexact_number_of(f'{{"j": [{number}], "k": {SNOWFLAKE}.0}}', "j")
