"""MariaDB of another Debian release than this machine's, run by that release's own dynamic loader."""

from pathlib import Path
from typing import ClassVar

from .debian_tree import ServerFromTree
from .mariadb import MariaDB, version_of
from .mariadb_bootstrap import make_system_schema


class MariaDBFromTree(ServerFromTree, MariaDB):
    """A MariaDB of another Debian release than this machine's."""

    # The directory of its messages and SQL files inside the tree.
    _share: ClassVar[str] = "usr/share/mariadb"

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
            f"--lc-messages-dir={root / cls._share}",
            f"--character-sets-dir={root / cls._share / 'charsets'}",
            f"--plugin-dir={cls.plugin_directories()[0]}",
        ]

    @classmethod
    def _make_data(cls, data: Path, work: Path) -> None:
        # The release's own script calls programs of the tree in a way that leaves out their loader.
        server = [*cls.program(), "--no-defaults", "--bootstrap", *cls._bootstrap_options(), *cls._own_options()]
        make_system_schema(server, cls._tree.path / cls._share, data, work)

    @classmethod
    def _bootstrap_options(cls) -> list[str]:
        return []
