"""MariaDB 11.8, the new one of its kind, from Debian trixie, run by trixie's own dynamic loader."""

import os
import subprocess
from pathlib import Path

from .debian_tree import DebianTree, ServerFromTree
from .location import ServerUnavailable, server_account
from .mariadb import MariaDB, version_of
from .replication_words import ReplicationWords

# mariadb-install-db feeds these to `mariadbd --bootstrap`, in its order. The script itself calls programs of the tree in a way that
# leaves out their loader.
_SYSTEM_SCHEMA = (
    "mariadb_system_tables.sql",
    "mariadb_performance_tables.sql",
    "mariadb_system_tables_data.sql",
    "fill_help_tables.sql",
    "maria_add_gis_sp_bootstrap.sql",
    "mariadb_sys_schema.sql",
)


class MariaDB118(ServerFromTree, MariaDB):
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
    def read_version(cls) -> str:
        return version_of(tuple(cls.program()))

    @classmethod
    def mysqlbinlog(cls) -> list[str]:
        return cls._tree.command("usr/bin/mariadb-binlog")

    @classmethod
    def mysql_client(cls) -> list[str]:
        return cls._tree.command("usr/bin/mariadb")

    @classmethod
    def mysqladmin(cls) -> list[str]:
        return cls._tree.command("usr/bin/mariadb-admin")

    @classmethod
    def mysqldump(cls) -> list[str]:
        return cls._tree.command("usr/bin/mariadb-dump")

    @classmethod
    def plugin_directories(cls) -> tuple[Path, Path]:
        root = cls._tree.path
        return root / "usr/lib/mysql/plugin", root / "usr/lib/x86_64-linux-gnu/libmariadb3/plugin"

    @classmethod
    def _own_options(cls) -> list[str]:
        root = cls._tree.path
        return [
            f"--basedir={root / 'usr'}",
            f"--lc-messages-dir={root / 'usr/share/mariadb'}",
            f"--character-sets-dir={root / 'usr/share/mariadb/charsets'}",
            f"--plugin-dir={cls.plugin_directories()[0]}",
        ]

    @classmethod
    def _make_data(cls, data: Path, work: Path) -> None:
        scripts = cls._tree.path / "usr/share/mariadb"
        text = b"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n" + b"".join(
            (scripts / name).read_bytes() for name in _SYSTEM_SCHEMA
        )
        done = subprocess.run(
            [
                *cls.program(),
                "--no-defaults",
                "--bootstrap",
                "--silent-startup",
                *cls._own_options(),
                f"--datadir={data}",
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
