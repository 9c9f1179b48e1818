"""What works with what, found out with real servers, and the tables of it in docs/SUPPORT.md and README.md.

    python -m tests.interop.support_matrix           prints the tables
    python -m tests.interop.support_matrix --write   writes them into both pages
    … --views                                        the table of views of a MariaDB alone
    BINLOG_RELAY_SERVER_MYSQL57=/opt/mysql-5.7 …     with servers of one's own besides

Every source here, with a relay behind it; every replica here, attached to each relay over TLS and in clear by each
authentication plugin; a workload; equal tables. What a server refuses is written down in `support_words`, and is a
finding only if it really says so.
"""

import argparse
import contextlib
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from deploy.servers import OWN, SERVERS, BinlogPosition, MariaDB, Server
from deploy.servers.location import server_account
from tests.conftest import ServerFactory, why_not
from tests.interop.support_tables import Findings, tables, write_pages
from tests.interop.support_views import found_views, view_table, write_view_table
from tests.interop.support_words import (
    CLEAR,
    ED25519,
    NATIVE,
    OWN_SERIES,
    OWN_TITLES,
    PLUGINS,
    REMARKS,
    SHA2,
    SOURCE_REMARKS,
    STOPPED_BY,
    TITLES,
    TLS,
    TRANSPORT_REMARKS,
    Login,
    Refusal,
    logins_tried,
    refused_login,
    refused_stream,
    source_plugins,
)
from tests.support import stored_hashes
from tests.support.binlog_comparison import differences
from tests.support.certificates import Authority, CertificateFiles
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.relay_process import RelayProcess, wait_for_line

STORED: Final = {NATIVE: stored_hashes.NATIVE, SHA2: stored_hashes.CACHING_SHA2, ED25519: stored_hashes.ED25519}
USERS: Final = {NATIVE: "by_native", SHA2: "by_sha2", ED25519: "by_ed25519"}
# The same plugin for an account whose password the relay knows: it never asks for it.
FAST_USER: Final = "by_sha2_known"
PASSWORD: Final = stored_hashes.PASSWORD
DATABASE: Final = "matrix"
REFUSAL_TIMEOUT_S: Final = 20.0


# ---- the servers -------------------------------------------------------------------------------------------------------


def source_options(name: str, certificate: CertificateFiles) -> list[str]:
    """What a source is started with."""
    # What an old build of one's own reads of certificates is not known.
    options = [] if name in OWN_SERIES and OWN_SERIES[name] < (8, 0) else certificate.server_options()
    if name == "mysql97":
        options += ["--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci"]
        # A replica of 5.6 knows OFF and ON only.
        options += ["--gtid-mode=OFF"]
    return options


def create_account(server: Server, user: str, plugin: str) -> None:
    """An account for the relay that is in no binlog."""
    wanted = f"IDENTIFIED WITH {plugin} BY '{PASSWORD}'"
    if server.flavour == "mariadb":
        name = plugin.removeprefix("client_")
        if name != NATIVE:
            server.sql(f"INSTALL SONAME 'auth_{name}'")
        wanted = f"IDENTIFIED VIA {name} USING PASSWORD('{PASSWORD}')"
    elif server.version.startswith("5.") and not server.version.startswith("5.7"):
        wanted = f"IDENTIFIED BY '{PASSWORD}'"
    server.execute_many(
        [
            "SET SESSION sql_log_bin = 0",
            f"CREATE USER '{user}'@'%' {wanted}",
            f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '{user}'@'%'",
        ]
    )


# MySQL 9.7's clients otherwise write a collation into every statement that no older server knows.
NAMES: Final = "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci"


