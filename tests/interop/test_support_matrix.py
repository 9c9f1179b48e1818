"""Every source with every replica behind the relay, by every login, over TLS and in clear; what the pages say of it."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.servers import MariaDB, Server
from tests.conftest import ServerFactory, need_server
from tests.interop import support_tables, support_views
from tests.interop.conftest import ChainFactory
from tests.interop.support_matrix import (
    NAMES,
    PASSWORD,
    USERS,
    Matrix,
    create_account,
    errors_of,
    first_transactions,
    forget_everything,
    wait_refused,
)
from tests.interop.support_words import (
    CLEAR,
    ED25519,
    NATIVE,
    NOTES,
    OWN_SERIES,
    OWN_TITLES,
    SHA2,
    TITLES,
    TLS,
    Login,
    logins_tried,
    refused_login,
    source_plugins,
)
from tests.support import stored_hashes

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def matrix(module_servers: ServerFactory) -> Iterator[Matrix]:
    made = Matrix(module_servers)
    yield made
    made.close()


@pytest.mark.parametrize("replica_name", list(TITLES | OWN_TITLES))
@pytest.mark.parametrize("source_name", list(TITLES | OWN_TITLES))
def test_a_replica_follows_by_every_login_it_knows_and_is_refused_in_the_words_of_the_table(
    matrix: Matrix, source_name: str, replica_name: str
) -> None:
    need_server(source_name)
    need_server(replica_name)
    known = [login for login in logins_tried(replica_name) if refused_login(replica_name, login) is None]
    assert matrix.pair(source_name, replica_name) == known


@pytest.mark.parametrize("source_name", list(TITLES | OWN_TITLES))
def test_the_relay_enters_a_source_by_every_login_and_archives_all_of_it(matrix: Matrix, source_name: str) -> None:
    need_server(source_name)
    known = matrix.source(source_name)
    old = source_name == "mysql56" or OWN_SERIES.get(source_name, (8, 0)) < (8, 0)
    assert {login.plugin for login in known} == set(source_plugins(source_name))
    assert {login.transport for login in known} == ({CLEAR} if old else {CLEAR, TLS})


def test_the_tables_on_the_page_are_what_was_found(matrix: Matrix) -> None:
    """Of the servers that this machine has; `python -m tests.interop.support_matrix --write` writes them again."""
    if not matrix.names:
        pytest.skip("no server here")
    found = support_tables.read_cells(support_tables.tables(matrix.findings()))
    # Servers of one's own are on no page.
    found = {key: cell for key, cell in found.items() if not set(key) & set(OWN_TITLES.values())}
    written = support_tables.read_cells(support_tables.part(support_tables.PAGE))
    assert {key: written.get(key) for key in found} == found
    if set(TITLES) <= set(matrix.names):
        assert written == found


# ---- the words in the notes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("replica_name", ["mysql97", "mariadb118"])
def test_replicas_that_insist_on_tls_say_so_to_a_relay_without_it(chains: ChainFactory, replica_name: str) -> None:
    need_server(replica_name)
    chain = chains("mysql56")
    replica = chain.server(replica_name)
    words = {
        "mysql97": "SSL is required but the server doesn't",
        "mariadb118": "SSL is required, but the server does not",
    }
    chain.attach(replica, ssl=1, ssl_verify_server_cert=replica_name == "mariadb118")
    wait_refused(replica, words[replica_name])


@pytest.mark.parametrize("replica_name", ["mariadb105", "mariadb", "mariadb118"])
@pytest.mark.parametrize("plugin", [SHA2, ED25519])
def test_mariadb_names_the_client_plugin_that_its_package_does_not_put_there(
    matrix: Matrix, servers: ServerFactory, replica_name: str, plugin: str
) -> None:
    need_server("mysql56")
    replica = servers(replica_name).start(server_id=300)
    matrix.attach(matrix.link("mysql56"), replica, Login(plugin, CLEAR))
    wait_refused(replica, f"Authentication plugin '{plugin}' cannot be loaded")


@pytest.mark.parametrize("plugin", [NATIVE, SHA2])
def test_mysql_97_by_its_defaults_is_encrypted_in_front_of_mysql_56(matrix: Matrix, plugin: str) -> None:
    need_server("mysql56")
    need_server("mysql97")
    link, replica = matrix.link("mysql56"), matrix.replica("mysql97")
    forget_everything(replica)
    at = link.source.master_status()
    # SOURCE_SSL = 1, no authority and no public key asked for.
    replica.attach("127.0.0.1", link.relay.port, USERS[plugin], PASSWORD, *at, ssl=True, get_source_public_key=False)
    link.source.execute_many([NAMES, "CREATE DATABASE encrypted", "DROP DATABASE encrypted"])
    replica.wait_for_source(link.source, timeout=20)
    line = link.relay.logged("replica_logged_in")[-1]
    assert (line["plugin"], bool(line["tls"])) == (plugin, True)


# What CHANGE MASTER means on MariaDB 11.8 if it says nothing of TLS. RESET SLAVE ALL keeps an authority given before.
DEFAULTS = {"ssl": True, "ssl_verify_server_cert": True, "ssl_ca": ""}


@pytest.mark.parametrize("source_name", ["mysql56", "mysql97"])
@pytest.mark.parametrize("plugin", [NATIVE, ED25519])
def test_mariadb_118_by_its_defaults_trusts_a_relay_that_proves_to_know_the_password(
    matrix: Matrix, source_name: str, plugin: str
) -> None:
    """TLS, the certificate verified, and no authority known: as it trusts a source of its own kind."""
    need_server(source_name)
    need_server("mariadb118")
    link, replica = matrix.link(source_name), matrix.replica("mariadb118")
    forget_everything(replica)
    at = link.source.master_status()
    # Not 127.0.0.1: there it would not look at the certificate.
    replica.attach("127.0.0.2", link.relay.port, USERS[plugin], PASSWORD, *at, **DEFAULTS)
    link.source.execute_many([NAMES, "CREATE DATABASE trusted", "DROP DATABASE trusted"])
    replica.wait_for_source(link.source, timeout=20)
    assert link.relay.logged("replica_logged_in")[-1]["plugin"] == plugin


def test_mariadb_118_by_its_defaults_wants_an_authority_where_the_plugin_proves_nothing(matrix: Matrix) -> None:
    need_server("mysql56")
    need_server("mariadb118")
    link, replica = matrix.link("mysql56"), matrix.replica("mariadb118")
    forget_everything(replica)
    at = link.source.master_status()
    replica.attach("127.0.0.2", link.relay.port, USERS[SHA2], PASSWORD, *at, **DEFAULTS)
    wait_refused(replica, "SSL certificate is self-signed")


@pytest.mark.parametrize("replica_name", ["mariadb", "mariadb118"])
def test_mariadb_cannot_send_an_encrypted_password_to_the_relay_nor_to_mysql_97(
    chains: ChainFactory, servers: ServerFactory, replica_name: str
) -> None:
    """Accounts of caching_sha2_password that nobody has used yet: nothing is cached that would spare the password."""
    chain = chains("mysql97")
    chain.relay.add_account(user=USERS[SHA2], password_hash=stored_hashes.CACHING_SHA2, plugin=SHA2)
    chain.relay.reload()
    create_account(chain.source, USERS[SHA2], SHA2)
    replica = servers(replica_name)
    assert isinstance(replica, MariaDB)
    replica.start(server_id=300, options=replica.with_client_plugins())
    for port in (chain.relay.port, chain.source.port):
        clear = {"ssl": False, "ssl_verify_server_cert": False}
        replica.attach("127.0.0.1", port, USERS[SHA2], PASSWORD, "mysql-bin.000001", 4, **clear)
        wait_refused(replica, rf"error connecting to master '{USERS[SHA2]}@127.0.0.1:{port}'.*Access denied for user")


@pytest.mark.parametrize("source_name", ["mariadb", "mariadb118"])
def test_mysql_97_stops_at_mariadbs_row_events_without_a_relay_too(servers: ServerFactory, source_name: str) -> None:
    options = ["--binlog-format=ROW"]
    if source_name == "mariadb118":
        # Else the replica skips the statements before the rows, as below.
        options += ["--character-set-collations=utf8mb4=utf8mb4_general_ci", "--collation-server=utf8mb4_general_ci"]
    _, replica = directly(servers, source_name, "mysql97", options)
    wait_refused(replica, "Relay log read failure: Could not parse relay log event entry")


@pytest.mark.parametrize("replica_name", ["mysql56", "mysql97"])
def test_mysql_skips_statements_in_the_default_collation_of_mariadb_118_without_an_error(
    servers: ServerFactory, replica_name: str
) -> None:
    need_server(replica_name)
    source, replica = directly(servers, "mariadb118", replica_name, [])
    source.execute_many(["SET NAMES utf8mb4", "CREATE DATABASE skipped"])
    older = ["SET NAMES utf8mb4 COLLATE utf8mb4_general_ci", "SET SESSION collation_server = utf8mb4_general_ci"]
    source.execute_many([*older, "CREATE DATABASE applied"])
    deadline = time.monotonic() + 20
    while not replica.sql("SHOW DATABASES LIKE 'applied'"):
        assert time.monotonic() < deadline, errors_of(replica)
        time.sleep(0.05)
    assert replica.sql("SHOW DATABASES LIKE 'skipped'") == []
    assert errors_of(replica).split() == ["0", "0"]


def directly(servers: ServerFactory, source_name: str, replica_name: str, options: list[str]) -> tuple[Server, Server]:
    """A source with some transactions and a replica that follows it without a relay."""
    source = servers(source_name).start(server_id=1, options=options)
    replica = servers(replica_name).start(server_id=2)
    at = source.master_status()
    first_transactions(source)
    replica.attach_to(source, at)
    return source, replica


# ---- the tables as text ------------------------------------------------------------------------------------------------


def test_tables_that_are_read_back_have_the_cells_that_were_written() -> None:
    found = support_tables.Findings(
        pairs={("mysql56", "mysql56"): ("yes",), ("mysql56", "mysql97"): ("no", "gtid", "collation")},
        replicas={("mysql56", CLEAR): ("one, two", "parsec")},
    )
    cells = support_tables.read_cells(support_tables.tables(found))
    head = "source ↓ replica →"
    assert cells[head, "MySQL 5.6", "MySQL 5.6"] == "yes"
    notes = [NOTES["gtid"], NOTES["collation"]]
    assert cells[head, "MySQL 5.6", "MySQL 9.7"] == " | ".join(["no", *notes])
    assert cells["replica logs in to the relay by", "MySQL 5.6", "in clear"] == (f"one, two | {NOTES['parsec']}")


def test_what_views_of_a_mariadb_keep_is_on_the_page_as_the_tests_of_its_workload_hold_it() -> None:
    written, declared = support_views.written_cells(), support_views.declared()
    assert {key: cell for key, cell in written.items() if key in declared} == declared
    others = {key[0]: cell for key, cell in written.items() if key not in declared}
    assert others == {"sequences": "the source refuses it (1665)", "times after 2038": "replicas stop (1292)"}


def test_the_table_in_the_readme_is_the_first_of_the_page() -> None:
    assert support_tables.part(support_tables.README) == support_tables.short_table(
        support_tables.part(support_tables.PAGE)
    )


def test_the_tables_are_put_between_the_marks_and_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {name: tmp_path / f"{name}.md" for name in ("PAGE", "README")}
    for name, page in pages.items():
        page.write_text(f"before\n\n{support_tables.BEGIN}\nold\n{support_tables.END}\n\nafter\n", encoding="utf-8")
        monkeypatch.setattr(support_tables, name, page)
    support_tables.write_pages("all\n\n| new |\n|---|\n\n1. note")
    assert support_tables.part(pages["PAGE"]) == "all\n\n| new |\n|---|\n\n1. note"
    assert support_tables.part(pages["README"]) == "| new |\n|---|"
    for page in pages.values():
        text = page.read_text(encoding="utf-8")
        assert text.startswith("before\n\n") and text.endswith("\n\nafter\n") and "old" not in text
