"""What `binlog-relay doctor` says of real servers, each fault provoked at one of them."""

import json
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.servers import Server
from deploy.servers.location import server_account
from relay.archive.storage.files import UUID_NAME
from tests.conftest import ServerFactory
from tests.support.certificates import Authority
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess

pytestmark = pytest.mark.interop
PASSWORD = "a-password-of-the-test"
ENOUGH = "REPLICATION SLAVE, REPLICATION CLIENT, REFERENCES"


@pytest.fixture(scope="module", params=["mysql56", "mysql97", "mariadb"])
def source(request: pytest.FixtureRequest, module_servers: ServerFactory) -> Server:
    """A source of each kind that all tests share."""
    server = module_servers(request.param).start(server_id=1)
    server.sql(f"CREATE USER 'doctor'@'%' IDENTIFIED BY '{PASSWORD}'")
    return server


@pytest.fixture(scope="module")
def mysql56(module_servers: ServerFactory) -> Server:
    """A source without TLS."""
    server = module_servers("mysql56").start(server_id=1)
    server.sql(f"CREATE USER 'doctor'@'%' IDENTIFIED BY '{PASSWORD}'")
    server.sql(f"GRANT {ENOUGH} ON *.* TO 'doctor'@'%'")
    return server


@pytest.fixture
def settings(source: Server) -> Iterator[Server]:
    """The source, whose account and settings are put back."""
    source.sql(f"GRANT {ENOUGH} ON *.* TO 'doctor'@'%'")
    yield source
    source.sql("REVOKE ALL PRIVILEGES, GRANT OPTION FROM 'doctor'@'%'")


def relay_at(at: Server | Path, directory: Path, **sections: dict[str, Any]) -> RelayProcess:
    """Configured, not started."""
    if isinstance(at, Server):
        tls = {"mysql56": {"ssl_mode": "disabled"}, "mariadb": {"ssl_mode": "preferred"}}.get(at.name, {})
        own = {"user": "doctor", "password": PASSWORD, **tls, "record_schema": True, "connect_timeout_s": 3}
        sections["source"] = own | sections.get("source", {})
    return RelayProcess(directory / "relay", at, port=free_port(), sections=sections)


