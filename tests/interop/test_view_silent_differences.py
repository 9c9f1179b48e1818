"""What a real MySQL 9.7 takes for something else than the MySQL 5.6 that wrote it, and says nothing: without the rule, and with it."""

import subprocess
from pathlib import Path

import pytest

from deploy.servers import Server
from relay.view.rules.group_rules import MysqlRules
from tests.support.rule_groups import RuleRun, settings
from tests.support.view_trial import ViewTrial, reason_of
from tests.support.view_writer import AsItIs

pytestmark = pytest.mark.interop


def logs_in(server: Server, password: str) -> bool:
    """Whether that is the password of the account `u`."""
    program = [*server.mysql_client(), "--no-defaults", "--host=127.0.0.1", "--protocol=TCP", f"--port={server.port}"]
    done = subprocess.run(
        [*program, "--user=u", f"--password={password}", "-e", "DO 1"], capture_output=True, check=False
    )
    assert not done.returncode or b"1045" in done.stderr, done.stderr
    return done.returncode == 0


def test_without_the_rule_the_hash_of_a_password_becomes_the_password(
    trial_servers: tuple[Server, Server], tmp_path: Path
) -> None:
    source, replica = trial_servers
    here = ViewTrial(source, replica, tmp_path / "without")
    source.execute_many(["SET sql_log_bin = 0", "CREATE USER 'u'@'%'"])
    replica.execute_many(["DROP USER IF EXISTS 'u'@'%'", "CREATE USER 'u'@'%' IDENTIFIED BY 'before'"])
    file = here.write(["SET PASSWORD FOR 'u'@'%' = PASSWORD('q')"])
    ((digest,),) = source.sql("SELECT password FROM mysql.user WHERE user = 'u'")
    assert digest.startswith("*")
    assert here.apply(AsItIs(), file) == 0
    assert not logs_in(replica, "q")
    assert logs_in(replica, digest)
    reason = reason_of(MysqlRules(settings(account_statements="keep")), file)
    assert (reason.name, reason.error) == ("password_hash", 0)
    # What the stop advises: the replica's password is what somebody made it.
    here = ViewTrial(source, replica, tmp_path / "with")
    replica.execute_many(["SET sql_log_bin = 0", "ALTER USER 'u'@'%' IDENTIFIED BY 'by hand'"])
    assert here.apply(MysqlRules(settings()), file) == 0
    assert here.whole
    assert logs_in(replica, "by hand")


def test_without_the_rule_a_federated_table_becomes_an_empty_one(
    trial_servers: tuple[Server, Server], tmp_path: Path
) -> None:
    # Under an sql_mode without NO_ENGINE_SUBSTITUTION; with it 9.7 says 1286.
    old = RuleRun()
    old.groups("CREATE DATABASE d", "CREATE TABLE d.f (a INT) ENGINE=FEDERATED CONNECTION='mysql://u@127.0.0.1:1/d/t'")
    here = ViewTrial(*trial_servers, tmp_path / "here")
    file = here.directory / "mysql-bin.000001"
    file.write_bytes(old.data)
    assert here.apply(AsItIs(), file) == 0
    made = trial_servers[1].sql(
        "SELECT engine FROM information_schema.tables WHERE table_schema = 'd' AND table_name = 'f'"
    )
    assert made == [("InnoDB",)]
    for engines in ("keep", "innodb"):
        assert reason_of(MysqlRules(settings(engines=engines)), file).name == "engine_not_supported"
