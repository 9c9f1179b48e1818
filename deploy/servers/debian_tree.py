"""Programs of another Debian release than this machine's: a small tree of that release, run by its own loader."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from . import packages
from .location import ServerUnavailable, locked, root_directory, server_account, unreachable_part
from .process import run_tool
from .server import Server

_LIBRARIES = "usr/lib/x86_64-linux-gnu"


@dataclass(frozen=True)
class DebianTree:
    """A tree with one release's packages under the servers' root directory.

    Newer programs need a newer libc than this machine's. Calling them through the tree's dynamic loader gives them that and spares a
    chroot: data, sockets and logs are at ordinary paths.

    `product` is its name in messages. `program` is the server's path inside the tree. `installed` are packages that apt installs with
    their dependencies. `unpacked` are packages of which only the files are wanted: plugins in a package that depends on half a system.
    `libraries` are directories with libraries besides the ordinary one.
    """

    suite: str
    product: str
    program: str
    installed: tuple[str, ...]
    unpacked: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The path of the tree, whether it exists or not."""
        return root_directory() / self.suite

    def command(self, program: str | None = None) -> list[str]:
        """Return the command for a program of the tree, by default the server's."""
        libraries = [self.path / directory for directory in (_LIBRARIES, *self.libraries)]
        return [
            # Not /lib64's link: that of an old release leads out of the tree.
            str(self.path / _LIBRARIES / "ld-linux-x86-64.so.2"),
            "--library-path",
            ":".join(map(str, libraries)),
            str(self.path / (program or self.program)),
        ]

    def missing(self) -> str | None:
        """Return None if the server can be called, else one sentence with what is missing."""
        if not (self.path / self.program).exists():
            wanted = " and ".join(self.installed)
            return f"{self.product} is not installed under {self.path} (Debian {self.suite} packages {wanted})"
        account = server_account()
        blocked = unreachable_part(self.path, account)
        if blocked is not None:
            return f"{self.product} cannot run: the account {account.pw_name} cannot enter {blocked}"
        return None

    def install(self) -> None:
        """Make the tree if it is absent. Raises: ServerUnavailable with one sentence."""
        if self.missing() is None:
            return
        if os.uname().machine != "x86_64":
            raise ServerUnavailable(f"{self.product} is set up here on x86_64 only, this is {os.uname().machine}")
        if os.geteuid() != 0:
            raise ServerUnavailable(f"{self.product} is installed by debootstrap, which needs root")
        if shutil.which("debootstrap") is None:
            packages.apt_install(["debootstrap"], f"debootstrap, which brings {self.product}")
        with locked(f"install-{self.suite}"):
            if self.missing() is None:
                return
            # It has another name until it is complete: a half-made tree would look like one.
            part = self.path.with_name(f".{self.suite}.part")
            self._bootstrap(part)
            self._add_packages(part)
            packages.remove_tree(self.path)
            part.rename(self.path)
        reason = self.missing()
        if reason is not None:
            raise ServerUnavailable(reason)

    def _bootstrap(self, part: Path) -> None:
        mirror = packages.debian_mirror()
        make = ["--variant=minbase", self.suite, str(part), *([mirror] if mirror else [])]
        try:
            packages.remove_tree(part)
            self._run(["debootstrap", *make], f"debootstrap {self.suite}")
        except ServerUnavailable:
            # An old keyring on this machine does not know the release's newest keys. apt inside the tree, with the release's own
            # keyring, still checks what it installs.
            packages.remove_tree(part)
            self._run(["debootstrap", "--no-check-gpg", *make], f"debootstrap {self.suite}")

    def _add_packages(self, part: Path) -> None:
        inside = ["chroot", str(part), "apt-get"]
        install = ["install", "-y", "--no-install-recommends", *self.installed]
        try:
            self._run([*inside, "update"], f"apt-get update in {self.suite}")
            self._run([*inside, *install], f"apt-get install in {self.suite}")
        except ServerUnavailable:
            # A mirror that is a snapshot serves a Release file that has expired.
            inside += ["-o", "Acquire::Check-Valid-Until=false"]
            self._run([*inside, "update"], f"apt-get update in {self.suite}")
            self._run([*inside, *install], f"apt-get install in {self.suite}")
        if self.unpacked:
            # `dpkg-deb -x` would put a directory where the release has a link, /lib, and no program would run any more.
            fetch = (
                'cd /tmp && apt-get download "$@" && for each in *.deb;'
                ' do dpkg-deb --fsys-tarfile "$each" | tar -x -C / --keep-directory-symlink && rm "$each"; done'
            )
            self._run(
                ["chroot", str(part), "sh", "-e", "-c", fetch, "sh", *self.unpacked], f"unpacking in {self.suite}"
            )
        self._run([*inside, "clean"], f"apt-get clean in {self.suite}")

    @staticmethod
    def _run(command: Sequence[str], what: str) -> None:
        environment = {**packages.proxy_environment(), "DEBIAN_FRONTEND": "noninteractive"}
        run_tool(list(command), environment=environment, what=what)


class ServerFromTree(Server):
    """A server whose programs are in a tree."""

    _tree: ClassVar[DebianTree]

    @classmethod
    def missing(cls) -> str | None:
        return cls._tree.missing()

    @classmethod
    def install(cls) -> None:
        cls._tree.install()

    @classmethod
    def program(cls) -> list[str]:
        return cls._tree.command()