def report(relay: RelayProcess, *options: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit code, and the lines by their check; nothing that is secret is in them."""
    ended = relay.command("doctor", "--json", *options)
    assert ended.stderr == ""
    assert PASSWORD not in ended.stdout and "replica-password" not in ended.stdout
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert all(line["cure"] for line in lines if line["level"] in ("warning", "problem"))
    return ended.returncode, {line["check"]: line for line in reversed(lines)}


def may_list_replicas(source: Server) -> None:
    """MariaDB shows them to such accounts only."""
    if source.name == "mariadb":
        source.sql("GRANT REPLICATION MASTER ADMIN ON *.* TO 'doctor'@'%'")


def test_a_good_source_has_no_problem(settings: Server, tmp_path: Path) -> None:
    may_list_replicas(settings)
    code, lines = report(relay_at(settings, tmp_path))
    assert code == 0
    for check in ("login", "privileges", "version", "server_id", "clock", "filters", "cascade", "binlogs", "writable"):
        assert lines[check]["level"] == "ok", lines[check]
    assert lines["port"]["what"] == "free"
    assert lines["fsync"]["level"] in ("ok", "warning") and " ms" in lines["fsync"]["what"]


def test_nothing_at_the_source_is_changed(settings: Server, tmp_path: Path) -> None:
    before = settings.master_status(), settings.sql("SHOW GLOBAL VARIABLES WHERE Variable_name <> 'timestamp'")
    report(relay_at(settings, tmp_path))
    after = settings.master_status(), settings.sql("SHOW GLOBAL VARIABLES WHERE Variable_name <> 'timestamp'")
    changing = ("gtid_binlog_pos", "gtid_current_pos", "last_gtid", "error_count")
    assert before[0] == after[0]
    assert [row for row in before[1] if row[0] not in changing] == [row for row in after[1] if row[0] not in changing]


def test_missing_privileges_are_named_with_the_grant(settings: Server, tmp_path: Path) -> None:
    relay = relay_at(settings, tmp_path)
    settings.sql("REVOKE REFERENCES ON *.* FROM 'doctor'@'%'")
    code, lines = report(relay)
    assert (code, lines["privileges"]["level"]) == (0, "warning") and "GRANT REFERENCES" in lines["privileges"]["cure"]
    settings.sql("REVOKE ALL PRIVILEGES, GRANT OPTION FROM 'doctor'@'%'")
    settings.sql("GRANT REPLICATION SLAVE ON *.* TO 'doctor'@'%'")
    code, lines = report(relay)
    assert (code, lines["privileges"]["level"]) == (0, "warning")
    assert "GRANT REPLICATION CLIENT" in lines["privileges"]["cure"]
    assert lines["binlogs"]["level"] == "unknown" and lines["filters"]["level"] == "unknown"
    settings.sql("REVOKE ALL PRIVILEGES, GRANT OPTION FROM 'doctor'@'%'")
    code, lines = report(relay)
    assert (code, lines["privileges"]["level"]) == (1, "problem")
    assert "GRANT REPLICATION SLAVE" in lines["privileges"]["cure"]
    assert lines["server_id"]["level"] == "unknown"


def test_an_account_that_may_do_all_is_a_warning(settings: Server, tmp_path: Path) -> None:
    settings.sql("GRANT ALL PRIVILEGES ON *.* TO 'doctor'@'%'")
    code, lines = report(relay_at(settings, tmp_path))
    assert code == 0 and lines["least_privilege"]["level"] == "warning"
    assert report(relay_at(settings, tmp_path), "--strict")[0] == 1


@pytest.mark.parametrize(
    ("name", "bad", "check"),
    [
        ("binlog_format", "STATEMENT", "binlog_format"),
        ("binlog_format", "MIXED", "binlog_format"),
        ("binlog_row_image", "MINIMAL", "binlog_row_image"),
        ("binlog_checksum", "NONE", "binlog_checksum"),
        ("sync_binlog", "0", "sync_binlog"),
        ("innodb_flush_log_at_trx_commit", "2", "sync_binlog"),
    ],
)
def test_a_setting_that_costs_something_is_said(
    settings: Server, tmp_path: Path, name: str, bad: str, check: str
) -> None:
    (before,) = settings.sql(f"SELECT @@global.{name}")
    relay = relay_at(settings, tmp_path)
    good = {"binlog_format": "ROW", "binlog_row_image": "FULL", "binlog_checksum": "CRC32"}.get(name, "1")
    try:
        if name in ("sync_binlog", "innodb_flush_log_at_trx_commit"):
            settings.execute_many(["SET GLOBAL sync_binlog = 1", "SET GLOBAL innodb_flush_log_at_trx_commit = 1"])
        settings.sql(f"SET GLOBAL {name} = {good}")
        assert report(relay)[1][check]["level"] == "ok"
        settings.sql(f"SET GLOBAL {name} = {bad}")
        code, lines = report(relay)
        assert (code, lines[check]["level"]) == (0, "warning") and bad in lines[check]["what"]
    finally:
        settings.sql(f"SET GLOBAL {name} = {before[0] if isinstance(before[0], int) else repr(before[0])}")


def test_binlogs_that_expire_within_hours_are_a_warning(settings: Server, tmp_path: Path) -> None:
    if settings.name == "mysql56":
        pytest.skip("MySQL 5.6 counts days")
    (before,) = settings.sql("SELECT @@global.binlog_expire_logs_seconds")
    settings.sql("SET GLOBAL binlog_expire_logs_seconds = 7200")
    try:
        line = report(relay_at(settings, tmp_path))[1]["expiry"]
    finally:
        settings.sql(f"SET GLOBAL binlog_expire_logs_seconds = {before[0]}")
    assert line["level"] == "warning" and "2.0 hours" in line["what"]


def test_the_source_s_own_server_id_is_a_problem(settings: Server, tmp_path: Path) -> None:
    code, lines = report(relay_at(settings, tmp_path, source={"server_id": 1}))
    assert (code, lines["server_id"]["level"]) == (1, "problem") and "own server_id" in lines["server_id"]["what"]


def test_a_server_id_of_another_replica_is_said_and_our_own_is_not(settings: Server, tmp_path: Path) -> None:
    may_list_replicas(settings)
    relay = relay_at(settings, tmp_path)
    with relay:
        end = settings.master_status()
        relay.wait_archived(end.file, end.position)
        code, lines = report(relay)
        assert code == 0 and lines["server_id"]["level"] == "ok", lines["server_id"]
        assert "process" in lines["relay"]["what"] and "relay runs" in lines["port"]["what"]
        assert "of the relay" in lines["descriptors"]["what"]
        other = relay_at(settings, tmp_path / "other")
        _code, lines = report(other)
        wanted = "problem" if settings.name == "mariadb" else "warning"
        assert lines["server_id"]["level"] == wanted and str(relay.port) in lines["server_id"]["what"]
        assert lines["relay"]["what"].startswith("no relay")


def test_binlogs_that_were_purged_behind_the_archive_are_a_problem(settings: Server, tmp_path: Path) -> None:
    relay = relay_at(settings, tmp_path)
    with relay:
        end = settings.master_status()
        relay.wait_archived(end.file, end.position)
    settings.sql("FLUSH LOGS")
    newest = settings.master_status().file

    def is_purged() -> bool:
        settings.sql(f"PURGE BINARY LOGS TO '{newest}'")
        return settings.binlogs()[0].name == newest

    wait_until(is_purged, "the source purged what the archive ends with", 30)
    code, lines = report(relay)
    assert (code, lines["binlogs"]["level"]) == (1, "problem") and end.file in lines["binlogs"]["what"]


def test_a_wrong_password_is_a_problem_and_is_not_shown(settings: Server, tmp_path: Path) -> None:
    code, lines = report(relay_at(settings, tmp_path, source={"password": "also-a-secret"}))
    assert (code, lines["login"]["level"]) == (1, "problem") and "1045" in lines["login"]["what"]
    assert "also-a-secret" not in json.dumps(lines)


def test_a_replica_is_asked_where_an_account_is_given(settings: Server, tmp_path: Path) -> None:
    secret = tmp_path / "replica.password"
    secret.write_text(PASSWORD + "\n")
    secret.chmod(0o600)
    relay = relay_at(settings, tmp_path)
    ended = relay.command("doctor", "--json", "--replica", f"127.0.0.1:{settings.port},doctor,{secret}")
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    found = {line["check"]: line for line in lines if line["about"] == f"replica 127.0.0.1:{settings.port}"}
    # It is the source itself: it has the source's server_id, and follows nobody.
    assert ended.returncode == 1 and found["server_id"]["level"] == "problem"
    assert found["replication"]["level"] in ("warning", "unknown")
    assert PASSWORD not in ended.stdout


# ---- one kind of source is enough --------------------------------------------------------------------------------------


def test_a_clock_that_differs_is_measured(mysql56: Server, tmp_path: Path) -> None:
    mysql56.sql("SET GLOBAL init_connect = 'SET timestamp = UNIX_TIMESTAMP() + 3600'")
    try:
        line = report(relay_at(mysql56, tmp_path))[1]["clock"]
    finally:
        mysql56.sql("SET GLOBAL init_connect = ''")
    assert line["level"] == "warning" and "ahead of ours" in line["what"]
    assert 3590 < float(line["what"].split("clock is ")[1].split(" s")[0]) < 3610


def test_a_source_that_is_not_there_is_a_problem(tmp_path: Path, mysql56: Server) -> None:
    code, lines = report(relay_at(mysql56, tmp_path, source={"port": free_port()}))
    assert (code, lines["reachable"]["level"]) == (1, "problem") and "cannot be reached" in lines["reachable"]["what"]


def test_a_source_that_never_answers_is_given_up_in_time(tmp_path: Path, mysql56: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        relay = relay_at(mysql56, tmp_path, source={"port": silent.getsockname()[1], "connect_timeout_s": 600})
        begun = time.monotonic()
        code, lines = report(relay, "--timeout", "2")
        assert time.monotonic() - begun < 20
    assert (code, lines["reachable"]["level"]) == (1, "problem") and "within 2 s" in lines["reachable"]["what"]


def test_several_sources_are_asked_each(tmp_path: Path, mysql56: Server) -> None:
    relay = relay_at(mysql56, tmp_path)
    relay.config.write_text(
        relay.config.read_text().replace("[source]", "[[source]]")
        + f'\n[[source]]\nhost = "127.0.0.1"\nport = {free_port()}\n'
    )
    ended = relay.command("doctor")
    assert ended.returncode == 1
    assert f"ok       source 127.0.0.1:{mysql56.port}: login" in ended.stdout
    assert "problem  source 127.0.0.1:" in ended.stdout and "cannot be reached" in ended.stdout


def test_a_source_without_binlogs_is_a_problem(tmp_path: Path, servers: ServerFactory) -> None:
    server = servers("mariadb").start(server_id=1, options=["--skip-log-bin"])
    server.sql(f"CREATE USER 'doctor'@'%' IDENTIFIED BY '{PASSWORD}'")
    server.sql(f"GRANT {ENOUGH} ON *.* TO 'doctor'@'%'")
    code, lines = report(relay_at(server, tmp_path))
    assert (code, lines["log_bin"]["level"]) == (1, "problem")


def test_databases_that_are_filtered_are_a_warning(tmp_path: Path, servers: ServerFactory) -> None:
    server = servers("mysql56").start(server_id=1, options=["--binlog-ignore-db=scratch"])
    server.sql(f"CREATE USER 'doctor'@'%' IDENTIFIED BY '{PASSWORD}'")
    server.sql(f"GRANT {ENOUGH} ON *.* TO 'doctor'@'%'")
    line = report(relay_at(server, tmp_path))[1]["filters"]
    assert line["level"] == "warning" and "scratch" in line["what"]


def test_an_expired_certificate_of_the_source_is_said(tmp_path: Path, servers: ServerFactory) -> None:
    account = server_account()
    server = servers("mariadb")
    authority = Authority.make(server.directory / "tls")
    late = authority.server("late", valid_days=-1, owner=(account.pw_uid, account.pw_gid))
    server.start(server_id=1, options=late.server_options())
    server.sql(f"CREATE USER 'doctor'@'%' IDENTIFIED BY '{PASSWORD}'")
    server.sql(f"GRANT {ENOUGH} ON *.* TO 'doctor'@'%'")
    line = report(relay_at(server, tmp_path))[1]["certificate"]
    assert line["level"] == "warning" and "expired" in line["what"]
    checking = {"ssl_mode": "verify_ca", "ssl_ca": str(authority.certificate)}
    code, lines = report(relay_at(server, tmp_path / "checking", source=checking))
    assert (code, lines["login"]["level"]) == (1, "problem") and "expired" in lines["login"]["what"]


def test_an_expired_certificate_of_the_relay_is_a_problem(tmp_path: Path, mysql56: Server) -> None:
    late = Authority.make(tmp_path / "certificates").server("late", valid_days=-1)
    listen = {"tls_cert": str(late.certificate), "tls_key": str(late.key)}
    code, lines = report(relay_at(mysql56, tmp_path, listen=listen))
    assert (code, lines["certificate"]["level"]) == (1, "problem") and "expired" in lines["certificate"]["what"]


def test_a_port_that_another_process_has_is_a_problem(tmp_path: Path, mysql56: Server) -> None:
    relay = relay_at(mysql56, tmp_path)
    with socket.create_server(("127.0.0.1", relay.port)):
        code, lines = report(relay)
    assert (code, lines["port"]["level"]) == (1, "problem")


def test_a_directory_of_binlogs_is_looked_at(tmp_path: Path, mysql56: Server) -> None:
    (tmp_path / "empty").mkdir()
    code, lines = report(relay_at(tmp_path / "empty", tmp_path / "first"))
    assert (code, lines["binlogs"]["level"]) == (0, "warning")
    code, lines = report(relay_at(mysql56.binlogs()[0].parent, tmp_path / "second"))
    assert (code, lines["binlogs"]["level"]) == (0, "ok")
    code, lines = report(relay_at(tmp_path / "not-there", tmp_path / "third"))
    assert (code, lines["reachable"]["level"]) == (1, "problem")


def test_a_view_of_an_older_server_than_the_source_is_a_warning(settings: Server, tmp_path: Path) -> None:
    relay = relay_at(settings, tmp_path)
    relay.add_view(**{"name": "gtid", "for": "mysql-9.7"})
    line = report(relay)[1]["view gtid"]
    assert line["level"] == ("warning" if settings.name == "mariadb" else "ok")


# ---- [http], [retention], copies of the relay ---------------------------------------------------------------------------


def of_port(lines: list[dict[str, Any]], section: str) -> dict[str, Any]:
    """The line about this section's port."""
    (found,) = (line for line in lines if line["check"] == "port" and line["about"].startswith(f"{section} "))
    return found


def all_lines(relay: RelayProcess) -> list[dict[str, Any]]:
    return [json.loads(line) for line in relay.command("doctor", "--json").stdout.splitlines()]


def test_the_http_port_is_free_or_the_relay_s_or_somebody_else_s(tmp_path: Path, mysql56: Server) -> None:
    port = free_port()
    relay = relay_at(mysql56, tmp_path, http={"enabled": True, "port": port})
    assert of_port(all_lines(relay), "http")["what"] == "free"
    assert report(relay)[1]["access"]["level"] == "ok"
    with socket.create_server(("127.0.0.1", port)):
        line = of_port(all_lines(relay), "http")
        assert line["level"] == "problem" and "http.port" in line["cure"]
    with relay:
        assert "as it should be" in of_port(all_lines(relay), "http")["what"]
        # Another port in relay.toml than the relay was started with, and somebody has it.
        other = free_port()
        relay.config.write_text(relay.config.read_text().replace(f"port = {port}\n", f"port = {other}\n"))
        assert of_port(all_lines(relay), "http")["level"] == "warning"
        with socket.create_server(("127.0.0.1", other)):
            line = of_port(all_lines(relay), "http")
            assert (line["level"], line["what"]) == ("problem", "in use, and not by the relay that runs")


def test_an_http_port_that_all_may_read_and_its_certificate_are_said(tmp_path: Path, mysql56: Server) -> None:
    late = Authority.make(tmp_path / "certificates").server("late", valid_days=-1)
    open_to_all = {"enabled": True, "host": "0.0.0.0", "port": free_port()}
    lines = report(relay_at(mysql56, tmp_path / "open", http=open_to_all))[1]
    assert lines["access"]["level"] == "warning" and "http.token_file" in lines["access"]["cure"]
    lines = report(relay_at(mysql56, tmp_path / "clear", http={**open_to_all, "token": "0123456789abcdef"}))[1]
    assert lines["access"]["level"] == "warning" and "http.tls_cert" in lines["access"]["cure"]
    tls = {"token": "0123456789abcdef", "tls_cert": str(late.certificate), "tls_key": str(late.key)}
    code, lines = report(relay_at(mysql56, tmp_path / "late", http={**open_to_all, **tls}))
    assert lines["access"]["level"] == "ok"
    assert (code, lines["certificate"]["level"], lines["certificate"]["about"]) == (1, "problem", "http.tls_cert")


def test_a_retention_that_this_disk_can_never_hold_is_a_problem(tmp_path: Path, mysql56: Server) -> None:
    code, lines = report(relay_at(mysql56, tmp_path / "large", retention={"keep_bytes": "900000TiB"}))
    assert (code, lines["keep_bytes"]["level"]) == (1, "problem")
    _code, lines = report(relay_at(mysql56, tmp_path / "fine", retention={"min_free": "1MiB"}))
    assert "min_free" not in lines and "keep_bytes" not in lines
    assert "off" in report(relay_at(mysql56, tmp_path / "none"))[1]["retention"]["what"]


def test_a_relay_on_a_copy_of_the_archive_is_seen_at_the_source(tmp_path: Path, servers: ServerFactory) -> None:
    server = servers("mysql97").start(server_id=1)
    server.sql(f"CREATE USER 'doctor'@'%' IDENTIFIED BY '{PASSWORD}'")
    server.sql(f"GRANT {ENOUGH} ON *.* TO 'doctor'@'%'")
    relay = relay_at(server, tmp_path)
    with relay:
        end = server.master_status()
        relay.wait_archived(end.file, end.position)
        assert report(relay)[1]["server_uuid"]["level"] == "ok"
        copy = relay_at(server, tmp_path / "copy", source={"server_id": 4243})
        copy.archive.mkdir(parents=True)
        shutil.copy(relay.archive / UUID_NAME, copy.archive)
        code, lines = report(copy)
    assert (code, lines["server_uuid"]["level"]) == (1, "problem")
    assert UUID_NAME in lines["server_uuid"]["cure"] and str(relay.port) in lines["server_uuid"]["what"]


def test_a_second_relay_is_seen_where_replicas_are_not_listed(tmp_path: Path, servers: ServerFactory) -> None:
    server = servers("mariadb").start(server_id=1)
    server.sql(f"CREATE USER 'doctor'@'%' IDENTIFIED BY '{PASSWORD}'")
    server.sql(f"GRANT {ENOUGH} ON *.* TO 'doctor'@'%'")
    relay = relay_at(server, tmp_path)
    with relay:
        end = server.master_status()
        relay.wait_archived(end.file, end.position)
        assert report(relay)[1]["server_id"]["level"] == "unknown"
        line = report(relay_at(server, tmp_path / "second"))[1]["server_id"]
    assert line["level"] == "warning" and "127.0.0.1:" in line["what"]
