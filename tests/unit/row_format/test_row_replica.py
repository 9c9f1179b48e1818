"""What is said of a source that logs statements, in the words of its own version."""

from pathlib import Path

import pytest

from relay.row_format.row_replica import LoggedFormat, logged_format


@pytest.mark.parametrize(
    ("flavour", "version", "change", "option"),
    [
        ("mysql", "5.6.24-log", "CHANGE MASTER TO MASTER_HOST = 'old', MASTER_PORT = 3306", "log_slave_updates = ON"),
        ("mysql", "8.0.39", "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'old'", "log_replica_updates = ON"),
        ("mariadb", "10.11.19-MariaDB", "CHANGE MASTER TO MASTER_HOST = 'old'", "log_slave_updates = ON"),
    ],
)
def test_the_replica_in_between_is_set_up_in_the_words_of_its_version(
    flavour: str, version: str, change: str, option: str
) -> None:
    logged = LoggedFormat(flavour, version, "STATEMENT")
    told, start = logged.statements("old", 3306)
    assert told.startswith(change) and start == f"START {'REPLICA' if 'SOURCE TO' in change else 'SLAVE'}"
    assert ("RETRY_COUNT" in told) == (flavour == "mysql") and ("MASTER_USE_GTID = no" in told) == (
        flavour == "mariadb"
    )
    assert option in logged.options() and "binlog_format = ROW" in logged.options()
    assert "binlog_format is STATEMENT" in logged.warning() and "VIEWS.md" in logged.answer()


@pytest.mark.parametrize(("binlog_format", "logs"), [("ROW", False), ("MIXED", True), ("STATEMENT", True)])
def test_mixed_is_statements_too(binlog_format: str, logs: bool) -> None:
    assert LoggedFormat("mysql", "5.6.24", binlog_format).logs_statements is logs


def test_an_archive_that_does_not_exist_says_nothing(tmp_path: Path) -> None:
    assert logged_format(tmp_path) is None
