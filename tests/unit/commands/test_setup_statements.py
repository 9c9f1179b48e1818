"""What `init` prints for a view: an account that sees all tables, and dump and seed where an empty server would stop."""

from dataclasses import replace
from pathlib import Path

import pytest

from relay.setup.relay_toml import relay_toml
from relay.setup.setup_answers import SetupAnswers, SourceSurvey
from relay.setup.setup_statements import replica_statements, source_statements

ANSWERS = SetupAnswers(
    config=Path("/etc/relay.toml"), source_host="db-old", source_port=3306, source_user="repl", source_password_file=Path("/s"),
    archive=Path("/a"), listen_host="0.0.0.0", listen_port=3307, relay_host="relay", replica_user="replica",
    replica_password_file=Path("/r"), admin_password_file=Path("/d"), view="mysql-9.7",
)  # fmt: skip
OLD = SourceSurvey("mysql", "5.6.24-log", "OFF", frozenset(), "mysql-bin.000002", 3, "", "STATEMENT")


def test_a_server_with_data_from_before_its_binlogs_is_dumped_and_seeded_and_nothing_attaches_an_empty_one() -> None:
    told = "\n".join(replica_statements(ANSWERS, OLD))
    assert "before mysql-bin.000002 is in no binlog" in told and "view seed gtid --dump dump.sql" in told
    assert "mysqldump" in told and "--hex-blob" in told and "NO_AUTO_CREATE_USER" in told
    assert all(line.startswith("--") for line in told.splitlines())


def test_binlogs_from_the_first_on_make_an_empty_server_a_replica_and_one_with_data_is_seeded() -> None:
    told = "\n".join(replica_statements(ANSWERS, replace(OLD, oldest="mysql-bin.000001")))
    assert "SOURCE_RETRY_COUNT = 86400" in told and "START REPLICA" in told and "view seed gtid" in told


@pytest.mark.parametrize(("view", "more"), [("mysql-9.7", True), (None, False)])
def test_the_account_of_a_view_may_see_triggers_and_foreign_keys(view: str | None, more: bool) -> None:
    assert ("PROCESS, TRIGGER" in source_statements(replace(ANSWERS, view=view), OLD)[-1]) is more


def test_the_configuration_has_the_view_that_documents_name_and_an_account_for_its_administrator() -> None:
    text = relay_toml(ANSWERS, OLD, 4242, "disabled")
    assert 'name = "gtid"' in text and 'user = "dba"' in text and "admin = true" in text


@pytest.mark.parametrize(
    ("binlog_format", "logged"), [("STATEMENT", True), ("MIXED", True), ("ROW", False), (None, False)]
)
def test_a_source_that_logs_statements_is_known_as_one(binlog_format: str | None, logged: bool) -> None:
    assert (replace(OLD, binlog_format=binlog_format).logged is not None) is logged
