"""What statements come to for the tables that are fed."""

from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[feed]'")

from protocol.sql.sql_mode import ANSI_QUOTES
from relay.feed.statements.logged_changes import (
    DROPPED,
    TRUNCATED,
    UNKNOWN_CHANGE,
    LoggedChanges,
    logged_changes,
    shown,
)


def told(
    *texts: str, known: str = "orders", version: str = "5.6.24-log", temporary: bool = False, **more: Any
) -> LoggedChanges:
    statements = [
        {"file": "bin.000001", "transaction": 100 * number, "position": 100 * number, "end": 100 * number + 99, "statement": text,
         "schema": "shop", "sql_mode": 0, "error_code": 0, "time": None, **more}
        for number, text in enumerate(texts, 1)
    ]  # fmt: skip
    return logged_changes(statements, {}, lambda _place: version, [("shop", known)], lambda _place: temporary)


def actions(found: LoggedChanges) -> list[tuple[str, str]]:
    return [(one.key[1], one.action) for one in found.definitions]


def test_a_statement_with_a_tables_name_in_another_case_may_mean_it() -> None:
    found = told("TRUNCATE TABLE ORDERS")
    assert actions(found) == [("orders", UNKNOWN_CHANGE), ("ORDERS", TRUNCATED)]
    assert found.definitions[0].hides == "a statement that has its name in another case (TRUNCATE TABLE ORDERS)"


def test_a_statement_with_the_name_as_it_is_means_that_table_alone() -> None:
    assert actions(told("TRUNCATE TABLE orders")) == [("orders", TRUNCATED)]


def test_a_truncate_that_used_a_temporary_table_is_not_taken_for_one_of_the_table_that_this_hides() -> None:
    found = told("TRUNCATE TABLE orders", temporary=True)
    assert not found.definitions
    assert [one.reason for one in found.unseen] == ["a TRUNCATE, perhaps of a temporary table"]


def test_a_drop_of_which_one_table_was_not_there_drops_the_others() -> None:
    assert actions(told("DROP TABLE `orders`,`none`", error_code=1051)) == [("orders", DROPPED), ("none", DROPPED)]


def test_a_definition_with_another_error_is_not_known() -> None:
    assert actions(told("DROP TABLE `orders`", error_code=1205)) == [("orders", UNKNOWN_CHANGE)]


def test_what_is_not_understood_is_about_tables_of_the_schemas_that_it_may_mean() -> None:
    text = "CREATE TABLE orders (id INT PRIMARY KEY) SELECT * FROM old"
    assert actions(told(text)) == [("orders", UNKNOWN_CHANGE)]
    assert actions(told(text, schema="elsewhere")) == []
    assert actions(told(text.replace("orders", "Shop.Orders"), schema="elsewhere")) == [("orders", UNKNOWN_CHANGE)]


def test_no_string_of_a_statement_that_may_have_a_password_is_shown() -> None:
    assert (
        shown("ALTER TABLE t CONNECTION='mysql://u:secret@h/d', COMMENT 'x''y'", 80)
        == "ALTER TABLE t CONNECTION='***', COMMENT '***'"
    )
    assert shown("ALTER TABLE t  COMMENT 'plain'", 80) == "ALTER TABLE t COMMENT 'plain'"


@pytest.mark.parametrize("engine", ["BLACKHOLE", "'blackhole'", '"BLACKHOLE"', "`Blackhole`"])
def test_an_alter_to_an_engine_that_keeps_no_rows_hides_that_they_go(engine: str) -> None:
    assert told(f"ALTER TABLE orders ENGINE = {engine}").definitions[0].hides


@pytest.mark.parametrize("other", ["other", "`other`", '"other"', "shop.`other`", "/* now */ other"])
def test_an_exchange_hides_what_both_tables_get_however_the_other_is_written(other: str) -> None:
    found = told(f"ALTER TABLE orders EXCHANGE PARTITION p0 WITH TABLE {other}", sql_mode=4)
    assert [(one.key[1], bool(one.hides)) for one in found.definitions] == [("orders", True), ("other", True)]


