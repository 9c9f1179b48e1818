"""What is known of each source, replica and login beforehand: what a server refuses, in its words, and what a DBA must know."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from deploy.servers import OWN, SERVERS
from deploy.servers.own_servers import named_series

TITLES: Final = {
    "mysql56": "MySQL 5.6",
    "mysql97": "MySQL 9.7",
    "mariadb105": "MariaDB 10.5",
    "mariadb": "MariaDB 10.11",
    "mariadb118": "MariaDB 11.8",
}
# Servers in directories that the environment names are tried as well; the pages contain those of the package sources.
OWN_SERIES: Final = {name: meant[1] for name in OWN if name not in TITLES and (meant := named_series(name))}
OWN_TITLES: Final = {
    name: f"{'MySQL' if SERVERS[name].flavour == 'mysql' else 'MariaDB'} {major}.{minor}"
    for name, (major, minor) in OWN_SERIES.items()
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
    "uca1400": "MariaDB 11.8 writes its default collation, number 2304, into statements, and servers before 10.10 do not know "
    "it: the replica stops with \"Character set '#2304' is not a compiled character set\".",
    "old-tls": "MySQL 5.6 speaks TLS 1.0 and 1.1 at most, the relay 1.2 and 1.3. The replica says 2026, the relay's log why.",
    "old-client": "MySQL 5.6 knows no other plugin: error 2059.",
    "no-ed25519": "MySQL has no ed25519: \"Authentication plugin 'client_ed25519' cannot be loaded\" (2059).",
    "client-plugins": "With the files caching_sha2_password.so and client_ed25519.so of the package libmariadb3 in the "
    "server's `plugin_dir`; without them: \"Authentication plugin '…' cannot be loaded\" (2059).",
    "old-plugins": "Give its account mysql_native_password: the plugins of the package libmariadb3 are not in its `plugin_dir` "
    "(\"Authentication plugin '…' cannot be loaded\", 2059), and MariaDB 10.5.23 ends with signal 11 when its receiver has used "
    "caching_sha2_password from there, whatever the source is.",
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
    **{
        ("mariadb105", plugin, transport): Refusal(rf"Authentication plugin '{plugin}' cannot be loaded", "old-plugins")
        for plugin in (SHA2, ED25519)
        for transport in (CLEAR, TLS)
    },
    ("mysql97", ED25519, CLEAR): Refusal(r"Authentication plugin 'client_ed25519' cannot be loaded", "no-ed25519"),
    ("mysql97", ED25519, TLS): Refusal(r"Authentication plugin 'client_ed25519' cannot be loaded", "no-ed25519"),
}
_MARIADB_EVENTS: Final = Refusal(
    r"This stream comes from a MariaDB source, whose events MySQL cannot read", "mariadb-events"
)
# (source, replica): what holds although it works.
REMARKS: Final = {
    ("mysql56", "mysql97"): "gtid",
    ("mysql97", "mysql56"): "collation",
    ("mysql97", "mariadb"): "collation",
    ("mysql97", "mariadb105"): "collation",
    ("mariadb118", "mariadb"): "temporary",
}
# (source, replica): the number of a collation that the source uses and the replica does not know.
STOPPED_BY: Final = {
    ("mysql97", "mysql56"): "#255",
    ("mysql97", "mariadb"): "#255",
    ("mysql97", "mariadb105"): "#255",
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
    "mariadb105": (NATIVE, ED25519),
    "mariadb": (NATIVE, ED25519),
    "mariadb118": (NATIVE, ED25519),
}


def refused_stream(source: str, replica: str) -> Refusal | None:
    """What this replica says after it has logged in to a relay behind this source; None: it follows."""
    if (source, replica) == ("mariadb118", "mariadb105"):
        return Refusal(r"Character set '#2304' is not a compiled character set", "uca1400")
    flavours = SERVERS[source].flavour, SERVERS[replica].flavour
    return _MARIADB_EVENTS if flavours == ("mariadb", "mysql") else None


def refused_login(replica: str, login: Login) -> Refusal | None:
    """What this replica says to this way of logging in; None: it knows it."""
    return REFUSED_LOGINS.get((replica, login.plugin, login.transport))


def logins() -> Iterator[Login]:
    """Every way to log in."""
    for transport in (CLEAR, TLS):
        for plugin in PLUGINS:
            yield Login(plugin, transport)


def logins_tried(replica: str) -> list[Login]:
    """Every way to log in; with a server of one's own, those that each build of it has."""
    if replica not in OWN_TITLES:
        return list(logins())
    modern = SERVERS[replica].flavour == "mysql" and OWN_SERIES[replica] >= (8, 0)
    return [login for login in logins() if login == Login(NATIVE, CLEAR) or (modern and login.plugin == SHA2)]


def source_plugins(source: str) -> tuple[str, ...]:
    """What an account of this source may ask of the relay; with a server of one's own, what each build of it has."""
    if source not in OWN_TITLES:
        return SOURCE_PLUGINS[source]
    modern = SERVERS[source].flavour == "mysql" and OWN_SERIES[source] >= (8, 0)
    return (SHA2,) if modern else (NATIVE,)
