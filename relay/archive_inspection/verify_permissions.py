"""The check that the owner of the archive's directory, which is the relay's user, can use what is in it.

It goes by owner and mode, not by trying: root, who may run the check, can read everything.
"""

import grp
import os
import pwd
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from protocol.position import is_binlog_name
from relay.archive.storage.archive_finding import ArchiveFinding
from relay.archive.storage.files import BESIDE_SUFFIXES, CATALOG_NAME, OWN_NAMES

_READ_WRITE: Final = 6


def check_permissions(directory: Path, names: Iterable[str]) -> Iterator[ArchiveFinding]:
    """Yield a finding for each of the archive's own files among `names` that the directory's owner could not read or write."""
    place = directory.stat()
    owner = _user(place.st_uid)
    if place.st_mode & stat.S_IRWXU != stat.S_IRWXU:
        mode = stat.S_IMODE(place.st_mode)
        yield ArchiveFinding(
            ".", None, f"has mode {mode:04o}: {owner}, its owner, cannot use it. `chmod 0750` mends it."
        )
    groups = _groups(place)
    for name in sorted(names):
        if not _is_own(name):
            continue
        try:
            found = os.lstat(directory / name)
        except FileNotFoundError:
            continue  # purged meanwhile
        if not _may_read_and_write(found, place.st_uid, groups):
            yield ArchiveFinding(
                name,
                None,
                f"belongs to {_user(found.st_uid)} and has mode {stat.S_IMODE(found.st_mode):04o}: {owner}, to whom the "
                f"archive's directory belongs, cannot read and write it. `chown {owner}` and `chmod 0640` mend it.",
            )


def _is_own(name: str) -> bool:
    base = next((name.removesuffix(suffix) for suffix in BESIDE_SUFFIXES if name.endswith(suffix)), name)
    return name in OWN_NAMES or is_binlog_name(base) or name in (f"{CATALOG_NAME}-wal", f"{CATALOG_NAME}-shm")


def _may_read_and_write(found: os.stat_result, uid: int, groups: frozenset[int]) -> bool:
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid == uid:
        mode >>= 6
    elif found.st_gid in groups:
        mode >>= 3
    return mode & _READ_WRITE == _READ_WRITE


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _groups(place: os.stat_result) -> frozenset[int]:
    """Return the groups of the directory's owner."""
    try:
        entry = pwd.getpwuid(place.st_uid)
    except KeyError:
        return frozenset({place.st_gid})
    members = {group.gr_gid for group in grp.getgrall() if entry.pw_name in group.gr_mem}
    return frozenset({entry.pw_gid, *members})
