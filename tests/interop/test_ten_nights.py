"""Ten nights on call: each begins with the alert of a real Prometheus, does what docs/RUNBOOK.md says, and ends where that does."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pymysql
import pytest

from deploy.servers import BinlogPosition, Server, ServerUnavailable
from tests.conftest import ServerFactory, need_server
from tests.interop.conftest import ChainFactory
from tests.support.certificates import Authority
from tests.support.chain import Chain, purge_before_newest, wait_until
from tests.support.free_port import free_port
from tests.support.http_relay import TOKEN, http_section
from tests.support.night_watch import DBA, NightWatch
from tests.support.prometheus_server import PrometheusServer, prometheus_tools
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.small_disk import small_disk
from tests.support.source_changes import follow_by_gtid

pytestmark = [pytest.mark.interop, pytest.mark.timeout(200)]

NEW_PASSWORD = "rotated-password"
MEGABYTE = "x" * 1_000_000
# The system lets a receiving socket grow to 32 MB.
_MORE_THAN_A_SOCKET_HOLDS = 46


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """One for all nights; it watches the relay of the one that goes on."""
    try:
        prometheus_tools()
    except ServerUnavailable as error:
        pytest.skip(str(error))
    directory = tmp_path_factory.mktemp("nights") / "prometheus"
    with PrometheusServer(directory, free_port(), None, TOKEN, window="15s") as made:
        yield made


class Nights:
    """Makes the chains of the nights, each with somebody on call."""

    def __init__(self, chains: ChainFactory, prometheus: PrometheusServer) -> None:
        self._chains, self._prometheus = chains, prometheus

    def begin(self, source: str, options: tuple[str, ...] = (), **sections: dict[str, Any]) -> tuple[Chain, NightWatch]:
        port = free_port()
        dba = {"[ account ]": {"user": DBA, "password": REPLICA_PASSWORD, "admin": True}}
        chain = self._chains(source, options=options, sections={**http_section(port), **dba, **sections})
        if "archive" in sections:
            chain.relay.archive = Path(sections["archive"]["dir"]) / "source"
        chain.source.execute_many(
            [
                "CREATE DATABASE shop",
                "CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, item LONGTEXT) ENGINE=InnoDB",
            ]
        )
        sell(chain.source, "first")
        wait_archived(chain)
        return chain, NightWatch(self._prometheus, chain.relay, port)


@pytest.fixture
def nights(prometheus: PrometheusServer, chains: ChainFactory) -> Nights:
    return Nights(chains, prometheus)


def sell(source: Server, *items: str) -> None:
    source.execute_many(f"INSERT INTO shop.orders (item) VALUES ('{item}')" for item in items)


def wait_archived(chain: Chain) -> None:
    end = chain.source.master_status()
    chain.relay.wait_archived(end.file, end.position)


def has_all_of(source: Server, replica: Server) -> bool:
    """Whether the replica has the source's tables."""
    with suppress(pymysql.Error):
        return replica.checksum_tables(["shop"]) == source.checksum_tables(["shop"])
    return False


def ends_with_equal_tables(source: Server, *replicas: Server) -> None:
    """What is sold in the morning arrives."""
    sell(source, "in the morning")
    for replica in replicas:
        wait_until(lambda replica=replica: has_all_of(source, replica), f"{replica.replica_status()} has all", 60)  # type: ignore[misc]


def runs(replica: Server) -> bool:
    """SHOW REPLICA STATUS there has Yes twice."""
    status = replica.replica_status()
    return bool(status["io_running"] == "Yes" and status["sql_running"])


def is_listed(night: NightWatch, replica: Server) -> bool:
    """Whether SHOW REPLICAS at the relay has it."""
    return any(replica.server_id in row.values() for row in night.console("SHOW REPLICAS"))


def edit(relay: RelayProcess, before: str, after: str) -> None:
    """In relay.toml."""
    text = relay.config.read_text(encoding="utf-8")
    assert before in text
    relay.config.write_text(text.replace(before, after), encoding="utf-8")


def reload(relay: RelayProcess) -> None:
    """As systemctl reload does."""
    assert relay.reload()["event"] == "reloaded"


def copied(source: Server, replica: Server) -> BinlogPosition:
    """Copies the data to the replica again, with nobody writing; the place of the copy."""
    rows = source.sql("SELECT id, item FROM shop.orders")
    replica.execute_many(
        ["TRUNCATE shop.orders", *(f"INSERT INTO shop.orders VALUES ({number}, '{item}')" for number, item in rows)]
    )
    return source.master_status()


def is_verified(night: NightWatch) -> bool:
    return "The archive is fine." in night.run("archive", "verify", "--deep")


