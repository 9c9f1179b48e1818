"""The place of the servers, the account of their processes, and the lock that makes parallel installing safe."""

import contextlib
import fcntl
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path


class ServerUnavailable(Exception):
    """The error that a server cannot be installed or used here; the text is one sentence with what is missing."""


def root_directory() -> Path:
    """Return the directory that everything is installed under: $BINLOG_RELAY_SERVERS, else a default by user."""
    given = os.environ.get("BINLOG_RELAY_SERVERS")
    if given:
        return Path(given).absolute()
    if os.geteuid() == 0:
        return Path("/opt/binlog-relay-servers")
    return Path.home() / ".cache" / "binlog-relay-servers"


def server_account() -> pwd.struct_passwd:
    """Return the account of the server processes. MySQL and MariaDB refuse to run as root."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    for name in ("mysql", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise ServerUnavailable("no account to run servers as: running as root, and neither mysql nor nobody exists")


def unreachable_part(path: Path, account: pwd.struct_passwd) -> Path | None:
    """Return the first directory on the way to `path` that `account` may not enter, or None."""
    for directory in reversed([path, *path.parents]):
        status = directory.stat()
        if status.st_uid == account.pw_uid:
            allowed = status.st_mode & stat.S_IXUSR
        elif status.st_gid == account.pw_gid:
            allowed = status.st_mode & stat.S_IXGRP
        else:
            allowed = status.st_mode & stat.S_IXOTH
        if not allowed:
            return directory
    return None


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold an exclusive lock among all processes of this machine that use the same root directory."""
    root = root_directory()
    try:
        root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(root / f".{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise ServerUnavailable(
            f"cannot write under {root}: {error.strerror}; set BINLOG_RELAY_SERVERS to a directory of yours"
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
