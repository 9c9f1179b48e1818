"""How the relay enters a real source: TLS in every mode, and every authentication plugin a source asks for."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from deploy.servers import Server
from deploy.servers.location import server_account
from tests.conftest import ServerFactory
from tests.support.binlog_comparison import differences
from tests.support.certificates import Authority, CertificateFiles
from tests.support.free_port import free_port
from tests.support.relay_inside import relay_inside
from tests.support.relay_process import RelayProcess, wait_for_line

pytestmark = pytest.mark.interop
PASSWORD = "pässword-ß"


@contextlib.contextmanager
def relay_behind(source: Server, directory: Path, **settings: Any) -> Iterator[RelayProcess]:
    """A running relay; killed at the end."""
    wanted = {key: str(value) if isinstance(value, Path) else value for key, value in settings.items()}
    relay = RelayProcess(directory / "relay", source, port=free_port(), sections={"source": wanted})
    try:
        yield relay.start(wait=False)
    finally:
        if relay.running:
            relay.kill()


def write_something(source: Server) -> None:
    source.execute_many(
        [
            "CREATE DATABASE work",
            "CREATE TABLE work.t (a INT NOT NULL PRIMARY KEY, b LONGBLOB) ENGINE=InnoDB",
            "INSERT INTO work.t VALUES (1, REPEAT('x', 3000000)), (2, 'y')",
            *[f"INSERT INTO work.t VALUES ({number}, REPEAT('z', 500))" for number in range(10, 60)],
        ]
    )


def followed(relay: RelayProcess, source: Server) -> str:
    """Waits until the archive has all of the source, compares every byte; the security it was attached with."""
    end = source.master_status()
    relay.wait_archived(end.file, end.position)
    assert differences(source.binlogs(), relay.archive) == []
    return str(relay.logged("source_attached")[-1]["tls"])


def refused(relay: RelayProcess, trouble: str) -> dict[str, Any]:
    """The log line of the refusal; nothing was archived, and no password is in the log."""
    line = wait_for_line(relay, "source_lost", trouble)
    assert relay.archived() == {}
    log = relay.log_path.read_text()
    assert "Traceback" not in log and PASSWORD not in log and "repl-password" not in log
    return line


# ---- TLS ---------------------------------------------------------------------------------------------------------------


class Secured:
    """A source with a certificate of an authority made for the test."""

    def __init__(self, servers: ServerFactory, name: str, directory: Path) -> None:
        account = server_account()
        self.authority = Authority.make(directory / "certificates")
        self.files = self.authority.server(owner=(account.pw_uid, account.pw_gid))
        self.server = servers(name)
        place = self.server.directory / "tls"
        place.mkdir()
        kept = {}
        for option, path in (("ca", self.files.authority), ("cert", self.files.certificate), ("key", self.files.key)):
            kept[option] = place / path.name
            kept[option].write_bytes(path.read_bytes())
            kept[option].chmod(0o644)
        self.server.start(server_id=1, options=[f"--ssl-{option}={path}" for option, path in kept.items()])
        write_something(self.server)


@pytest.fixture(params=["mariadb", "mysql97"], scope="module")
def secured(
    request: pytest.FixtureRequest, module_servers: ServerFactory, tmp_path_factory: pytest.TempPathFactory
) -> Secured:
    return Secured(module_servers, request.param, tmp_path_factory.mktemp("tls"))


@pytest.mark.parametrize("mode", ["preferred", "required", "verify_ca", "verify_identity"])
def test_the_stream_is_received_over_tls(secured: Secured, tmp_path: Path, mode: str) -> None:
    extra = {"ssl_ca": secured.authority.certificate} if mode.startswith("verify") else {}
    if secured.server.flavour == "mysql" and not extra:
        # Its accounts have caching_sha2_password: somebody else logs in, and the server keeps a digest until it is restarted.
        secured.server.sql("FLUSH PRIVILEGES")
        with relay_behind(secured.server, tmp_path / "unproved", ssl_mode=mode) as relay:
            assert 'source.ssl_mode = "verify_ca"' in refused(relay, "password_withheld")["advice"]
        known_by_its_digest(secured.server)
    with relay_behind(secured.server, tmp_path, ssl_mode=mode, **extra) as relay:
        assert followed(relay, secured.server).startswith("TLSv1.")


def known_by_its_digest(source: Server) -> None:
    """Logs the account of replicas in, as any client of it would."""
    login = {"user": source.replication_user, "password": source.replication_password}
    pymysql.connect(host="127.0.0.1", port=source.port, **login).close()


async def test_the_stream_is_received_over_tls_on_asyncios_own_loop(secured: Secured, tmp_path: Path) -> None:
    end = secured.server.master_status()
    async with relay_inside(tmp_path, secured.server, ssl_ca=secured.authority.certificate) as relay:
        await relay.until_held(end.file, end.position)
        assert str((await relay.until_logged("source_attached"))["tls"]).startswith("TLSv1.")
        assert differences(secured.server.binlogs(), relay.archive) == []
    await tls_left(secured.server.port)


async def tls_left(port: int) -> None:
    """Leaving TLS takes until the server has answered. A process that ends does not wait for that; a test's loop must, or its
    transports are found unclosed by whichever test runs then."""
    loop: Any = asyncio.get_running_loop()
    async with asyncio.timeout(10):
        while any(
            transport._sock is not None and transport.get_extra_info("peername")[1] == port
            for transport in list(loop._transports.values())
        ):
            await asyncio.sleep(0.01)


def test_a_client_certificate_is_shown_where_the_account_asks_for_one(secured: Secured, tmp_path: Path) -> None:
    ours = secured.authority.client("the-relay")
    user = "certified"
    secured.server.execute_many(
        [
            f"CREATE USER {user}@'%' IDENTIFIED BY '{PASSWORD}' REQUIRE SUBJECT '/CN=the-relay'",
            f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}@'%'",
        ]
    )
    account = {"user": user, "password": PASSWORD, "ssl_mode": "verify_ca", "ssl_ca": secured.authority.certificate}
    with relay_behind(secured.server, tmp_path / "without", **account) as relay:
        assert "refuses the user 'certified'" in refused(relay, "authentication")["what"]
    with relay_behind(
        secured.server, tmp_path / "with", **account, ssl_cert=ours.certificate, ssl_key=ours.key
    ) as relay:
        assert followed(relay, secured.server).startswith("TLSv1.")
    secured.server.sql(f"DROP USER {user}@'%'")


def test_disabled_is_clear_text_and_the_status_says_so(secured: Secured, tmp_path: Path) -> None:
    with relay_behind(secured.server, tmp_path, ssl_mode="disabled") as relay:
        assert followed(relay, secured.server) == "none"


def test_an_account_that_requires_tls_is_told_apart(secured: Secured, tmp_path: Path) -> None:
    user = "needy"
    secured.server.execute_many([f"CREATE USER {user}@'%' IDENTIFIED BY '{PASSWORD}' REQUIRE SSL"])
    with relay_behind(secured.server, tmp_path, user=user, password=PASSWORD, ssl_mode="disabled") as relay:
        assert "source.ssl_mode is needed" in refused(relay, "authentication")["advice"]
    secured.server.sql(f"DROP USER {user}@'%'")


def test_a_source_that_takes_tls_only_is_told_apart(secured: Secured, tmp_path: Path) -> None:
    secured.server.sql("SET GLOBAL require_secure_transport = ON")
    try:
        with relay_behind(secured.server, tmp_path, ssl_mode="disabled") as relay:
            # MariaDB says no more than that access is denied.
            trouble = "tls_required_by_source" if secured.server.flavour == "mysql" else "authentication"
            assert "source.ssl_mode" in refused(relay, trouble)["advice"]
    finally:
        secured.server.sql("SET GLOBAL require_secure_transport = OFF")


@pytest.mark.parametrize("mode", ["verify_ca", "verify_identity"])
def test_a_certificate_of_another_authority_is_refused(secured: Secured, tmp_path: Path, mode: str) -> None:
    other = Authority.make(tmp_path / "other", name="Somebody else")
    with relay_behind(secured.server, tmp_path, ssl_mode=mode, ssl_ca=other.certificate) as relay:
        assert "certificate of the source" in refused(relay, "tls_certificate_refused")["what"]


def restarted_with(secured: Secured, files: CertificateFiles) -> None:
    place = secured.server.directory / "tls"
    for name, path in (("server.pem", files.certificate), ("server.key", files.key)):
        (place / name).write_bytes(path.read_bytes())
    secured.server.restart()


@pytest.mark.parametrize(
    ("what", "mode", "words"),
    [("elsewhere", "verify_identity", "not valid for"), ("late", "verify_ca", "expired")],
)
def test_a_certificate_for_another_host_or_of_yesterday_is_refused(
    secured: Secured, tmp_path: Path, what: str, mode: str, words: str
) -> None:
    bad = {
        "elsewhere": lambda: secured.authority.server("elsewhere", hosts=["db.example"]),
        "late": lambda: secured.authority.server("late", valid_days=-1),
    }[what]()
    restarted_with(secured, bad)
    try:
        with relay_behind(secured.server, tmp_path, ssl_mode=mode, ssl_ca=secured.authority.certificate) as relay:
            assert words in refused(relay, "tls_certificate_refused")["what"]
    finally:
        restarted_with(secured, secured.files)


def test_required_is_refused_by_name_where_the_source_has_no_tls(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers("mysql56").start(server_id=1)
    with relay_behind(source, tmp_path, ssl_mode="required") as relay:
        line = refused(relay, "tls_not_offered")
        assert "5.6.24" in line["what"] and 'ssl_mode = "preferred"' in line["advice"]


def test_preferred_is_clear_text_where_the_source_has_no_tls(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers("mysql56").start(server_id=1)
    write_something(source)
    with relay_behind(source, tmp_path, ssl_mode="preferred") as relay:
        assert followed(relay, source) == "none"


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_either_version_of_tls_carries_the_stream(servers: ServerFactory, tmp_path: Path, version: str) -> None:
    source = servers("mysql97").start(server_id=1, options=[f"--tls-version={version}"])
    write_something(source)
    with relay_behind(source, tmp_path) as relay:
        assert followed(relay, source).startswith(version)


@pytest.mark.parametrize("mode", ["preferred", "required"])
def test_tls_of_a_kind_that_is_not_accepted_any_more_is_told_with_what_to_do(
    servers: ServerFactory, tmp_path: Path, mode: str
) -> None:
    source = servers("mariadb")
    account = server_account()
    files = Authority.make(source.directory / "tls").server(owner=(account.pw_uid, account.pw_gid))
    paths = [f"--ssl-ca={files.authority}", f"--ssl-cert={files.certificate}", f"--ssl-key={files.key}"]
    source.start(server_id=1, options=[*paths, "--tls-version=TLSv1.0,TLSv1.1", "--ssl-cipher=ALL:@SECLEVEL=0"])
    with relay_behind(source, tmp_path, ssl_mode=mode) as relay:
        assert 'ssl_mode = "disabled"' in refused(relay, "tls_too_old")["advice"]


# ---- authentication plugins --------------------------------------------------------------------------------------------

ACCOUNTS = [
    ("mysql56", "mysql_native_password", "preferred"),
    ("mysql97", "caching_sha2_password", "verify_ca"),
    ("mysql97", "caching_sha2_password", "disabled"),
    ("mysql97", "sha256_password", "verify_ca"),
    ("mysql97", "sha256_password", "disabled"),
    ("mariadb", "mysql_native_password", "preferred"),
    ("mariadb", "ed25519", "preferred"),
]


def with_account(source: Server, plugin: str, user: str) -> None:
    """An account that was never used before, so that caching_sha2_password has nothing cached for it."""
    if plugin == "ed25519":
        source.sql("INSTALL SONAME 'auth_ed25519'")
    if source.name == "mysql56":
        made = f"CREATE USER {user}@'%' IDENTIFIED BY '{PASSWORD}'"
    elif source.flavour == "mariadb":
        made = f"CREATE USER {user}@'%' IDENTIFIED VIA {plugin} USING PASSWORD('{PASSWORD}')"
    else:
        made = f"CREATE USER {user}@'%' IDENTIFIED WITH {plugin} BY '{PASSWORD}'"
    source.execute_many(["SET NAMES utf8", made, f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}@'%'"])


def believed(source: Server, mode: str) -> dict[str, Any]:
    """With the authority, or the public key, of the server's own data directory."""
    return {"ssl_mode": mode, **({"ssl_ca": source.datadir / "ca.pem"} if mode == "verify_ca" else {})}


