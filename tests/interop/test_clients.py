"""Command line clients and libraries that connect to the relay as they would to a server."""

import contextlib
import subprocess
from collections.abc import Iterator
from typing import Any

import mysql.connector
import pymysql
import pytest

from deploy.servers import SERVERS
from tests.conftest import need_server
from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, wait_until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

SOURCES = ("mysql56", "mysql97", "mariadb")
# MariaDB 11.4 and later clients insist on TLS, MySQL 9 clients leave their own commands alone where no person types.
OPTIONS = {"mariadb118": ["--skip-ssl"], "mysql97": ["--commands"]}
CLIENTS = ("mariadb", "mariadb118", "mysql97")
USER, PASSWORD = "operator", "operator-password"


@pytest.fixture(scope="module", params=SOURCES)
def chain(request: pytest.FixtureRequest, module_chains: ChainFactory) -> Chain:
    source_name: str = request.param
    made = module_chains(source_name, sections={"[account]": {"user": USER, "password": PASSWORD, "admin": True}})
    made.source.execute_many(["CREATE DATABASE one", "CREATE TABLE one.t (a INT PRIMARY KEY)"])
    wait_until(lambda: made.relay.archived(), "the relay has a binlog")
    return made


def login(chain: Chain) -> list[str]:
    return ["-h", "127.0.0.1", "-P", str(chain.relay.port), "-u", USER, f"-p{PASSWORD}"]


def run(command: list[str], text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=30, check=False)


def mysql_client(client: str) -> list[str]:
    return [*SERVERS[client].mysql_client(), "--no-defaults", *OPTIONS.get(client, [])]


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    need_server(name)
    return name


def test_the_client_connects_and_shows_its_status(chain: Chain, client: str) -> None:
    done = run([*mysql_client(client), *login(chain), "-t"], "\\s\nSELECT VERSION();\n")
    assert done.returncode == 0, done.stderr
    assert f"{USER}@127.0.0.1" in done.stdout
    assert "Uptime:" in done.stdout
    assert "Threads:" in done.stdout
    assert "ERROR" not in done.stderr


def test_the_client_completes_names_and_chooses_a_database(chain: Chain, client: str) -> None:
    command = [
        *mysql_client(client),
        *login(chain),
        "--auto-rehash",
        "-D",
        "information_schema",
    ]
    done = run([*command, "-N", "-e", "SELECT DATABASE()"])
    assert (done.returncode, done.stdout.strip()) == (0, "information_schema"), done.stderr


def test_errors_name_number_and_place_and_the_connection_goes_on(chain: Chain, client: str) -> None:
    command = [*mysql_client(client), *login(chain), "--force", "-N"]
    done = run(command, "DROP TABLE one.t;\nSELECT @@nothing;\nSELECT 6;\n")
    assert "ERROR 1064 (42000)" in done.stderr
    assert "ERROR 1193 (HY000)" in done.stderr
    assert done.stdout.split() == ["6"]


@pytest.mark.parametrize(
    ("what", "says"),
    [
        (["ping"], "mysqld is alive"),
        (["status"], "Uptime: "),
        (["version"], "Server version"),
        (["processlist"], USER),
        (["variables"], "server_id"),
        (["extended-status"], "Uptime"),
        (["flush-status"], ""),
        (["flush-hosts"], ""),
    ],
    ids=lambda item: item[0] if isinstance(item, list) else None,
)
def test_mysqladmin_works(chain: Chain, client: str, what: list[str], says: str) -> None:
    ssl = [option for option in OPTIONS.get(client, []) if "ssl" in option]
    done = run([*SERVERS[client].mysqladmin(), "--no-defaults", *ssl, *login(chain), *what])
    assert done.returncode == 0, done.stderr
    assert says in done.stdout.replace("mariadbd", "mysqld")


@contextlib.contextmanager
def connector(chain: Chain, *, pure: bool) -> Iterator[Any]:
    connection = mysql.connector.connect(
        host="127.0.0.1", port=chain.relay.port, user=USER, password=PASSWORD, use_pure=pure, autocommit=True
    )
    try:
        yield connection
    finally:
        connection.close()


@pytest.mark.parametrize("pure", [True, False], ids=["pure", "c"])
def test_connector_python_connects_and_reads_values_of_their_types(chain: Chain, pure: bool) -> None:
    with connector(chain, pure=pure) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@server_id, @@version, NOW(), NULL, CONNECTION_ID(), UNIX_TIMESTAMP()")
        row = cursor.fetchall()[0]
        assert [type(value).__name__ for value in row] == ["int", "str", "datetime", "NoneType", "int", "int"]
        assert (row[0], connection.is_connected(), row[4]) == (1, True, connection.connection_id)
        connection.ping()
        connection.cmd_reset_connection()
        cursor.execute("SHOW VARIABLES LIKE 'server_id'")
        assert cursor.fetchall() == [("server_id", "1")]


@pytest.mark.parametrize("pure", [True, False], ids=["pure", "c"])
def test_connector_python_tells_errors_by_number(chain: Chain, pure: bool) -> None:
    with connector(chain, pure=pure) as connection, connection.cursor() as cursor:
        with pytest.raises(mysql.connector.Error) as caught:
            cursor.execute("SELECT @@nothing")
        assert (caught.value.errno, caught.value.sqlstate) == (1193, "HY000")
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]


@pytest.mark.parametrize("charset", ["utf8mb4", "latin1", "utf8mb3", "gbk"])
def test_pymysql_connects_in_any_character_set(chain: Chain, charset: str) -> None:
    connection = pymysql.connect(
        host="127.0.0.1", port=chain.relay.port, user=USER, password=PASSWORD, charset=charset, autocommit=True
    )
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT %s, @@autocommit", ("x",))
        assert cursor.fetchall() == (("x", 1),)
        cursor.execute("SET autocommit = 0")
        assert not connection.get_autocommit()
        connection.select_db("mysql")
        cursor.execute("SELECT DATABASE()")
        assert cursor.fetchone() == ("mysql",)
        with pytest.raises(pymysql.MySQLError) as caught:
            connection.select_db("nowhere")
        assert caught.value.args[0] == 1049


def test_text_comes_in_the_clients_character_set(chain: Chain) -> None:
    for charset in ("utf8mb4", "latin1", "latin2"):
        connection = pymysql.connect(
            host="127.0.0.1", port=chain.relay.port, user=USER, password=PASSWORD, charset=charset
        )
        with connection, connection.cursor() as cursor:
            cursor.execute("SELECT 'Grüße'")
            assert cursor.fetchone() == ("Grüße",)
