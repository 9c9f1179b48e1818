"""The system schema of a MariaDB whose own installation script cannot be used: its SQL files, fed to `mariadbd --bootstrap`."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .location import ServerUnavailable, server_account

# mariadb-install-db feeds these to the server in this order. Until 10.11 their names begin with the old word.
_SCRIPTS = (
    ("mariadb_system_tables.sql", "mysql_system_tables.sql"),
    ("mariadb_performance_tables.sql", "mysql_performance_tables.sql"),
    ("mariadb_system_tables_data.sql", "mysql_system_tables_data.sql"),
    ("fill_help_tables.sql",),
    ("maria_add_gis_sp_bootstrap.sql",),
    ("mariadb_sys_schema.sql", "mysql_sys_schema.sql"),
)


def make_system_schema(server: Sequence[str], scripts: Path, data: Path, work: Path) -> None:
    """Fill the empty directory `data`; `server` is the command of the server with its own options, `scripts` has its SQL files.

    Raises: ServerUnavailable with the end of what the server said.
    """
    found = [next((scripts / name for name in names if (scripts / name).is_file()), None) for names in _SCRIPTS]
    if found[0] is None:
        raise ServerUnavailable(f"{scripts} has none of {' and '.join(_SCRIPTS[0])}, of which a data directory is made")
    text = b"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n" + b"".join(
        script.read_bytes() for script in found if script is not None
    )
    done = subprocess.run(
        [
            server[0],
            *server[1:],
            f"--datadir={data}",
            f"--tmpdir={work}",  # TMPDIR may belong to another account
            "--log-warnings=0",
            "--enforce-storage-engine=",
            "--skip-name-resolve",
            "--max-allowed-packet=8M",
            "--net-buffer-length=16K",
            *([f"--user={server_account().pw_name}"] if os.geteuid() == 0 else []),
        ],
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=work,
        check=False,
    )
    if done.returncode != 0:
        said = done.stdout.decode("utf-8", "replace").strip().splitlines()[-5:]
        raise ServerUnavailable(f"mariadbd --bootstrap failed with status {done.returncode}: {' | '.join(said)}")