def test_the_source_dies_and_comes_back_and_dies_for_good(nights: Nights) -> None:
    chain, night = nights.begin("mariadb", ("--log-slave-updates",))
    first, second = chain.source, chain.server("mariadb", ["--log-slave-updates"])
    second.attach_to(first, chain.first_position())
    replica = chain.server("mariadb")
    follow_by_gtid(replica, chain.relay.port, REPLICA_USER, REPLICA_PASSWORD)
    wait_until(lambda: has_all_of(first, replica), "the replica follows")

    first.kill()
    alert = night.alert("BinlogRelaySourceNotAttached")
    alert.do("The source is down: bring it back.")
    first.start()
    alert.over_when("`SHOW REPLICA STATUS` has `Yes` for the IO thread", lambda: night.has_yes_for("IO"))
    alert.over_when("`Seconds_Behind` falls to 0", lambda: night.source_status("Seconds_Behind") == 0)
    alert.ends()
    sell(first, "after the first death")
    wait_until(lambda: has_all_of(first, second) and has_all_of(first, replica), "both have all")

    first.kill()
    alert = night.alert("BinlogRelaySourceNotAttached")
    alert.do("The source is lost: [CHANGE-OF-SOURCE.md](CHANGE-OF-SOURCE.md).")
    second.stop_replica()
    night.console("STOP REPLICA")
    night.console(f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={second.port}")
    night.console("START REPLICA")
    alert.over_when("`SHOW REPLICA STATUS` has `Yes` for the IO thread", lambda: night.has_yes_for("IO"))
    alert.ends()
    ends_with_equal_tables(second, replica)
    assert night.ledger() == ["generation_begun", "generation_ended"]
    night.is_over()


def test_the_disk_fills(nights: Nights, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "24m") as disk:
        chain, night = nights.begin("mysql56", archive={"dir": str(disk / "archive")})
        source, relay = chain.source, chain.relay
        replica = chain.replica("mysql56")
        for number in range(27):
            sell(source, MEGABYTE)
            if number % 3 == 2:
                source.sql("FLUSH BINARY LOGS")
        failed = night.alert("BinlogRelayArchiveFailed")
        failed.look_at("`Last_SQL_Error` has the disk's own words")
        assert "No space left on device" in night.source_status("Last_SQL_Error")
        failed.do("No space: as [BinlogRelayDiskFull]")
        full = night.alert("BinlogRelayDiskFull")
        full.look_at("`binlog-relay archive purge --dry-run")
        relay.command("archive", "purge", "--dry-run")

        full.do("Old binlogs that no replica needs")
        reading = replica.replica_status()["source_file"]
        full.do("`PURGE BINARY LOGS TO 'mysql-bin.000042'`")
        night.console(f"PURGE BINARY LOGS TO '{reading}'")
        usage = shutil.disk_usage(disk)
        full.over_when("`df -h` shows more than 5 percent free", lambda: usage.free / usage.total > 0.05)
        full.ends()
        failed.over_when("The SQL thread in `SHOW REPLICA STATUS` is `Yes`", lambda: night.has_yes_for("SQL"))
        failed.over_when("says `ready`", lambda: night.readiness() == "ready")
        failed.ends()
        ends_with_equal_tables(source, replica)
        night.is_over()
        relay.kill()


def test_a_replica_falls_behind(nights: Nights) -> None:
    chain, night = nights.begin("mysql56")
    replica = chain.server("mysql56", ["--relay-log-space-limit=2M", "--max-relay-log-size=1M"])
    chain.attach(replica)
    wait_until(lambda: has_all_of(chain.source, replica), "the replica follows")
    with replica.connect() as link, link.cursor() as session:
        session.execute("FLUSH TABLES WITH READ LOCK")  # a backup that hangs
        sell(chain.source, *[MEGABYTE] * _MORE_THAN_A_SOCKET_HOLDS)
        wait_archived(chain)
        alert = night.alert("BinlogRelayReplicaBehind")
        alert.look_at("is its relay log space limited (`relay_log_space_limit`)")
        state = str(replica.replica_status()["raw"]["Slave_IO_State"])
        assert "relay log space" in state, state
        alert.do("free the replica's disk")
        session.execute("UNLOCK TABLES")
    alert.over_when(
        "`behind_s` in `/api/v1/replicas` is small",
        lambda: all((one["behind_s"] or 0) < 1 for one in night.answer("replicas")["items"]),
    )
    alert.ends()
    ends_with_equal_tables(chain.source, replica)
    night.is_over()


def test_a_certificate_expires(nights: Nights, tmp_path: Path) -> None:
    place = tmp_path / "certificates"
    authority = Authority.make(place)
    shown = authority.server("relay", valid_days=-1)
    chain, night = nights.begin("mysql56", listen={"tls_cert": str(shown.certificate), "tls_key": str(shown.key)})
    replica = chain.server("mariadb")
    trusted = replica.directory / "ca.pem"
    shutil.copy(authority.certificate, trusted)
    trusted.chmod(0o644)
    chain.attach(replica, ssl=1, ssl_ca=trusted, ssl_verify_server_cert=1)
    alert = night.alert("BinlogRelayCertificateExpires")
    alert.look_at("`binlog-relay doctor")
    assert "expired" in chain.relay.command("doctor").stdout
    wait_until(lambda: replica.replica_status()["io_errno"] == 2026, "the replica refuses the certificate")

    alert.do("put the new files in the same place, readable for the relay's user, and reload the relay")
    authority.server("relay", valid_days=60)
    reload(chain.relay)
    alert.over_when("the log has `reloaded` without an error", lambda: chain.relay.logged("reloaded"))
    alert.over_when("`doctor` shows the new date", lambda: "expired" not in chain.relay.command("doctor").stdout)
    alert.ends()
    ends_with_equal_tables(chain.source, replica)
    assert runs(replica)
    night.is_over()


def test_passwords_are_rotated(nights: Nights) -> None:
    chain, night = nights.begin("mysql56")
    source, relay = chain.source, chain.relay
    replica = chain.replica("mysql56")
    wait_until(lambda: has_all_of(source, replica), "the replica follows")

    # The one of the relay at the source.
    source.sql(f"SET PASSWORD FOR '{source.replication_user}'@'%' = PASSWORD('{NEW_PASSWORD}')")
    for row in source.sql("SHOW PROCESSLIST"):
        if row[4] == "Binlog Dump":
            source.sql(f"KILL {row[0]}")
    alert = night.alert("BinlogRelaySourceNotAttached")
    alert.look_at("`trouble` has the name")
    wait_until(lambda: night.answer("source")["trouble"] == "authentication", "the trouble has its name")
    assert relay.command("doctor").returncode == 1
    alert.do("`authentication`: the password was changed. Correct it in relay.toml, reload the relay")
    edit(relay, f'"{source.replication_password}"', f'"{NEW_PASSWORD}"')
    reload(relay)
    alert.over_when("`SHOW REPLICA STATUS` has `Yes` for the IO thread", lambda: night.has_yes_for("IO"))
    alert.ends()

    # The one of the replica at the relay, and of a script that nobody remembers.
    edit(
        relay,
        f'user = "{REPLICA_USER}"\npassword = "{REPLICA_PASSWORD}"',
        f'user = "{REPLICA_USER}"\npassword = "{NEW_PASSWORD}"',
    )
    reload(relay)
    replica.stop_replica()
    replica.start_replica()
    for _ in range(6):
        with suppress(pymysql.Error):
            pymysql.connect(host="127.0.0.1", port=relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD)
    alert = night.alert("BinlogRelayLoginsRefused")
    assert replica.wait_io_error()[0] == 1045
    alert.do("One of your replicas: give it the right password")
    replica.stop_replica()
    replica.sql(f"CHANGE MASTER TO MASTER_PASSWORD='{NEW_PASSWORD}'")
    replica.start_replica()
    alert.do("The right one is blocked now (error 1129): *at the relay* `FLUSH HOSTS`, from another address")
    night.console("FLUSH HOSTS")
    refused = len(relay.logged("login_refused"))
    alert.over_when("No new `login_refused` in the log", lambda: runs(replica))
    alert.ends()
    assert len(relay.logged("login_refused")) <= refused + 1
    ends_with_equal_tables(source, replica)
    night.is_over()


def test_binlogs_are_purged_too_early(nights: Nights, tmp_path: Path) -> None:
    chain, night = nights.begin("mysql56")
    source, relay = chain.source, chain.relay
    replica = chain.replica("mysql56")
    wait_until(lambda: has_all_of(source, replica), "the replica follows")

    def lose(kept: Path | None) -> None:
        """While the relay is down its source writes two files and purges them; kept: a backup has them."""
        relay.stop()
        sell(source, "missed")
        source.sql("FLUSH BINARY LOGS")
        sell(source, "missed too")
        source.sql("FLUSH BINARY LOGS")
        if kept is not None:
            kept.mkdir()
            for path in source.binlogs():
                shutil.copy(path, kept)
        purge_before_newest(source)
        relay.start()

    kept = tmp_path / "backup"
    newest = source.master_status().file
    lose(kept)
    alert = night.alert("BinlogRelaySourceGivenUp")
    alert.look_at("`Last_IO_Error`")
    assert "purged" in night.source_status("Last_IO_Error")
    alert.do("**stop and read [ACCIDENTS.md](ACCIDENTS.md) to the end first.**")
    # There: they, and the oldest that the source still has, are copied into the archive with the relay stopped.
    sell(source, "goes on")
    relay.stop()
    oldest = source.binlogs()[0]
    missing = [path for path in kept.iterdir() if newest <= path.name < oldest.name]
    assert len(missing) == 2
    for path in (*missing, oldest):
        shutil.copy(path, relay.archive)
    night.run("archive", "rebuild")
    relay.start()
    alert.over_when("`SHOW REPLICA STATUS` has `Yes` for the IO thread", lambda: night.has_yes_for("IO"))
    alert.ends()
    wait_until(lambda: has_all_of(source, replica), "nothing is lost", 60)
    assert is_verified(night)

    lose(None)
    alert = night.alert("BinlogRelaySourceGivenUp")
    night.console("CALL binlog_relay.accept_gap()")
    alert.over_when("`SHOW REPLICA STATUS` has `Yes` for the IO thread", lambda: night.has_yes_for("IO"))
    alert.ends()
    refused = night.alert("BinlogRelayReplicaRefused")
    refused.look_at("`Last_IO_Error` at the replica")
    number, text = replica.wait_io_error()
    assert number == 1236 and "is where an accepted gap begins" in text
    refused.do("If it was purged: copy the data to the replica again.")
    replica.stop_replica()
    chain.attach(replica, copied(source, replica))
    refused.over_when("`SHOW REPLICA STATUS` at the replica has `Yes` twice", lambda: runs(replica))
    refused.ends()
    ends_with_equal_tables(source, replica)
    night.is_over()
    assert "gap_accepted" in night.ledger()


def test_the_source_is_upgraded(nights: Nights, servers: ServerFactory) -> None:
    newer = need_server("mariadb118")
    chain, night = nights.begin("mariadb")
    old = chain.source
    replica = chain.server("mariadb118")
    follow_by_gtid(replica, chain.relay.port, REPLICA_USER, REPLICA_PASSWORD)
    wait_until(lambda: has_all_of(old, replica), "the replica follows")
    before = night.answer("source")["version"]

    old.stop()
    alert = night.alert("BinlogRelaySourceNotAttached")
    alert.look_at("`SHOW REPLICA STATUS`: `Last_IO_Error`")
    assert night.source_status("Last_IO_Error")
    alert.do("The source is down: bring it back. The relay comes by itself, 30 seconds later at most.")
    with newer(old.directory, port=old.port) as source:
        source.start(server_id=old.server_id)
        alert.over_when("`SHOW REPLICA STATUS` has `Yes` for the IO thread", lambda: night.has_yes_for("IO"))
        alert.over_when("`Seconds_Behind` falls to 0", lambda: night.source_status("Seconds_Behind") == 0)
        alert.ends()
        after = night.answer("source")["version"]
        assert before.startswith("10.11.") and after.startswith(source.version)
        ends_with_equal_tables(source, replica)
        assert night.ledger() == []
        night.is_over()


def test_the_host_of_the_relay_is_replaced(nights: Nights, tmp_path: Path) -> None:
    chain, night = nights.begin("mysql56")
    source, lost = chain.source, chain.relay
    replica = chain.replica("mysql56")
    # The backup of the evening, as docs/ARCHIVE.md makes it while the relay runs.
    backup = tmp_path / "backup"
    subprocess.run(["cp", "-a", str(lost.archive), str(backup)], check=True)
    sell(source, "after the backup")
    source.sql("FLUSH BINARY LOGS")
    sell(source, "in another file")
    wait_until(lambda: has_all_of(source, replica), "the replica has more than the backup")

    lost.kill()
    shutil.rmtree(lost.directory / "archive")
    alert = night.alert("BinlogRelayDown")
    alert.do("else restore the archive, [ARCHIVE.md](ARCHIVE.md#back-it-up), and start there.")
    relay = RelayProcess(tmp_path / "other-host", source, port=lost.port)
    shutil.copy(lost.config, relay.config)
    edit(relay, str(lost.directory / "archive"), str(relay.directory / "archive"))
    relay.archive.parent.mkdir()
    subprocess.run(["cp", "-a", str(backup), str(relay.archive)], check=True)
    with relay:
        night.relay = relay
        alert.over_when("The alert ends with the next scrape.", lambda: "BinlogRelayDown" not in night.firing())
        alert.over_when("ends with code 0", lambda: relay.command("status").returncode == 0)
        alert.over_when("the replicas are in its list again", lambda: is_listed(night, replica))
        ends_with_equal_tables(source, replica)
        night.is_over()
        assert relay.stop() == 0
        assert is_verified(night)


def test_the_archive_is_moved(nights: Nights, tmp_path: Path) -> None:
    with ExitStack() as disks:
        small = disks.enter_context(small_disk(tmp_path / "small", "12m"))
        chain, night = nights.begin("mysql56", archive={"dir": str(small / "archive")})
        source, relay = chain.source, chain.relay
        source.sql("FLUSH BINARY LOGS")
        replica = chain.replica("mysql56")
        sell(source, *[MEGABYTE] * 12)
        full = night.alert("BinlogRelayDiskFull")
        full.do("A larger disk")
        failed = night.alert("BinlogRelayArchiveFailed")
        failed.do(
            "Move the archive to another disk: stop the relay, copy the directory with owner and modes, change `archive.dir`, start."
        )
        larger = disks.enter_context(small_disk(tmp_path / "larger", "200m"))
        assert relay.stop() == 0
        subprocess.run(["cp", "-a", str(small / "archive"), str(larger / "archive")], check=True)
        edit(relay, str(small), str(larger))
        relay.archive = larger / "archive" / "source"
        relay.start()
        failed.do("Then `binlog-relay archive verify --deep")
        usage = shutil.disk_usage(larger)
        full.over_when("`df -h` shows more than 5 percent free", lambda: usage.free / usage.total > 0.05)
        failed.over_when("The SQL thread in `SHOW REPLICA STATUS` is `Yes`", lambda: night.has_yes_for("SQL"))
        failed.over_when("says `ready`", lambda: night.readiness() == "ready")
        full.ends()
        failed.ends()
        ends_with_equal_tables(source, replica)
        assert chain.check_archive() > 0
        assert is_verified(night)
        night.is_over()
        relay.kill()


def test_a_file_is_damaged(nights: Nights, tmp_path: Path) -> None:
    chain, night = nights.begin("mysql56")
    source, relay = chain.source, chain.relay
    sell(source, *(["sold"] * 20))
    for _ in range(2):
        source.sql("FLUSH BINARY LOGS")
        sell(source, "later")
    wait_archived(chain)
    names = [path.name for path in source.binlogs()]
    backup = tmp_path / "backup"
    shutil.copytree(relay.archive, backup)
    damage(relay.archive / names[0])

    replica = chain.replica("mysql56")
    alert = night.alert("BinlogRelayFileDamaged")
    assert replica.wait_io_error()[0] == 1236
    alert.look_at("Which files: `binlog-relay archive list")
    assert "damaged" in night.run("archive", "list")
    alert.do("`CALL binlog_relay.repair()`. It fetches the files again from the source")
    (row,) = night.console("CALL binlog_relay.repair()")
    assert "repaired" in row.values()
    alert.over_when("`Binlog_relay_archive_damaged_files` is 0", lambda: damaged_files(night) == "0")
    alert.over_when("the ledger has a row `repaired`", lambda: "repaired" in night.ledger())
    alert.ends()
    alert.do("Replicas that stopped with 1236 at the damage: `START REPLICA` there.")
    replica.stop_replica()
    replica.start_replica()
    wait_until(lambda: has_all_of(source, replica), "the replica goes on")

    # The same again, when the source has it no more.
    purge_before_newest(source)
    damage(relay.archive / names[1])
    night.console("CALL binlog_relay.scrub()")
    alert = night.alert("BinlogRelayFileDamaged")
    (row,) = night.console("CALL binlog_relay.repair()")
    assert "repaired" not in row.values()
    alert.do("If the source does not have them any more, stop the relay and take them from a copy of the archive")
    relay.stop()
    night.run("archive", "repair", names[1], "--from", str(backup))
    relay.start()
    alert.over_when("`Binlog_relay_archive_damaged_files` is 0", lambda: damaged_files(night) == "0")
    alert.ends()
    ends_with_equal_tables(source, replica)
    assert night.ledger() == ["damaged", "repaired", "damaged", "repaired"]
    assert is_verified(night)
    night.is_over()


def damage(path: Path) -> None:
    """A disk changes a byte of a binlog."""
    data = bytearray(path.read_bytes())
    data[-60] ^= 1
    path.write_bytes(data)


def damaged_files(night: NightWatch) -> str:
    (row,) = night.console("SHOW STATUS LIKE 'Binlog_relay_archive_damaged_files'")
    return str(row["Value"])
