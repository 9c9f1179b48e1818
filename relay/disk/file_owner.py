"""A command that root runs works as the user to whom the archive belongs: the files that it creates there are that user's, and a link
or a name that this user put there leads only to what this user may change."""

import contextlib
import os
import pwd
import stat
import sys
from pathlib import Path

from protocol.errors import ExitCode, RelayError
from relay.disk.kept_capability import keep_rights, read_all


class NotTheOwner(RelayError):
    """This process cannot become the archive's owner. `str()` says what to type."""

    exit_code = ExitCode.WRONG_USE


def become_owner(directory: Path, top: Path, *, reads_all: bool) -> str | None:
    """Make this process, if it is root's and the archive another user's, one of that user for good; return that user's name.

    directory: the archive's, in `top`, which counts if that is missing. reads_all: reading stays root's, such as of passwords and of
    the program itself. Call it before there are threads, and before anything is created. None: nothing was to do. Raises:
    NotTheOwner.
    """
    if os.geteuid() != 0:
        return None
    found = _owned(directory, top)
    if found is None or found.st_uid == 0:
        return None
    uid, gid = found.st_uid, found.st_gid
    entry = None
    with contextlib.suppress(KeyError):
        entry = pwd.getpwuid(uid)
    name = f"user {uid}" if entry is None else entry.pw_name
    typed = (
        f"setpriv --reuid={uid} --regid={gid} --clear-groups binlog-relay ..."
        if entry is None
        else f"runuser -u {entry.pw_name} -- binlog-relay ..."
    )
    text = f"{directory} belongs to {name}, and root changes nothing there. Run the command as that user: {typed}"
    gid = gid if entry is None else entry.pw_gid
    try:
        if entry is None:
            os.setgroups([gid])
        else:
            os.initgroups(entry.pw_name, gid)
        os.setresgid(gid, gid, gid)
        if reads_all:
            keep_rights()
        os.setresuid(uid, uid, uid)
        if reads_all:
            read_all()
    except PermissionError as error:
        raise NotTheOwner(f"{text} (This root may not become another user: {error.strerror}.)") from None
    # Modules are imported when they are needed.
    for place in (Path(__file__), Path(os.__file__), Path(sys.prefix)):
        if not os.access(place, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
            raise NotTheOwner(
                f"{directory} belongs to {name}, who cannot read {place}, a part of the program. {_INSTALL}"
            )
    os.environ["HOME"] = "/" if entry is None else entry.pw_dir
    for variable in ("USER", "LOGNAME"):
        if variable in os.environ:
            os.environ[variable] = name
    return name


_INSTALL = "Install it where every user can read it, such as /opt/binlog-relay."


def _owned(directory: Path, top: Path) -> os.stat_result | None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        found = os.lstat(directory)
        if stat.S_ISDIR(found.st_mode):
            return found
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return os.stat(top)
    return None
