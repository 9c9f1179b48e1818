"""Real clients and replicas log in to the relay: every plugin that they know, over TLS and without."""

import contextlib
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from deploy.servers import SERVERS
from protocol.auth.sha_crypt import sha256_crypt
from tests.conftest import need_server
from tests.interop.conftest import ChainFactory
from tests.support.binlog_builder import BinlogBuilder
from tests.support.certificates import Authority
from tests.support.chain import Chain, wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess
from tests.support.stored_hashes import CACHING_SHA2, ED25519, NATIVE, PASSWORD

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("relays_of_their_own")]

STORED = {"native": NATIVE, "sha2": CACHING_SHA2, "ed25519": ED25519}
PLUGIN_OF = {
    "native": "mysql_native_password",
    "sha2": "caching_sha2_password",
    "ed25519": "client_ed25519",
    "fresh": "caching_sha2_password",
    "password": None,
}


def fresh_sha2(number: int) -> str:
    """A stored hash of the same password that nobody has logged in with, so that its first login is a full one."""
    salt = f"salt of 20 letters {number % 10}".encode()
    return "0x" + (b"$A$005$" + salt + sha256_crypt(PASSWORD.encode(), salt, 5000)).hex()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("certificates"))


def listen(authority: Authority, name: str = "server") -> dict[str, Any]:
    files = authority.server(name)
    return {
        "tls_cert": str(files.certificate),
        "tls_key": str(files.key),
        "tls_client_ca": str(authority.certificate),
        "max_login_failures": 0,
    }


@pytest.fixture
def relay(tmp_path: Path, authority: Authority) -> Iterator[RelayProcess]:
    """A relay of one small binlog, with an account of every kind."""
    source = tmp_path / "binlogs"
    source.mkdir()
    built = BinlogBuilder().transaction(300).transaction(40)
    (source / "mysql-bin.000001").write_bytes(bytes(built.data))
    made = RelayProcess(tmp_path / "relay", source, port=free_port(), sections={"listen": listen(authority)})
    made.add_account(user="password", password=PASSWORD)
    for user, text in STORED.items():
        made.add_account(user=user, password_hash=text)
    made.add_account(user="fresh", password_hash=fresh_sha2(0))
    with made:
        made.wait_archived("mysql-bin.000001", built.size)
        yield made


def newest_login(relay: RelayProcess) -> tuple[str, bool]:
    """The plugin of the newest login, and whether it had TLS."""
    line = relay.logged("replica_logged_in")[-1]
    return line["plugin"], bool(line.get("tls"))


# --- command-line clients -------------------------------------------------------------------------------------------

SERVER_PLUGINS_97 = "lib/mysql/plugin"


def mysql97(*options: str) -> list[str]:
    program = SERVERS["mysql97"].mysql_client()
    plugins = Path(program[-1]).parent.parent / SERVER_PLUGINS_97
    return [*program, "--no-defaults", f"--plugin-dir={plugins}", *options]


def client(name: str, tls: bool, authority: Authority) -> list[str]:
    """The command of a client that checks the relay's certificate, or that does without TLS."""
    if name == "mysql97":
        need_server("mysql97")
        with_tls = ["--ssl-mode=VERIFY_IDENTITY", f"--ssl-ca={authority.certificate}"]
        return mysql97(*(with_tls if tls else ["--ssl-mode=DISABLED", "--get-server-public-key"]))
    need_server(name)
    with_tls = ["--ssl", f"--ssl-ca={authority.certificate}", "--ssl-verify-server-cert"]
    return [*SERVERS[name].mysql_client(), "--no-defaults", "--protocol=tcp", *(with_tls if tls else ["--skip-ssl"])]


