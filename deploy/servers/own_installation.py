"""An installation of one's own, in a directory: where its programs, messages and plugins are."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from .location import ServerUnavailable
from .process import run_tool

# A tarball, a build, a package's tree under its root, and an npm package lay their parts at these places.
_PROGRAMS = ("bin", "sbin", "libexec", "usr/sbin", "usr/bin", "usr/libexec", ".", "server")
_MESSAGES = ("share", "share/mysql", "share/mariadb", "usr/share/mysql", "usr/share/mariadb", "server/share")
_PLUGINS = ("lib/plugin", "lib64/mysql/plugin", "lib/mysql/plugin", "usr/lib64/mysql/plugin", "usr/lib/mysql/plugin")
_LIBRARIES = ("lib", "lib/private", "lib/mysql/private")
_TREE_LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/mysql/private")
# A tree of another release than this machine's contains its own dynamic loader and libc.
_LOADER = "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"


@dataclass(frozen=True)
class OwnInstallation:
    """A directory that somebody named, with a server in it or not."""

    directory: Path

    def problem(self) -> str | None:
        """Return None if a server is found in the directory, else a sentence with what is missing."""
        if not self.directory.is_dir():
            return f"there is no directory {self.directory}"
        if self._program("mariadbd", "mysqld") is None:
            looked = ", ".join(f"{place}/" for place in _PROGRAMS if place != ".")
            return f"{self.directory} has no mysqld and no mariadbd, neither itself nor in {looked}"
        if self.messages is None:
            return f"{self.directory} has no messages of a server (english/errmsg.sys in share/ or share/mysql/)"
        return None

    def command(self, *names: str) -> list[str]:
        """Return the command for the first of these programs that is here. Raises: ServerUnavailable."""
        program = self._program(*names)
        if program is None:
            raise ServerUnavailable(f"{self.directory} has no {' and no '.join(names)}")
        if not self._is_tree:
            return [str(program)]
        libraries = ":".join(str(self.directory / place) for place in _TREE_LIBRARIES)
        return [str(self.directory / _LOADER), "--library-path", libraries, str(program)]

    def environment(self) -> dict[str, str]:
        """Return where the loader of this machine finds libraries that the installation brings along."""
        program = self._program("mariadbd", "mysqld")
        if self._is_tree or program is None:
            return {}
        places = [program.parent, *(self.directory / place for place in _LIBRARIES)]
        found = [str(place) for place in places if place.is_dir() and any(place.glob("*.so*"))]
        return {"LD_LIBRARY_PATH": ":".join(found)} if found else {}

    @property
    def messages(self) -> Path | None:
        """The directory with the messages in all languages, and beside them the character sets."""
        return self._first(_MESSAGES, "english/errmsg.sys")

    @property
    def plugins(self) -> Path | None:
        """The directory of the server's plugins."""
        return self._first(_PLUGINS, "")

    @property
    def system_schema(self) -> Path | None:
        """A data directory with a system schema that the installation brings along, as the npm package does."""
        return self._first(("server/data/mysql", "data/mysql", "data"), "mysql/user.frm")

    @property
    def _is_tree(self) -> bool:
        return (self.directory / _LOADER).exists() and self.directory != Path("/")

    def _program(self, *names: str) -> Path | None:
        for name in names:
            for place in _PROGRAMS:
                path = self.directory / place / name
                if path.is_file():
                    return path
        return None

    def _first(self, places: tuple[str, ...], contained: str) -> Path | None:
        return next(
            (self.directory / place for place in places if (self.directory / place / contained).exists()),
            None,
        )


@functools.cache
def stated_version(installation: OwnInstallation) -> tuple[str, str]:
    """Return the product, "mysql" or "mariadb", and the version that the server itself states. Raises: ServerUnavailable."""
    command = installation.command("mariadbd", "mysqld")
    text = run_tool([*command, "--no-defaults", "--version"], environment=installation.environment())
    match = re.search(r"Ver ([0-9.]+)(-MariaDB)?", text)
    if match is None:
        raise ServerUnavailable(f"{command[-1]} does not tell its version: {text.strip()}")
    return ("mariadb" if match[2] else "mysql"), match[1]