def first_transactions(source: Server) -> None:
    """A database with several kinds of transactions in it."""
    source.execute_many(
        [
            NAMES,
            f"CREATE DATABASE {DATABASE} DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
            f"CREATE TABLE {DATABASE}.inno (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, v INT, t VARCHAR(100),"
            " body LONGBLOB) ENGINE=InnoDB",
            f"CREATE TABLE {DATABASE}.isam (id INT NOT NULL PRIMARY KEY, t VARCHAR(100)) ENGINE=MyISAM",
            f"INSERT INTO {DATABASE}.inno (v, t) VALUES (1, 'alone'), (2, 'Grüße \U0001f40b')",
            "BEGIN",
            f"INSERT INTO {DATABASE}.inno (v, t, body) VALUES (3, 'large', REPEAT('x', 300000))",
            "SAVEPOINT one",
            f"UPDATE {DATABASE}.inno SET v = v + 100",
            "ROLLBACK TO SAVEPOINT one",
            f"DELETE FROM {DATABASE}.inno WHERE v = 1",
            "COMMIT",
            f"INSERT INTO {DATABASE}.isam VALUES (1, 'isam'), (2, NULL)",
            "BEGIN",
            f"INSERT INTO {DATABASE}.isam VALUES (3, 'both')",
            f"INSERT INTO {DATABASE}.inno (v, t) VALUES (4, 'both')",
            "COMMIT",
            f"ALTER TABLE {DATABASE}.inno ADD COLUMN w VARCHAR(20) NOT NULL DEFAULT 'new'",
            f"CREATE TABLE {DATABASE}.counter (id INT NOT NULL PRIMARY KEY, n INT NOT NULL) ENGINE=InnoDB",
            f"INSERT INTO {DATABASE}.counter VALUES (1, 0)",
        ]
    )


def another_transaction(source: Server) -> None:
    """One more, different each time."""
    source.execute_many(
        [
            NAMES,
            "BEGIN",
            f"UPDATE {DATABASE}.counter SET n = n + 1 WHERE id = 1",
            f"INSERT INTO {DATABASE}.inno (v, t) SELECT n, 'more' FROM {DATABASE}.counter",
            "COMMIT",
        ]
    )


def in_default_collation(source: Server) -> None:
    """A transaction as a client of MySQL 9.7 writes it that never heard of older servers."""
    source.execute_many(
        ["SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci", f"UPDATE {DATABASE}.counter SET n = n + 1 WHERE id = 1"]
    )


def temporary_table_left(source: Server) -> None:
    """A temporary table that its client leaves to the server to drop, which writes the statement in words of its own."""
    source.execute_many(
        [
            NAMES,
            "SET SESSION binlog_format = STATEMENT",
            f"CREATE TEMPORARY TABLE {DATABASE}.left_behind (id INT NOT NULL PRIMARY KEY) ENGINE=InnoDB",
        ]
    )


WRITTEN_IN: Final[dict[str, Callable[[Server], None]]] = {"#255": in_default_collation, "#579": temporary_table_left}


def forget_everything(replica: Server) -> None:
    """The replica follows nobody and has no tables."""
    replica.stop_replica()
    replica.sql(f"RESET {replica.replica_word} ALL")
    replica.sql(f"DROP DATABASE IF EXISTS {DATABASE}")


def user_of(replica: Server, login: Login) -> str:
    """The relay's account; where the replica can do no more than the short form of caching_sha2_password, one for that."""
    short = replica.flavour == "mariadb" and login == Login(SHA2, CLEAR)
    return FAST_USER if short else USERS[login.plugin]


def attach_options(replica: Server, transport: str, authority: Path) -> dict[str, Any]:
    """What CHANGE MASTER / CHANGE REPLICATION SOURCE is told besides the place and the account."""
    encrypted = transport == TLS
    options: dict[str, Any] = {"ssl": encrypted, "ssl_verify_server_cert": encrypted}
    if encrypted:
        # MySQL 5.6 goes on in clear, without a word, where it is told no authority.
        options["ssl_ca"] = authority
    if replica.flavour == "mysql" and not replica.version.startswith("5."):
        options["get_source_public_key"] = not encrypted
    return options


def errors_of(replica: Server) -> str:
    """What SHOW SLAVE STATUS says went wrong."""
    status = replica.replica_status()
    return " ".join(str(status.get(key, "")) for key in ("io_errno", "io_error", "sql_errno", "sql_error"))


