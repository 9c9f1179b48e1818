"""MariaDB 10.5, an old one that is in use, from Debian bullseye, run by bullseye's own dynamic loader."""

from .debian_tree import DebianTree
from .mariadb_tree import MariaDBFromTree


class MariaDB105(MariaDBFromTree):
    """MariaDB 10.5 (10.5.23 and later): older than the words `mariadb_…` of its SQL files, widely used."""

    name = "mariadb105"

    _share = "usr/share/mysql"

    # COMPAT_5_1_CHECKSUM is of 10.9 and later: before that the sums were MySQL's.
    _CHECKSUM_SETTINGS = ()

    _tree = DebianTree(
        suite="bullseye",
        product="MariaDB 10.5",
        program="usr/sbin/mariadbd",
        installed=("mariadb-server-core-10.5", "mariadb-client-core-10.5", "libmariadb3"),
        # Authentication plugins; mariadb-binlog, mariadb-admin and mariadb-dump.
        unpacked=("mariadb-server-10.5", "mariadb-client-10.5"),
    )

    def with_client_plugins(self) -> list[str]:
        """Return no options: 10.5.23 ends with signal 11 when its receiver has used the client library's caching_sha2_password."""
        return []
