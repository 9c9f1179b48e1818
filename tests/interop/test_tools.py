"""What people and programs connect with: drivers, clients and tools of MySQL and MariaDB, at the relay as at a server."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mysql.connector
import pymysql
import pytest

from deploy.servers import SERVERS, MariaDB118, MySQL97
from tests.conftest import ServerFactory, need_server
from tests.interop.support_matrix import DATABASE, PASSWORD, USERS, first_transactions
from tests.interop.support_words import CLEAR, ED25519, NATIVE, PLUGINS, TLS
from tests.support.certificates import Authority
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess

pytestmark = pytest.mark.interop

TRANSPORTS = [CLEAR, TLS]


@dataclass(frozen=True)
class Place:
    """A relay in front of MySQL 5.6, with an account for each plugin and TLS; and who to trust."""

    relay: RelayProcess
    version: str
    authority: Path


@pytest.fixture(scope="module")
def place(module_servers: ServerFactory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("tools")
    authority = Authority.make(directory / "tls")
    own = authority.server()
    source = module_servers("mysql56").start(server_id=1)
    first_transactions(source)
    relay = RelayProcess(
        directory / "relay",
        source,
        port=free_port(),
        sections={"listen": {"host": "0.0.0.0", "tls_cert": str(own.certificate), "tls_key": str(own.key)}},
    )
    for plugin in PLUGINS:
        relay.add_account(user=USERS[plugin], password=PASSWORD, plugin=plugin, admin=True)
    with relay:
        end = source.master_status()
        relay.wait_archived(end.file, end.position)
        listed = (end.file, end.position)
        wait_until(lambda: listed in (row[:2] for row in relay.sql("SHOW BINARY LOGS")), "what is archived may be read")
        yield Place(relay, source.version, authority.certificate)


@contextlib.contextmanager
def logs_in(place: Place, plugin: str, transport: str) -> Iterator[None]:
    """Within it, somebody logs in this way and in no other."""
    before = len(place.relay.logged("replica_logged_in"))
    yield
    wait_until(lambda: len(place.relay.logged("replica_logged_in")) > before, "a login")
    (line,) = place.relay.logged("replica_logged_in")[before:]
    assert (line["user"], line["plugin"], bool(line["tls"])) == (USERS[plugin], plugin, transport == TLS)


# ---- drivers -----------------------------------------------------------------------------------------------------------


def by_pymysql(place: Place, plugin: str, transport: str) -> Any:
    security: dict[str, Any] = {"ssl_disabled": True}
    if transport == TLS:
        security = {"ssl_ca": str(place.authority), "ssl_verify_cert": True, "ssl_verify_identity": True}
    return pymysql.connect(host="127.0.0.1", port=place.relay.port, user=USERS[plugin], password=PASSWORD, **security)


def by_connector(pure: bool) -> Callable[[Place, str, str], Any]:
    def connect(place: Place, plugin: str, transport: str) -> Any:
        security: dict[str, Any] = {"ssl_disabled": True}
        if transport == TLS:
            security = {"ssl_ca": str(place.authority), "ssl_verify_cert": True, "ssl_verify_identity": True}
        if not pure and not mysql.connector.HAVE_CEXT:
            pytest.skip("Connector/Python's C extension cannot be loaded here")
        return mysql.connector.connect(
            host="127.0.0.1",
            port=place.relay.port,
            user=USERS[plugin],
            password=PASSWORD,
            use_pure=pure,
            **security,
        )

    return connect


DRIVERS = {"PyMySQL": by_pymysql, "Connector/Python": by_connector(True), "Connector/Python in C": by_connector(False)}
DRIVER_LOGINS = [
    (driver, plugin, transport)
    for driver in DRIVERS
    for plugin in PLUGINS
    for transport in TRANSPORTS
    if plugin != ED25519 or driver == "PyMySQL"
]


@pytest.mark.parametrize(("driver", "plugin", "transport"), DRIVER_LOGINS)
def test_a_driver_connects_asks_and_pings(place: Place, driver: str, plugin: str, transport: str) -> None:
    with logs_in(place, plugin, transport), contextlib.closing(DRIVERS[driver](place, plugin, transport)) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT VERSION(), CONNECTION_ID(), @@server_id, NULL")
        ((version, number, server_id, nothing),) = cursor.fetchall()
        assert version.startswith(place.version)
        assert (type(number), type(server_id), nothing) == (int, int, None)
        cursor.execute("SHOW VARIABLES LIKE 'version'")
        assert cursor.fetchall() in ([("version", version)], (("version", version),))
        connection.ping(reconnect=False)
        cursor.execute("SET NAMES utf8mb4")
        connection.commit()
        connection.rollback()


@pytest.mark.parametrize("driver", list(DRIVERS))
def test_a_driver_tells_a_statement_that_is_refused_by_its_number(place: Place, driver: str) -> None:
    with contextlib.closing(DRIVERS[driver](place, NATIVE, CLEAR)) as connection:
        cursor = connection.cursor()
        with pytest.raises((pymysql.err.MySQLError, mysql.connector.Error)) as caught:
            cursor.execute("INSERT INTO somewhere VALUES (1)")
        assert caught.value.args[0] > 1000
        cursor.execute("SELECT 1")
        assert list(cursor.fetchall()) == [(1,)]


# ---- programs ----------------------------------------------------------------------------------------------------------


def options(product: str, place: Place, plugin: str, transport: str) -> list[str]:
    """What a program of this product is told to connect this way; the password comes by the environment."""
    told = ["--no-defaults", "--host=127.0.0.1", f"--port={place.relay.port}", f"--user={USERS[plugin]}"]
    if product == "mysql97":
        # mysql_native_password is no longer built into its clients.
        told.append(f"--plugin-dir={MySQL97.plugin_directory()}")
        if transport == CLEAR:
            return [*told, "--ssl-mode=DISABLED", "--get-server-public-key"]
        return [*told, "--ssl-mode=VERIFY_IDENTITY", f"--ssl-ca={place.authority}"]
    told.append("--protocol=tcp")
    if product == "mariadb118":
        told.append(f"--plugin-dir={MariaDB118.plugin_directories()[1]}")
    if transport == CLEAR:
        return [*told, "--skip-ssl"]
    return [*told, f"--ssl-ca={place.authority}", "--ssl-verify-server-cert"]


def run(product: str, tool: str, place: Place, plugin: str, transport: str, *arguments: str) -> str:
    """What the tool prints; it must end well and without a complaint."""
    need_server(product)
    program = {
        "mysql": SERVERS[product].mysql_client,
        "mysqladmin": SERVERS[product].mysqladmin,
        "mysqlbinlog": SERVERS[product].mysqlbinlog,
    }[tool]()
    return finished(program, [*options(product, place, plugin, transport), *arguments])


def finished(program: list[str], arguments: list[str]) -> str:
    done = subprocess.run(
        [*program, *arguments],
        env={**os.environ, "MYSQL_PWD": PASSWORD},
        capture_output=True,
        timeout=60,
        check=False,
    )
    complaint = done.stderr.decode("utf-8", "replace")
    assert done.returncode == 0 and not complaint, complaint
    return done.stdout.decode("utf-8", "replace")


PROGRAM_LOGINS = [
    (product, plugin, transport)
    for product in ("mariadb", "mariadb118", "mysql97")
    for plugin in PLUGINS
    for transport in TRANSPORTS
    if plugin != ED25519 or product != "mysql97"
]
every_login = pytest.mark.parametrize(("product", "plugin", "transport"), PROGRAM_LOGINS)


@every_login
def test_the_client_asks_several_statements(place: Place, product: str, plugin: str, transport: str) -> None:
    with logs_in(place, plugin, transport):
        printed = run(
            product,
            "mysql",
            place,
            plugin,
            transport,
            "--batch",
            "--skip-column-names",
            "--execute=SELECT VERSION(); /* a comment */ show   variables like 'SERVER_ID';  SELECT 'Grüße'",
        )
    version, server_id, greeting = printed.splitlines()
    assert version.startswith(place.version)
    assert server_id.split("\t")[0] == "server_id"
    assert greeting == "Grüße"


@every_login
def test_mysqladmin_finds_the_relay_alive(place: Place, product: str, plugin: str, transport: str) -> None:
    with logs_in(place, plugin, transport):
        assert run(product, "mysqladmin", place, plugin, transport, "ping") == "mysqld is alive\n"


@every_login
def test_mysqladmin_prints_a_line_of_status(place: Place, product: str, plugin: str, transport: str) -> None:
    with logs_in(place, plugin, transport):
        printed = run(product, "mysqladmin", place, plugin, transport, "status")
    words = printed.replace(":", "").split()
    assert words[0] == "Uptime" and int(words[1]) >= 0
    assert words[2] == "Threads" and int(words[3]) >= 1


@every_login
def test_mysqladmin_lists_the_connections_its_own_among_them(
    place: Place, product: str, plugin: str, transport: str
) -> None:
    with logs_in(place, plugin, transport):
        printed = run(product, "mysqladmin", place, plugin, transport, "processlist")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines() if line.startswith("|")]
    assert rows[0][:4] == ["Id", "User", "Host", "db"]
    assert USERS[plugin] in [row[1] for row in rows[1:]]


@every_login
def test_mysqlbinlog_reads_the_archived_binlog(place: Place, product: str, plugin: str, transport: str) -> None:
    with logs_in(place, plugin, transport):
        printed = run(product, "mysqlbinlog", place, plugin, transport, "--read-from-remote-server", "mysql-bin.000001")
    assert f"CREATE DATABASE {DATABASE}" in printed
    assert printed.count("COMMIT") > 3


def test_mysql_knows_no_ed25519_and_says_so_itself(place: Place) -> None:
    with pytest.raises(AssertionError, match="Authentication plugin 'client_ed25519' cannot be loaded"):
        run("mysql97", "mysql", place, ED25519, CLEAR, "--execute=SELECT 1")


@pytest.mark.parametrize("plugin", [NATIVE, ED25519])
def test_mariadbs_new_client_trusts_the_relay_by_its_defaults(place: Place, plugin: str) -> None:
    """TLS, verified without an authority: the relay proves that it knows the password. On 127.0.0.1 it would not look."""
    # Without a password on the command line it takes the login for one without any, and verifies nothing.
    elsewhere = ["--host=127.0.0.2", f"--password={PASSWORD}", "--execute=\\s"]
    told = [each for each in options("mariadb118", place, plugin, CLEAR) if each != "--skip-ssl"]
    with logs_in(place, plugin, TLS):
        assert "Cipher in use is TLS_" in finished(SERVERS["mariadb118"].mysql_client(), [*told, *elsewhere])