def test_a_comment_of_a_line_ends_with_the_line() -> None:
    assert (
        actions(told("--\nTRUNCATE TABLE orders"))
        == actions(told("-- x\nTRUNCATE TABLE orders"))
        == [("orders", TRUNCATED)]
    )
    assert actions(told("#\nTRUNCATE TABLE orders")) == [("orders", TRUNCATED)]


def test_comments_before_a_statement_cost_no_time() -> None:
    found = told("/**/" * 5000 + "UPDATE orders SET a = 1")
    assert [one.reason for one in found.unseen] == ["a change in statement format (update)"]


def test_a_truncate_that_nobody_understands_may_be_of_any_table() -> None:
    found = told("TRUNCATE TABLE")
    assert not found.definitions
    assert [one.words for one in found.unseen] == [None]


@pytest.mark.parametrize(
    ("text", "changes"),
    [("ANALYZE UPDATE orders SET a = 1", True), ("ANALYZE FORMAT=JSON DELETE FROM orders", True), ("ANALYZE TABLE orders", False),
     ("ANALYZE LOCAL TABLE orders", False), ("ANALYZE NO_WRITE_TO_BINLOG TABLES orders", False)],
)  # fmt: skip
def test_an_analyze_changes_rows_where_it_runs_a_statement(text: str, changes: bool) -> None:
    assert bool(told(text, version="10.11.6-MariaDB").unseen) is changes


@pytest.mark.parametrize(
    ("clause", "changes"),
    [
        ("ADD COLUMN e INT", True),
        ("ADD COLUMN IF NOT EXISTS e INT", True),
        ("DROP COLUMN e", True),
        ("MODIFY e BIGINT", True),
        ("CHANGE e f INT", True),
        ("CONVERT TO CHARACTER SET utf8mb4", True),
        ("ADD KEY (e)", False),
        ("ENGINE = InnoDB", False),
    ],
)
def test_an_alter_that_renames_a_table_may_change_its_columns_too(clause: str, changes: bool) -> None:
    found = told(f"ALTER TABLE orders RENAME TO sold, {clause}", version="10.11.19-MariaDB").definitions
    assert [one.changes_columns for one in found if one.source is not None] == [changes]


def test_a_statement_runs_by_the_modes_of_its_session() -> None:
    (one,) = told("ALTER TABLE orders ADD b INT", sql_mode=1 << 31 | 1 << 22).definitions
    assert (one.pads, one.strict, one.keeps_zero) == (True, True, False)
    (one,) = told("ALTER TABLE orders ADD b INT", sql_mode=1 << 19).definitions
    assert (one.pads, one.strict, one.keeps_zero) == (False, False, True)


def test_a_change_in_statement_format_is_of_no_table_whose_name_is_in_a_string_or_a_comment() -> None:
    (unseen,) = told("INSERT INTO log VALUES ('orders') /* orders */").unseen
    assert unseen.names(("shop", "log")) and not unseen.names(("shop", "orders"))


@pytest.mark.parametrize(("quote", "mode"), [("`", 0), ('"', ANSI_QUOTES)])
def test_a_change_in_statement_format_may_be_of_any_table_whose_name_is_in_quotes(quote: str, mode: int) -> None:
    (unseen,) = told(f"DELETE FROM {quote}my-orders{quote} WHERE 1", known="my-orders", sql_mode=mode).unseen
    assert unseen.names(("shop", "my-orders")) and not unseen.names(("shop", "our-orders"))


def test_a_change_of_system_tables_alone_changes_no_fed_table() -> None:
    heartbeat = "INSERT INTO mysql.rds_heartbeat2 (id, value) VALUES (1, 5) ON DUPLICATE KEY UPDATE value = 5"
    assert not told(heartbeat).unseen
    assert not told("UPDATE heartbeat SET at = NOW()", schema="mysql").unseen
    assert told("INSERT INTO mysql.rds_heartbeat2 VALUES (shop.f())").unseen
    assert told("UPDATE mysql.a, shop.orders SET orders.a = 1").unseen
    assert told("INSERT INTO mysql.a SELECT 'unread").unseen
