"""Real MySQL and MariaDB servers, installed from ordinary package sources, for demos and tests.

    python -m deploy.servers install            all of them that the package sources offer
    python -m deploy.servers status             which can be used, and what is missing for the others

    with MariaDB() as source, MySQL56() as old: ...

    BINLOG_RELAY_SERVER_MYSQL57=/opt/mysql-5.7 python -m deploy.servers status      one more, in a directory of one's own

Servers listen on loopback only, keep their data in their own directories and die with the process that started them. Standard library
only, except for `Server.connect` and what uses it (PyMySQL).
"""

import os

from .location import ServerUnavailable, root_directory
from .mariadb import MariaDB
from .mariadb105 import MariaDB105
from .mariadb118 import MariaDB118
from .mysql56 import MySQL56
from .mysql97 import MySQL97
from .own_servers import own_servers
from .server import BinlogPosition, CatchUpError, Server
from .server_process import ServerError

PACKAGED: dict[str, type[Server]] = {kind.name: kind for kind in (MariaDB, MariaDB105, MariaDB118, MySQL56, MySQL97)}
"""The servers that come from package sources."""
OWN: dict[str, type[Server]] = own_servers(os.environ)
"""The servers in directories that the environment names: see own_servers.py."""
SERVERS: dict[str, type[Server]] = PACKAGED | OWN


def available() -> dict[str, str | None]:
    """Return each server's name with None if it can be started here, else one sentence with what is missing."""
    return {name: kind.missing() for name, kind in SERVERS.items()}


__all__ = [
    "OWN",
    "PACKAGED",
    "SERVERS",
    "BinlogPosition",
    "CatchUpError",
    "MariaDB",
    "MariaDB105",
    "MariaDB118",
    "MySQL56",
    "MySQL97",
    "Server",
    "ServerError",
    "ServerUnavailable",
    "available",
    "root_directory",
]
