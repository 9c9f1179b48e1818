"""MySQL 9.7, the new replica, from Debian sid, run by sid's own dynamic loader."""

import functools
import os
import re
from pathlib import Path

from .debian_tree import DebianTree, ServerFromTree
from .location import ServerUnavailable, server_account
from .process import run_tool
from .replication_words import ReplicationWords


@functools.cache
def _version_of(command: tuple[str, ...]) -> str:
    text = run_tool([*command, "--no-defaults", "--version"])
    match = re.search(r"Ver ([0-9.]+)", text)
    if match is None:
        raise ServerUnavailable(f"MySQL 9.7 does not tell its version: {text.strip()}")
    return match[1]


class MySQL97(ServerFromTree):
    """MySQL 9.7 (or what sid has by now): it knows only the new words, and requires TLS of its source by default.

    It needs a newer libc than Debian 12's. Calling it through the loader of the sid tree gives it that, and spares
    a chroot: data, sockets and logs are at ordinary paths.
    """

    name = "mysql97"
    flavour = "mysql"

    _words = ReplicationWords(
        binlog_status="SHOW BINARY LOG STATUS",
        replica_status="SHOW REPLICA STATUS",
        replica="REPLICA",
        change="CHANGE REPLICATION SOURCE TO",
        prefix="SOURCE_",
        defaults={
            "MASTER_CONNECT_RETRY": 1,
            "MASTER_RETRY_COUNT": 1000000,
            "MASTER_SSL": 0,
            # Without TLS, the public key of a caching_sha2_password source must be requested.
            "GET_SOURCE_PUBLIC_KEY": 1,
            "MASTER_AUTO_POSITION": 0,
        },
    )

    _tree = DebianTree(
        suite="sid",
        product="MySQL 9.7",
        program="usr/sbin/mysqld",
        installed=("mysql-server-core", "mysql-client-core"),
        libraries=("usr/lib/mysql/private",),
    )

    @classmethod
    def read_version(cls) -> str:
        return _version_of(tuple(cls.program()))

    @classmethod
    def mysqlbinlog(cls) -> list[str]:
        return cls._tree.command("usr/bin/mysqlbinlog")

    @classmethod
    def mysql_client(cls) -> list[str]:
        return cls._tree.command("usr/bin/mysql")

    @classmethod
    def mysqladmin(cls) -> list[str]:
        return cls._tree.command("usr/bin/mysqladmin")

    @classmethod
    def mysqldump(cls) -> list[str]:
        return cls._tree.command("usr/bin/mysqldump")

    @classmethod
    def plugin_directory(cls) -> Path:
        """Return the directory of the plugins of the server and of the clients."""
        return cls._tree.path / "usr/lib/mysql/plugin"

    @classmethod
    def _make_data(cls, data: Path, work: Path) -> None:
        account = server_account()
        data.rmdir()  # The server makes the directory itself
        run_tool(
            [
                *cls.program(),
                "--no-defaults",
                "--initialize-insecure",
                *cls._own_options(),
                f"--datadir={data}",
                f"--tmpdir={work}",  # TMPDIR may belong to another account
                *([f"--user={account.pw_name}"] if os.geteuid() == 0 else []),
            ],
            directory=work,
            what="mysqld --initialize-insecure",
        )

    @classmethod
    def _own_options(cls) -> list[str]:
        tree = cls._tree.path
        return [
            f"--basedir={tree / 'usr'}",
            f"--lc-messages-dir={tree / 'usr/share/mysql'}",
            f"--character-sets-dir={tree / 'usr/share/mysql/charsets'}",
            f"--plugin-dir={cls.plugin_directory()}",
            "--mysqlx=OFF",
            "--secure-file-priv=",
        ]

    @classmethod
    def _default_options(cls) -> list[str]:
        return [
            # With the default, ON, it cannot apply a stream without Gtid events at all.
            "--gtid-mode=OFF_PERMISSIVE",
            # Its default, ON since 9.x, refuses statements that an old source accepted: both engines in one transaction (1785), CREATE
            # TABLE ... SELECT (1786).
            "--enforce-gtid-consistency=OFF",
            "--performance-schema=OFF",
            "--replica-net-timeout=10",
            "--relay-log-recovery=ON",
            "--innodb-redo-log-capacity=64M",
            "--innodb-log-writer-threads=OFF",
        ]