def ask(command: list[str], relay: RelayProcess, user: str, password: str = PASSWORD) -> str:
    """What the client prints of SELECT VERSION(). Raises: CalledProcessError."""
    login = ["--host=127.0.0.1", f"--port={relay.port}", f"--user={user}", f"--password={password}"]
    done = subprocess.run(
        [*command, *login, "--batch", "--skip-column-names", "--execute=SELECT VERSION()"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("tls", [True, False], ids=["tls", "clear"])
@pytest.mark.parametrize("user", ["password", "native", "sha2", "fresh", "ed25519"])
@pytest.mark.parametrize("name", ["mysql97", "mariadb", "mariadb118"])
def test_a_stock_client_logs_in(relay: RelayProcess, authority: Authority, name: str, user: str, tls: bool) -> None:
    if (name, user) == ("mysql97", "ed25519"):
        pytest.skip("MySQL has no client_ed25519")
    command = client(name, tls, authority)
    assert ask(command, relay, user) == "5.6.24"
    plugin, had_tls = newest_login(relay)
    assert (plugin, had_tls) == (PLUGIN_OF[user] or "mysql_native_password", tls)
    # The digest is known now.
    assert ask(command, relay, user) == "5.6.24"


@pytest.mark.parametrize("user", ["password", "native", "sha2", "ed25519", "nobody"])
@pytest.mark.parametrize("name", ["mysql97", "mariadb"])
def test_a_stock_client_with_a_wrong_password_is_told_what_a_server_tells(
    relay: RelayProcess, authority: Authority, name: str, user: str
) -> None:
    if name == "mysql97" and user in ("ed25519", "nobody"):
        pytest.skip("MySQL has no client_ed25519, and the decoy of an unknown user may ask for it")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        ask(client(name, True, authority), relay, user, "wrong")
    text = f"ERROR 1045 (28000): Access denied for user '{user}'@'127.0.0.1' (using password: YES)"
    assert text in caught.value.stderr


def test_mysql97_without_the_native_plugin_proposes_its_own_and_logs_in(
    relay: RelayProcess, authority: Authority, tmp_path: Path
) -> None:
    need_server("mysql97")
    command = [*mysql97(f"--plugin-dir={tmp_path}", f"--ssl-ca={authority.certificate}", "--ssl-mode=VERIFY_CA")]
    assert ask(command, relay, "password") == "5.6.24"
    assert newest_login(relay) == ("caching_sha2_password", True)


def test_mysql97_on_a_clear_connection_needs_the_key_for_its_first_login_only(
    relay: RelayProcess, authority: Authority
) -> None:
    need_server("mysql97")
    no_key = mysql97("--ssl-mode=DISABLED")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        ask(no_key, relay, "fresh")
    assert "Authentication requires secure connection" in caught.value.stderr
    ask(client("mysql97", False, authority), relay, "fresh")
    assert ask(no_key, relay, "fresh") == "5.6.24"


@pytest.mark.parametrize("name", ["mysql97", "mariadb"])
def test_mysqlbinlog_fetches_over_tls_what_it_fetches_without(
    relay: RelayProcess, authority: Authority, tmp_path: Path, name: str
) -> None:
    need_server(name)
    server = SERVERS[name]
    fetched = []
    for tls in (True, False):
        into = tmp_path / f"fetched-{tls}"
        into.mkdir()
        options = client(name, tls, authority)[len(server.mysql_client()) :]
        subprocess.run(
            [
                *server.mysqlbinlog(),
                *options,
                "--read-from-remote-server",
                "--raw",
                f"--result-file={into}/",
                "--host=127.0.0.1",
                f"--port={relay.port}",
                "--user=sha2",
                f"--password={PASSWORD}",
                "mysql-bin.000001",
            ],
            check=True,
            capture_output=True,
            timeout=60,
        )
        assert newest_login(relay) == ("caching_sha2_password", tls)
        fetched.append((into / "mysql-bin.000001").read_bytes())
    assert fetched[0] == fetched[1]
    assert len(fetched[0]) > 300


# --- Python's clients -----------------------------------------------------------------------------------------------


def by_pymysql(relay: RelayProcess, user: str, context: ssl.SSLContext | None) -> Any:
    tls: dict[str, Any] = {"ssl": context} if context else {"ssl_disabled": True}
    return pymysql.connect(host="127.0.0.1", port=relay.port, user=user, password=PASSWORD, **tls)


def by_connector(relay: RelayProcess, user: str, authority: Path | None, *, pure: bool) -> Any:
    connector = pytest.importorskip("mysql.connector", reason="mysql-connector-python is not installed")
    tls: dict[str, Any] = {"ssl_ca": str(authority), "ssl_verify_cert": True} if authority else {"ssl_disabled": True}
    return connector.connect(host="127.0.0.1", port=relay.port, user=user, password=PASSWORD, use_pure=pure, **tls)


@pytest.mark.parametrize("tls", [True, False], ids=["tls", "clear"])
@pytest.mark.parametrize("user", ["password", "native", "sha2", "fresh", "ed25519"])
@pytest.mark.parametrize("library", ["pymysql", "connector", "connector in C"])
def test_a_python_client_logs_in(relay: RelayProcess, authority: Authority, library: str, user: str, tls: bool) -> None:
    if library != "pymysql" and user == "ed25519":
        pytest.skip("Connector/Python has no client_ed25519")
    if library == "pymysql":
        context = ssl.create_default_context(cafile=authority.certificate) if tls else None
        connection = by_pymysql(relay, user, context)
    elif user in ("sha2", "fresh") and not tls:
        pytest.skip("Connector/Python does not ask for a public key: its first login is over TLS")
    else:
        connection = by_connector(relay, user, authority.certificate if tls else None, pure=library == "connector")
    with contextlib.closing(connection), connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        assert str(cursor.fetchone()[0]) == "5.6.24"
    assert newest_login(relay) == (PLUGIN_OF[user] or "mysql_native_password", tls)


# --- secrets --------------------------------------------------------------------------------------------------------


def test_no_secret_is_in_the_log_or_the_process_list_whatever_is_tried(
    relay: RelayProcess, authority: Authority
) -> None:
    context = ssl.create_default_context(cafile=authority.certificate)
    wrong = "not the pass word"
    for user in ("password", "native", "sha2", "fresh", "ed25519", "nobody"):
        for tls in (context, None):
            if user != "nobody":
                by_pymysql(relay, user, tls).close()
            with pytest.raises(pymysql.err.OperationalError) as caught:
                pymysql.connect(host="127.0.0.1", port=relay.port, user=user, password=wrong, ssl=tls)
            assert wrong not in str(caught.value)
    text = relay.config.read_text()
    relay.config.write_text(text + f'[[account]]\nuser = "x"\npassword_hash = "{wrong}"\npasword = "{wrong}"\n')
    assert relay.reload()["event"] == "reload_refused"
    relay.config.write_text(text)
    relay.reload()
    shown = relay.log_path.read_text() + Path(f"/proc/{relay.pid}/cmdline").read_text()
    stored = [NATIVE[1:], CACHING_SHA2[2:], ED25519, fresh_sha2(0)[2:], CACHING_SHA2[-86:]]
    assert len(relay.logged("login_refused")) == 12
    for secret in [PASSWORD, wrong, *stored, bytes.fromhex(CACHING_SHA2[-86:]).decode()]:
        assert secret not in shown


# --- replicas -------------------------------------------------------------------------------------------------------


def chain_with_tls(chains: ChainFactory, authority: Authority, **account: Any) -> Chain:
    """A MySQL 5.6, which has no TLS, and a relay that has it, with an account `tls` besides the usual one."""
    chain = chains("mysql56", sections={"listen": listen(authority)})
    chain.relay.add_account(**{"user": "tls", "password_hash": fresh_sha2(1)} | account)
    chain.relay.reload()
    chain.source.execute_many(["CREATE DATABASE one", "CREATE TABLE one.t (a INT PRIMARY KEY)"])
    chain.wait_archived()
    return chain


def follow(chain: Chain, name: str, *, options: list[str] | None = None, **change: Any) -> Any:
    """A replica as `tls` that has caught up."""
    replica = chain.server(name, options or ())
    at = chain.first_position()
    replica.attach("127.0.0.1", chain.relay.port, "tls", PASSWORD, at.file, at.position, **change)
    write(chain, 1)
    replica.wait_caught_up(*chain.source.master_status())
    assert replica.sql("SELECT a FROM one.t") == [(1,)]
    return replica


def write(chain: Chain, number: int) -> None:
    chain.source.sql(f"INSERT INTO one.t VALUES ({number})")


def test_mysql97_with_its_default_tls_follows_mysql56_through_the_relay(
    chains: ChainFactory, authority: Authority
) -> None:
    chain = chain_with_tls(chains, authority)
    follow(chain, "mysql97", MASTER_SSL=1, GET_SOURCE_PUBLIC_KEY=0)
    assert newest_login(chain.relay) == ("caching_sha2_password", True)


def test_mysql97_checks_the_relays_identity_and_shows_its_own_certificate(
    chains: ChainFactory, authority: Authority
) -> None:
    chain = chain_with_tls(chains, authority, require_client_cert=True)
    server = chain.server("mysql97")
    server_files = Authority.make(server.directory / "ca")
    own = server_files.client("replica", owner=(server._account.pw_uid, server._account.pw_gid))
    # The relay has to trust the authority of the replica too.
    both = authority.directory / "both.pem"
    both.write_bytes(authority.certificate.read_bytes() + server_files.certificate.read_bytes())
    text = chain.relay.config.read_text().replace(str(authority.certificate), str(both))
    chain.relay.config.write_text(text)
    assert chain.relay.reload()["event"] == "reloaded"
    trusted = server.directory / "relay-ca.pem"
    trusted.write_bytes(authority.certificate.read_bytes())
    trusted.chmod(0o644)
    at = chain.first_position()
    server.attach(
        "127.0.0.1",
        chain.relay.port,
        "tls",
        PASSWORD,
        at.file,
        at.position,
        MASTER_SSL=1,
        MASTER_SSL_CA=str(trusted),
        MASTER_SSL_VERIFY_SERVER_CERT=1,
        MASTER_SSL_CERT=str(own.certificate),
        MASTER_SSL_KEY=str(own.key),
    )
    write(chain, 1)
    server.wait_caught_up(*chain.source.master_status())


def test_mysql97_follows_on_a_clear_connection_with_the_relays_public_key(
    chains: ChainFactory, authority: Authority
) -> None:
    chain = chain_with_tls(chains, authority)
    follow(chain, "mysql97", MASTER_SSL=0, GET_SOURCE_PUBLIC_KEY=1)
    assert newest_login(chain.relay) == ("caching_sha2_password", False)


def test_mysql56_follows_by_native(chains: ChainFactory, authority: Authority) -> None:
    chain = chain_with_tls(chains, authority, password_hash=NATIVE)
    follow(chain, "mysql56")
    assert newest_login(chain.relay) == ("mysql_native_password", False)


@pytest.mark.parametrize("name", ["mariadb", "mariadb118"])
def test_mariadb_follows_over_tls(chains: ChainFactory, authority: Authority, name: str) -> None:
    chain = chain_with_tls(chains, authority, password_hash=NATIVE, require_tls=True)
    server = chain.server(name)
    trusted = server.directory / "relay-ca.pem"
    trusted.write_bytes(authority.certificate.read_bytes())
    trusted.chmod(0o644)
    at = chain.first_position()
    tls = {"MASTER_SSL": 1, "MASTER_SSL_CA": str(trusted), "MASTER_SSL_VERIFY_SERVER_CERT": 1}
    server.attach("127.0.0.1", chain.relay.port, "tls", PASSWORD, at.file, at.position, **tls)
    write(chain, 1)
    server.wait_caught_up(*chain.source.master_status())
    assert newest_login(chain.relay) == ("mysql_native_password", True)


def test_mariadb_follows_by_ed25519_where_it_has_the_plugin(chains: ChainFactory, authority: Authority) -> None:
    plugins = Path("/usr/lib/x86_64-linux-gnu/libmariadb3/plugin")
    if not (plugins / "client_ed25519.so").exists():
        pytest.skip(f"no client_ed25519.so in {plugins}")
    chain = chain_with_tls(chains, authority, password_hash=ED25519)
    follow(chain, "mariadb", options=[f"--plugin-dir={plugins}"])
    assert newest_login(chain.relay)[0] == "client_ed25519"


def test_a_replica_without_tls_is_refused_where_its_account_requires_it(
    chains: ChainFactory, authority: Authority
) -> None:
    chain = chain_with_tls(chains, authority, password_hash=NATIVE, require_tls=True)
    server = chain.server("mariadb")
    at = chain.first_position()
    server.attach("127.0.0.1", chain.relay.port, "tls", PASSWORD, at.file, at.position)
    wait_until(lambda: chain.relay.logged("login_refused"), "a refused login")
    assert "requires TLS" in chain.relay.logged("login_refused")[0]["reason"]
    number, text = server.wait_io_error()
    assert number == 1045
    assert "Access denied" in text


def test_a_replica_stays_when_the_certificate_is_renewed_and_when_a_bad_one_is_refused(
    chains: ChainFactory, authority: Authority, tmp_path: Path
) -> None:
    chain = chain_with_tls(chains, authority, password_hash=NATIVE)
    replica = follow(chain, "mysql97", MASTER_SSL=1)
    certificate, key = (Path(str(listen(authority)[name])) for name in ("tls_cert", "tls_key"))
    certificate.write_bytes(key.read_bytes())
    refused = chain.relay.reload()
    assert refused["event"] == "reload_refused"
    assert "holds no certificate" in str(refused["problems"])
    assert shown_name(chain.relay) == "server"
    renewed = authority.server("renewed")
    certificate.write_bytes(renewed.certificate.read_bytes())
    key.write_bytes(renewed.key.read_bytes())
    assert chain.relay.reload()["certificate"] == "CN=renewed"
    assert shown_name(chain.relay) == "renewed"
    write(chain, 2)
    replica.wait_caught_up(*chain.source.master_status())
    assert len(chain.relay.logged("dump_started")) == 1


def shown_name(relay: RelayProcess) -> str:
    """The common name in the certificate that a newcomer is shown."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = pymysql.connect(host="127.0.0.1", port=relay.port, user="tls", password=PASSWORD, ssl=context)
    with contextlib.closing(connection):
        data = connection._sock.getpeercert(binary_form=True)
    subject = x509.load_der_x509_certificate(data).subject
    return str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


# --- guessing -------------------------------------------------------------------------------------------------------


def test_an_address_that_guesses_is_held_up_and_blocked_while_a_replica_stays(
    chains: ChainFactory, authority: Authority
) -> None:
    chain = chains("mysql56", sections={"listen": {"max_login_failures": 4, "login_block_s": 2.0}})
    chain.source.execute_many(["CREATE DATABASE one", "CREATE TABLE one.t (a INT PRIMARY KEY)"])
    replica = chain.replica("mysql56")
    replica.wait_caught_up(*chain.source.master_status())

    def guess(password: str) -> tuple[int, float]:
        started = time.monotonic()
        with pytest.raises(pymysql.err.OperationalError) as caught:
            pymysql.connect(host="127.0.0.1", port=chain.relay.port, user="replica", password=password)
        return caught.value.args[0], time.monotonic() - started

    answers = [guess(f"guess {number}") for number in range(5)]
    assert [number for number, _ in answers] == [1045, 1045, 1045, 1045, 1129]
    assert answers[3][1] > 0.35  # the guard holds the fourth up for 0.4 s
    assert chain.relay.logged("address_blocked")[0]["block_s"] == 2.0
    write(chain, 1)
    replica.wait_caught_up(*chain.source.master_status())
    wait_until(lambda: can_log_in(chain), "a login after the block", 5)
    assert len(chain.relay.logged("dump_started")) == 1


def can_log_in(chain: Chain) -> bool:
    try:
        chain.relay.sql("SELECT 1")
    except pymysql.err.OperationalError:
        time.sleep(0.1)
        return False
    return True
