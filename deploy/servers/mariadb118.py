"""MariaDB 11.8, the new one of its kind, from Debian trixie, run by trixie's own dynamic loader."""

from .debian_tree import DebianTree
from .mariadb import MariaDB
from .mariadb_tree import MariaDBFromTree
from .replication_words import ReplicationWords


class MariaDB118(MariaDBFromTree):
    """MariaDB 11.8 (or whatever trixie has by now): it makes its own TLS keys, and verifies its source's by default."""

    name = "mariadb118"

    # From 11.4 on, its defaults require TLS of the source and a verified certificate.
    _words = ReplicationWords(defaults={**MariaDB._words.defaults, "MASTER_SSL": 0, "MASTER_SSL_VERIFY_SERVER_CERT": 0})

    _tree = DebianTree(
        suite="trixie",
        product="MariaDB 11.8",
        program="usr/sbin/mariadbd",
        installed=("mariadb-server-core", "mariadb-client-core", "libmariadb3"),
        # Authentication plugins; mariadb-binlog and mariadb-admin.
        unpacked=("mariadb-server", "mariadb-client"),
    )

    @classmethod
    def _bootstrap_options(cls) -> list[str]:
        return ["--silent-startup"]