@pytest.mark.parametrize("plugin", ["caching_sha2_password", "sha256_password"])
@pytest.mark.parametrize("mode", ["disabled", "preferred", "required"])
def test_a_password_is_withheld_from_a_source_that_proves_nothing(
    servers: ServerFactory, tmp_path: Path, plugin: str, mode: str
) -> None:
    source = servers("mysql97").start(server_id=1)
    with_account(source, plugin, "fresh")
    (source.datadir / "ca.pem").rename(source.datadir / "kept.pem")
    with relay_behind(source, tmp_path, user="fresh", password=PASSWORD, ssl_mode=mode) as relay:
        assert "source.public_key" in refused(relay, "password_withheld")["advice"]


@pytest.mark.parametrize(("name", "plugin", "mode"), ACCOUNTS)
def test_the_relay_logs_in_with_every_plugin_twice(
    servers: ServerFactory, tmp_path: Path, name: str, plugin: str, mode: str
) -> None:
    source = servers(name).start(server_id=1)
    with_account(source, plugin, "fresh")
    settings = {"user": "fresh", "password": PASSWORD, **believed(source, mode)}
    for attempt in ("full", "cached"):
        with relay_behind(source, tmp_path / attempt, **settings) as relay:
            followed(relay, source)


@pytest.mark.parametrize(("name", "plugin", "mode"), ACCOUNTS)
def test_a_wrong_password_is_refused_by_name_with_every_plugin(
    servers: ServerFactory, tmp_path: Path, name: str, plugin: str, mode: str
) -> None:
    source = servers(name).start(server_id=1)
    with_account(source, plugin, "fresh")
    with relay_behind(source, tmp_path, user="fresh", password="not-the-password", **believed(source, mode)) as relay:
        line = refused(relay, "authentication")
        assert "refuses the user 'fresh'" in line["what"]
        assert "not-the-password" not in relay.log_path.read_text()


def test_a_plugin_that_is_not_offered_is_named(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers("mariadb").start(server_id=1)
    source.execute_many(["INSTALL SONAME 'auth_pam'", "CREATE USER fresh@'%' IDENTIFIED VIA pam"])
    with relay_behind(source, tmp_path, user="fresh", password=PASSWORD) as relay:
        line = refused(relay, "plugin_unavailable")
        assert "'dialog'" in line["what"] and "ed25519" in line["advice"]
