"""MySQL 9.7, the new replica, from Debian sid, run by sid's own dynamic loader."""

import functools
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from . import packages
from .location import ServerUnavailable, locked, root_directory, server_account, unreachable_part
from .server import Server, run_tool

# What an installation that was finished leaves behind; without it a half-made one would look complete.
_PROGRAM = "usr/sbin/mysqld"
_PACKAGES = ("mysql-server-core", "mysql-client-core")


@functools.cache
def _version_of(command: tuple[str, ...]) -> str:
    text = run_tool([*command, "--no-defaults", "--version"])
    match = re.search(r"Ver ([0-9.]+)", text)
    if match is None:
        raise ServerUnavailable(f"MySQL 9.7 does not tell its version: {text.strip()}")
    return match[1]


class MySQL97(Server):
    """MySQL 9.7 (or what sid has by now): speaks only the new words, demands TLS of its source unless told not to.

    It needs a newer libc than Debian 12's. Calling it through the loader of the sid tree gives it that, and spares
    a chroot: data, sockets and logs are at ordinary paths.
    """

    name = "mysql97"
    flavour = "mysql"

    _SHOW_BINLOG_STATUS = "SHOW BINARY LOG STATUS"
    _SHOW_REPLICA_STATUS = "SHOW REPLICA STATUS"
    _REPLICA = "REPLICA"
    _CHANGE = "CHANGE REPLICATION SOURCE TO"
    _CHANGE_PREFIX = "SOURCE_"
    _CHANGE_DEFAULTS: ClassVar[Mapping[str, object]] = {
        "MASTER_CONNECT_RETRY": 1,
        "MASTER_RETRY_COUNT": 1000000,
        "MASTER_SSL": 0,
        # Without TLS, a caching_sha2_password source needs its public key to be asked for.
        "GET_SOURCE_PUBLIC_KEY": 1,
        "MASTER_AUTO_POSITION": 0,
    }

    @classmethod
    def _tree(cls) -> Path:
        return root_directory() / "sid"

    @classmethod
    def _run(cls, program: str) -> list[str]:
        tree = cls._tree()
        libraries = [
            tree / "usr/lib/x86_64-linux-gnu",
            tree / "lib/x86_64-linux-gnu",
            tree / "usr/lib/mysql/private",
        ]
        return [
            str(tree / "lib64/ld-linux-x86-64.so.2"),
            "--library-path",
            ":".join(map(str, libraries)),
            str(tree / program),
        ]

    @classmethod
    def missing(cls) -> str | None:
        tree = cls._tree()
        if not (tree / _PROGRAM).exists():
            return f"MySQL 9.7 is not installed under {tree} (Debian sid packages {' and '.join(_PACKAGES)})"
        account = server_account()
        blocked = unreachable_part(tree, account)
        if blocked is not None:
            return f"MySQL 9.7 cannot run: the account {account.pw_name} cannot enter {blocked}"
        return None

    @classmethod
    def install(cls) -> None:
        if cls.missing() is None:
            return
        if os.uname().machine != "x86_64":
            raise ServerUnavailable(f"MySQL 9.7 is set up here on x86_64 only, this is {os.uname().machine}")
        if os.geteuid() != 0:
            raise ServerUnavailable("MySQL 9.7 is installed by debootstrap, which needs root")
        if shutil.which("debootstrap") is None:
            packages.apt_install(["debootstrap"], "debootstrap, which brings MySQL 9.7")
        with locked("install-mysql97"):
            if cls.missing() is None:
                return
            cls._bootstrap(cls._tree())
        reason = cls.missing()
        if reason is not None:
            raise ServerUnavailable(reason)

    @classmethod
    def _bootstrap(cls, tree: Path) -> None:
        part = tree.with_name(".sid.part")
        environment = {**packages.proxy_environment(), "DEBIAN_FRONTEND": "noninteractive"}
        mirror = packages.debian_mirror()
        make = ["--variant=minbase", "sid", str(part), *([mirror] if mirror else [])]
        try:
            packages.remove_tree(part)
            run_tool(["debootstrap", *make], environment=environment, what="debootstrap sid")
        except ServerUnavailable:
            # An old keyring on this machine does not know sid's newest keys. apt inside the tree, with sid's own
            # keyring, still checks what it installs.
            packages.remove_tree(part)
            run_tool(["debootstrap", "--no-check-gpg", *make], environment=environment, what="debootstrap sid")
        inside = ["chroot", str(part), "apt-get"]
        install = ["install", "-y", "--no-install-recommends", *_PACKAGES]
        try:
            run_tool([*inside, "update"], environment=environment, what="apt-get update in sid")
            run_tool([*inside, *install], environment=environment, what="apt-get install in sid")
        except ServerUnavailable:
            # A mirror that is a snapshot serves a Release file that has expired.
            inside += ["-o", "Acquire::Check-Valid-Until=false"]
            run_tool([*inside, "update"], environment=environment, what="apt-get update in sid")
            run_tool([*inside, *install], environment=environment, what="apt-get install in sid")
        run_tool(["chroot", str(part), "apt-get", "clean"])
        packages.remove_tree(tree)
        part.rename(tree)

    @classmethod
    def read_version(cls) -> str:
        return _version_of(tuple(cls.program()))

    @classmethod
    def program(cls) -> list[str]:
        return cls._run(_PROGRAM)

    @classmethod
    def mysqlbinlog(cls) -> list[str]:
        return cls._run("usr/bin/mysqlbinlog")

    @classmethod
    def mysql_client(cls) -> list[str]:
        return cls._run("usr/bin/mysql")

    @classmethod
    def _make_data(cls, data: Path, work: Path) -> None:
        account = server_account()
        data.rmdir()  # it wants to make the directory itself
        run_tool(
            [
                *cls.program(),
                "--no-defaults",
                "--initialize-insecure",
                *cls._own_options(),
                f"--datadir={data}",
                *([f"--user={account.pw_name}"] if os.geteuid() == 0 else []),
            ],
            directory=work,
            what="mysqld --initialize-insecure",
        )

    @classmethod
    def _own_options(cls) -> list[str]:
        tree = cls._tree()
        return [
            f"--basedir={tree / 'usr'}",
            f"--lc-messages-dir={tree / 'usr/share/mysql'}",
            f"--character-sets-dir={tree / 'usr/share/mysql/charsets'}",
            f"--plugin-dir={tree / 'usr/lib/mysql/plugin'}",
            "--mysqlx=OFF",
            "--secure-file-priv=",
        ]

    @classmethod
    def _default_options(cls) -> list[str]:
        return [
            # With the default, ON, it cannot apply a stream without Gtid events at all.
            "--gtid-mode=OFF_PERMISSIVE",
            # Its default, ON since 9.x, refuses what an old source wrote in good faith: both engines in one
            # transaction (1785), CREATE TABLE ... SELECT (1786).
            "--enforce-gtid-consistency=OFF",
            "--performance-schema=OFF",
            "--replica-net-timeout=10",
            "--relay-log-recovery=ON",
            "--innodb-redo-log-capacity=64M",
            "--innodb-log-writer-threads=OFF",
        ]
