"""What is known of each source, replica and login beforehand: what a server refuses, in its words, and what a DBA must know."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

TITLES: Final = {
    "mysql56": "MySQL 5.6",
    "mysql97": "MySQL 9.7",
    "mariadb": "MariaDB 10.11",
    "mariadb118": "MariaDB 11.8",
}
NATIVE: Final = "mysql_native_password"
SHA2: Final = "caching_sha2_password"
ED25519: Final = "client_ed25519"
PLUGINS: Final = (NATIVE, SHA2, ED25519)
CLEAR: Final = "clear"
TLS: Final = "TLS"


@dataclass(frozen=True, slots=True)
class Login:
    """One way to log in."""

    plugin: str
    transport: str

    def __str__(self) -> str:
        return f"{self.plugin}, {self.transport}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a server says (a pattern of it), and the key of the note that explains it."""

    words: str
    note: str


# Keys in the order in which they are explained below the tables.
NOTES: Final = {
    "gtid": "`gtid_mode = OFF_PERMISSIVE`: with its default, ON, MySQL 9.7 cannot apply transactions without GTIDs.",
    "collation": "As long as nothing on the source uses MySQL 9.7's default collation, utf8mb4_0900_ai_ci: the replica "
    "stops with \"Character set '#255' is not a compiled character set\". `collation_server = utf8mb4_general_ci` there "
    "and `SET NAMES utf8mb4 COLLATE utf8mb4_general_ci` in its clients avoid it.",
    "insists-mysql": "With `SOURCE_SSL = 0`, and `GET_SOURCE_PUBLIC_KEY = 1` for caching_sha2_password. By default it takes "
    'TLS only: "SSL is required but the server doesn\'t support it".',
    "insists-mariadb": 'With `MASTER_SSL = 0, MASTER_SSL_VERIFY_SERVER_CERT = 0`. By default it takes TLS only, "SSL is '
    'required, but the server does not support it", and verifies: mysql_native_password and client_ed25519 need no '
    "`MASTER_SSL_CA` for it, the relay proves to know the password as MariaDB does; caching_sha2_password needs one.",
    "temporary": "With `binlog_format = ROW`. In STATEMENT and MIXED, where a client leaves a temporary table to the server to "
    "drop, MariaDB 11.8 writes the statement in a collation of its own: the replica stops with \"Character set '#579' is not "
    'a compiled character set".',
    "mariadb-events": "Refused by the relay, by name: it relays MariaDB's own events, which MySQL cannot read. A MariaDB "
    "source rewrites them for a MySQL replica that attaches to it directly; even then MySQL 9.7 stops at row events "
    '("Relay log read failure: Could not parse relay log event entry"), and both versions skip the statements of '
    "MariaDB 11.8 in its default collation, number 2304 and up, without an error.",
    "old-tls": "MySQL 5.6 speaks TLS 1.0 and 1.1 at most, the relay 1.2 and 1.3. The replica says 2026, the relay's log why.",
    "old-client": "MySQL 5.6 knows no other plugin: error 2059.",
    "no-ed25519": "MySQL has no ed25519: \"Authentication plugin 'client_ed25519' cannot be loaded\" (2059).",
    "client-plugins": "With the files caching_sha2_password.so and client_ed25519.so of the package libmariadb3 in the "
    "server's `plugin_dir`; without them: \"Authentication plugin '…' cannot be loaded\" (2059).",
    "short-sha2": "caching_sha2_password in clear: give the account here its `password`, not a `password_hash`. A MariaDB "
    'replica that is asked for its password answers with something that neither the relay nor MySQL 9.7 can use: "Access '
    'denied".',
    "parsec": "Not by parsec, 11.8's newest plugin: the relay says so.",
}

# (replica, plugin, transport) -> what the replica says.
REFUSED_LOGINS: Final = {
    **{("mysql56", plugin, TLS): Refusal(r"2026 error connecting to master", "old-tls") for plugin in PLUGINS},
    ("mysql56", SHA2, CLEAR): Refusal(r"2059 error connecting to master", "old-client"),
    ("mysql56", ED25519, CLEAR): Refusal(r"2059 error connecting to master", "old-client"),
    ("mysql97", ED25519, CLEAR): Refusal(r"Authentication plugin 'client_ed25519' cannot be loaded", "no-ed25519"),
    ("mysql97", ED25519, TLS): Refusal(r"Authentication plugin 'client_ed25519' cannot be loaded", "no-ed25519"),
}
_MARIADB_EVENTS: Final = Refusal(
    r"This stream comes from a MariaDB source, whose events MySQL cannot read", "mariadb-events"
)
# (source, replica) -> what the replica says after it has logged in.
REFUSED_STREAMS: Final = {
    (source, replica): _MARIADB_EVENTS for source in ("mariadb", "mariadb118") for replica in ("mysql56", "mysql97")
}
# (source, replica): what holds although it works.
REMARKS: Final = {
    ("mysql56", "mysql97"): "gtid",
    ("mysql97", "mysql56"): "collation",
    ("mysql97", "mariadb"): "collation",
    ("mariadb118", "mariadb"): "temporary",
}
# (source, replica): the number of a collation that the source uses and the replica does not know.
STOPPED_BY: Final = {
    ("mysql97", "mysql56"): "#255",
    ("mysql97", "mariadb"): "#255",
    ("mariadb118", "mariadb"): "#579",
}
SOURCE_REMARKS: Final = {"mariadb118": "parsec"}
# (replica, transport): what its logins need.
TRANSPORT_REMARKS: Final = {
    ("mysql97", CLEAR): ("insists-mysql",),
    ("mariadb", CLEAR): ("client-plugins", "short-sha2"),
    ("mariadb", TLS): ("client-plugins",),
    ("mariadb118", CLEAR): ("insists-mariadb", "client-plugins", "short-sha2"),
    ("mariadb118", TLS): ("client-plugins",),
}
# What an account of the source may ask of the relay.
SOURCE_PLUGINS: Final = {
    "mysql56": (NATIVE,),
    "mysql97": (SHA2, "sha256_password"),
    "mariadb": (NATIVE, ED25519),
    "mariadb118": (NATIVE, ED25519),
}


def refused_login(replica: str, login: Login) -> Refusal | None:
    """What this replica says to this way of logging in; None: it knows it."""
    return REFUSED_LOGINS.get((replica, login.plugin, login.transport))


def logins() -> Iterator[Login]:
    """Every way to log in."""
    for transport in (CLEAR, TLS):
        for plugin in PLUGINS:
            yield Login(plugin, transport)