def wait_refused(replica: Server, words: str) -> None:
    """Returns when the replica says so. Raises: AssertionError with what it says instead."""
    try:
        wait_until(lambda: re.search(words, errors_of(replica)), "the refusal", REFUSAL_TIMEOUT_S)
    except AssertionError as error:
        raise AssertionError(f"{replica!r} did not say {words!r} but {errors_of(replica)!r}") from error


# ---- the findings ------------------------------------------------------------------------------------------------------


@dataclass
class Link:
    """A source with a relay behind it. `start`: where replicas begin."""

    source: Server
    relay: RelayProcess
    start: BinlogPosition


class Matrix:
    """Starts servers and relays when they are first needed and finds out what works; each finding once.

    `servers` makes servers that end with the caller's; `close` ends the relays.
    """

    def __init__(self, servers: ServerFactory) -> None:
        self._servers = servers
        self._links: dict[str, Link] = {}
        self._replicas: dict[str, Server] = {}
        self._pairs: dict[tuple[str, str], list[Login]] = {}
        self._sources: dict[str, list[Login]] = {}
        self._relays: list[RelayProcess] = []
        self._next_id = 200
        # Where the servers' account can read it.
        self._directory = Path(tempfile.mkdtemp(prefix="binlog-relay-matrix-"))
        self._directory.chmod(0o755)
        # What MySQL 5.6 can read.
        self._authority = Authority.make(self._directory / "tls", rsa_keys=True)
        account = server_account()
        self._of_servers = self._authority.server("sources", rsa_keys=True, owner=(account.pw_uid, account.pw_gid))
        self._of_relays = self._authority.server("relays", rsa_keys=True)

    def close(self) -> None:
        """Ends the relays and removes what they wrote."""
        for relay in self._relays:
            if relay.running:
                relay.kill()
        shutil.rmtree(self._directory, ignore_errors=True)

    @property
    def names(self) -> list[str]:
        """The servers that this machine has, in the order of the tables."""
        return [name for name in TITLES | OWN_TITLES if why_not(name) is None]

    # ---- a replica behind a relay --------------------------------------------------------------------------------------

    def pair(self, source_name: str, replica_name: str) -> list[Login]:
        """Attaches the replica in every way; the logins with which it came as far as this pair comes.

        Raises: AssertionError, CatchUpError and the like where something else happens than the tables above say.
        """
        key = (source_name, replica_name)
        if key not in self._pairs:
            link, replica = self.link(source_name), self.replica(replica_name)
            refusal = refused_stream(source_name, replica_name)
            known = []
            for login in logins_tried(replica_name):
                try:
                    if self._try(link, replica, login, refusal):
                        known.append(login)
                except Exception as error:
                    error.add_note(f"{source_name} -> relay -> {replica_name} by {login}")
                    raise
            if key in STOPPED_BY:
                self._stop(link, replica, STOPPED_BY[key])
            forget_everything(replica)
            self._pairs[key] = known
        return self._pairs[key]

    def _try(self, link: Link, replica: Server, login: Login, refusal: Refusal | None) -> bool:
        """Whether the replica knows this way to log in; it then has the source's tables, or was refused as told."""
        seen = len(link.relay.logged("replica_logged_in"))
        forget_everything(replica)
        self.attach(link, replica, login)
        unknown = refused_login(replica.name, login)
        if unknown is not None:
            wait_refused(replica, unknown.words)
            assert len(link.relay.logged("replica_logged_in")) == seen
            return False
        if refusal is not None:
            wait_refused(replica, refusal.words)
        else:
            another_transaction(link.source)
            replica.wait_for_source(link.source, timeout=REFUSAL_TIMEOUT_S)
            assert replica.checksum_tables([DATABASE]) == link.source.checksum_tables([DATABASE])
        logged = link.relay.logged("replica_logged_in")[seen:]
        assert [(line["user"], line["plugin"]) for line in logged] == [(user_of(replica, login), login.plugin)], logged
        assert bool(logged[0]["tls"]) == (login.transport == TLS)
        return True

    def attach(self, link: Link, replica: Server, login: Login) -> None:
        """The replica follows the relay from the start, this way."""
        replica.attach(
            "127.0.0.1",
            link.relay.port,
            user_of(replica, login),
            PASSWORD,
            link.start.file,
            link.start.position,
            **attach_options(replica, login.transport, self._authority.certificate),
        )

    def _stop(self, link: Link, replica: Server, collation: str) -> None:
        """The replica stops at a statement in this collation, by its number."""
        forget_everything(replica)
        self.attach(link, replica, Login(NATIVE, CLEAR))
        WRITTEN_IN[collation](link.source)
        wait_refused(replica, f"Character set '{collation}' is not a compiled character set")
        self._start_anew(link)

    @staticmethod
    def _start_anew(link: Link) -> None:
        """Replicas begin after what was written by now, with the same database made again."""
        link.source.sql(f"DROP DATABASE {DATABASE}")
        link.start = link.source.master_status()
        first_transactions(link.source)

    def link(self, name: str) -> Link:
        """The running source of this name with its relay."""
        if name not in self._links:
            source = self._servers(name).start(server_id=1, options=source_options(name, self._of_servers))
            start = BinlogPosition(source.binlogs()[0].name, 4)
            first_transactions(source)
            upstream: dict[str, Any] = {"ssl_mode": "disabled"}
            if name != "mysql56" and OWN_SERIES.get(name, (8, 0)) >= (8, 0):
                upstream = {"ssl_mode": "verify_identity", "ssl_ca": str(self._authority.certificate)}
            relay = self._relay(
                f"relay-{name}",
                source,
                {
                    "source": upstream,
                    "listen": {
                        "host": "0.0.0.0",
                        "tls_cert": str(self._of_relays.certificate),
                        "tls_key": str(self._of_relays.key),
                    },
                },
            )
            for plugin in PLUGINS:
                relay.add_account(user=USERS[plugin], password_hash=STORED[plugin], plugin=plugin)
            relay.add_account(user=FAST_USER, password=PASSWORD, plugin=SHA2)
            relay.start()
            # Before that a replica is sent away by name, and logs in once more.
            wait_until(lambda: relay.logged("source_attached"), f"the relay follows {name}")
            self._links[name] = Link(source, relay, start)
        return self._links[name]

    def _relay(self, name: str, source: Server, sections: dict[str, dict[str, Any]]) -> RelayProcess:
        relay = RelayProcess(
            self._directory / name,
            source,
            port=free_port(),
            # Two relays with one id at a source would throw each other out.
            server_id=4242 + len(self._relays),
            sections=sections,
        )
        self._relays.append(relay)
        return relay

    def replica(self, name: str) -> Server:
        """The running replica of this name; MariaDB with the client plugins that its package does not put there."""
        if name not in self._replicas:
            server = self._servers(name)
            options = server.with_client_plugins() if isinstance(server, MariaDB) else []
            self._next_id += 1
            self._replicas[name] = server.start(server_id=self._next_id, options=options)
        return self._replicas[name]

    # ---- the relay behind a source -------------------------------------------------------------------------------------

    def source(self, name: str) -> list[Login]:
        """Logs a relay in to the source in every way; those that work, all that it wrote having been archived."""
        if name not in self._sources:
            link = self.link(name)
            another_transaction(link.source)
            known = []
            for plugin in source_plugins(name):
                user = f"relay_{plugin}"[:16]
                create_account(link.source, user, plugin)
                for transport in (CLEAR, TLS):
                    login = Login(plugin, transport)
                    try:
                        if self._enter(link.source, user, login):
                            known.append(login)
                    except Exception as error:
                        error.add_note(f"relay -> {name} by {login}")
                        raise
            if SOURCE_REMARKS.get(name) == "parsec":
                create_account(link.source, "relay_parsec", "parsec")
                self._refused(link.source, "relay_parsec", "plugin_unavailable")
            self._sources[name] = known
        return self._sources[name]

    def _enter(self, source: Server, user: str, login: Login) -> bool:
        """Whether the source lets it in this way; the relay then has all of its binlogs."""
        modes = {CLEAR: "disabled", TLS: "verify_identity"}
        if login.transport == TLS and source.name in OWN_SERIES and OWN_SERIES[source.name] < (8, 0):
            return False
        if login.transport == TLS and source.name == "mysql56":
            self._refused(source, user, "tls_too_old", modes[TLS])
            return False
        with self._relay_with(source, user, modes[login.transport]) as relay:
            end = source.master_status()
            relay.wait_archived(end.file, end.position)
            assert differences(source.binlogs(), relay.archive) == []
            encrypted = relay.logged("source_attached")[-1]["tls"] != "none"
            assert encrypted == (login.transport == TLS)
        return True

    def _refused(self, source: Server, user: str, trouble: str, mode: str = "preferred") -> None:
        with self._relay_with(source, user, mode) as relay:
            wait_for_line(relay, "source_lost", trouble)

    @contextlib.contextmanager
    def _relay_with(self, source: Server, user: str, mode: str) -> Iterator[RelayProcess]:
        account = {"user": user, "password": PASSWORD, "ssl_mode": mode}
        if mode == "verify_identity":
            account["ssl_ca"] = str(self._authority.certificate)
        relay = self._relay(f"enters{len(self._relays)}", source, {"source": account})
        relay.start(wait=False)
        try:
            yield relay
        finally:
            relay.kill()

    # ---- all of it -----------------------------------------------------------------------------------------------------

    def findings(self, told: Callable[[str], None] = lambda _: None) -> Findings:
        """Everything that the servers of this machine can show."""
        found = Findings()
        reached: dict[str, list[set[Login]]] = {}
        for source in self.names:
            told(f"relay -> {source}")
            self._add_source(found, source)
            for replica in self.names:
                told(f"{source} -> relay -> {replica}")
                reached.setdefault(replica, []).append(set(self.pair(source, replica)))
                refusal = refused_stream(source, replica)
                remark = refusal.note if refusal else REMARKS.get((source, replica))
                found.pairs[source, replica] = ("no" if refusal else "yes", *([remark] if remark else []))
        for replica, sets in reached.items():
            self._add_replica(found, replica, set.intersection(*sets))
        return found

    def _add_source(self, found: Findings, name: str) -> None:
        known = self.source(name)
        for transport in (CLEAR, TLS):
            plugins = [login.plugin for login in known if login.transport == transport]
            remark = SOURCE_REMARKS.get(name) if plugins else "old-tls"
            found.sources[name, transport] = (", ".join(plugins) or "no", *([remark] if remark else []))

    def _add_replica(self, found: Findings, name: str, known: set[Login]) -> None:
        for transport in (CLEAR, TLS):
            plugins = [plugin for plugin in PLUGINS if Login(plugin, transport) in known]
            remarks = TRANSPORT_REMARKS.get((name, transport), ())
            refusals = [
                refused_login(name, login)
                for login in logins_tried(name)
                if login.transport == transport and login.plugin not in plugins
            ]
            notes = dict.fromkeys([*remarks, *(each.note for each in refusals if each)])
            found.replicas[name, transport] = (", ".join(plugins) or "no", *notes)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.interop.support_matrix", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the tables into docs/SUPPORT.md and README.md")
    parser.add_argument("--views", action="store_true", help="only what views of a MariaDB keep")
    arguments = parser.parse_args()
    if OWN and arguments.write:
        print(
            f"The pages contain the servers of the package sources: not with {', '.join(OWN)} of one's own.",
            file=sys.stderr,
        )
        return 2
    absent = {name: reason for name in TITLES if (reason := why_not(name)) is not None}
    if absent and arguments.write:
        print("\n".join(f"{name}: {reason}" for name, reason in absent.items()), file=sys.stderr)
        return 2
    began = time.monotonic()

    def told(what: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {what}", file=sys.stderr, flush=True)

    views = view_table(found_views(told))
    if arguments.write:
        write_view_table(views)
    else:
        print(views)
    if arguments.views:
        return 0
    with contextlib.ExitStack() as made:
        matrix = Matrix(lambda name: made.enter_context(SERVERS[name]()))
        made.callback(matrix.close)
        text = tables(matrix.findings(told))
    if arguments.write:
        write_pages(text)
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
