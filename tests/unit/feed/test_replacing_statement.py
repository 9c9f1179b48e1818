"""Whether a statement replaced rows of a table or updated them, by its text."""

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[feed]'")

from relay.feed.statements.replacing_statement import RowsEffect, rows_effect

TABLE = ("shop", "orders")


@pytest.mark.parametrize(
    "text",
    ["REPLACE INTO orders (id) VALUES (1)", "replace low_priority into`shop`.`orders` SET id = 1",
     "REPLACE shop . orders SELECT 1", "/* nightly */ REPLACE/**/INTO -- x\n `orders` VALUES (1)", "REPLACE INTO Orders VALUES (1)",
     "/*!50000 REPLACE */ orders VALUES (1)", "LOAD DATA LOCAL INFILE 'a' REPLACE INTO TABLE orders (id)",
     "LOAD XML INFILE 'REPLACE INTO TABLE b' REPLACE INTO TABLE `shop`.orders"],
)  # fmt: skip
def test_a_replace_that_names_the_table_replaced_its_rows(text: str) -> None:
    assert rows_effect(text, TABLE, alone=True) is RowsEffect.REPLACED


@pytest.mark.parametrize(
    "text",
    ["UPDATE orders SET s = 'REPLACE INTO orders'", "/* REPLACE */ update a JOIN orders USING (id) SET a.x = 1", "DELETE FROM a",
     "INSERT INTO orders (id) VALUES (1) ON DUPLICATE KEY UPDATE a = 1", "-- REPLACE\nINSERT IGNORE orders SELECT 1"],
)  # fmt: skip
def test_other_changes_leave_columns_that_they_do_not_name_as_they_were(text: str) -> None:
    assert rows_effect(text, TABLE, alone=True) is RowsEffect.UPDATED


@pytest.mark.parametrize(
    "text",
    [None, "", "REPLACE INTO log VALUES (1)", "REPLACE INTO archive.orders VALUES (1)", "CALL orders()", "DO orders()",
     "LOAD DATA INFILE 'REPLACE INTO TABLE orders' INTO TABLE log", "SET STATEMENT sql_mode = '' FOR REPLACE INTO orders VALUES (1)",
     'REPLACE INTO "orders" VALUES (1)', "REPLACE INTO orders_old VALUES (1)", "ANALYZE REPLACE INTO orders VALUES (1)"],
)  # fmt: skip
def test_what_replaces_another_table_or_is_not_understood_is_not_certain(text: str | None) -> None:
    assert rows_effect(text, TABLE, alone=True) is RowsEffect.UNSURE


def test_without_a_schema_it_may_be_another_table_of_that_name_that_has_rows_in_the_transaction() -> None:
    assert rows_effect("REPLACE INTO orders SET a = 1", TABLE, alone=False) is RowsEffect.UNSURE
    assert rows_effect("REPLACE INTO shop.orders SET a = 1", TABLE, alone=False) is RowsEffect.REPLACED
