"""The system calls that create, change and open files, for all of the relay: they follow no link that they were not given.

Anyone who may write in the archive's directory may put a link, a FIFO or a device under any name there. So:

- Nothing is written or created through a link in the last part of a path.
- Below a directory that was given to `keep_within`, as an archive's is, no part of a path may be a link: each is opened in the one
  before it, so a directory that becomes a link in between leads nowhere either.
- A file that is created is new: what has its name is removed first. Mode and owner are changed of what was just created, by its
  descriptor.
- Only regular files are opened, and without waiting: a FIFO has no end, and may have no beginning.

Every function raises OSError as the system does; a link is ELOOP and what is no regular file EINVAL, each with a sentence.
"""

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

FILE_MODE: Final = 0o640
"""The mode of files in the archive, exports and reports: the group may read, backups for example."""
DIRECTORY_MODE: Final = 0o750
SECRET_MODE: Final = 0o600
"""The mode of files with passwords and other secrets."""
MOST_READ_BYTES: Final = 1 << 30
"""The limit for a file that is read as a whole: anyone who may write there could otherwise make it use any amount of memory, without
a byte of disk."""

_ROOTS: Final[set[str]] = set()
_MOST_LOOKS: Final = 8
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PASSED: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
_LINK: Final = "It is a symbolic link, and none is followed here: remove it, or put in its place what it names"
_NO_FILE: Final = "It is no regular file: look who put it there, and remove it"


def keep_within(root: Path) -> None:
    """Follow no link below `root` in this process from now on; `root` itself and what is above it may be one."""
    _ROOTS.add(os.path.abspath(root))


@contextlib.contextmanager
def _parent(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield a descriptor of the directory that `path` is in, and the last part of the path."""
    whole = os.path.abspath(path)
    directory, name = os.path.split(whole)
    root = _root_of(directory)
    if root is None:
        fd = os.open(directory, _DIRECTORY)
    else:
        fd = _opened_below(root, directory)
    try:
        yield fd, name
    except OSError as error:
        # The system got the last part only.
        if error.filename is not None and not os.path.isabs(os.fspath(error.filename)):
            error.filename = whole
        raise
    finally:
        os.close(fd)


def _root_of(directory: str) -> str | None:
    """Return the outermost of the roots that `directory` is, or is in."""
    found = None
    while True:
        if directory in _ROOTS:
            found = directory
        above = os.path.dirname(directory)
        if above == directory:
            return found
        directory = above


def _opened_below(root: str, directory: str) -> int:
    fd = os.open(root, _DIRECTORY)
    passed = root
    for part in directory[len(root) :].split("/"):
        if not part:
            continue
        passed = os.path.join(passed, part)
        try:
            following = os.open(part, _PASSED, dir_fd=fd)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP) and _is_link(part, fd):
                raise OSError(errno.ELOOP, _LINK, passed) from None
            raise OSError(error.errno, error.strerror, passed) from None
        finally:
            os.close(fd)
        fd = following
    return fd


def _is_link(name: str, directory: int) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    return False


def _open(path: str | os.PathLike[str], flags: int, mode: int = 0) -> int:
    """Open a regular file, without waiting and without following a link."""
    with _parent(path) as (directory, name):
        try:
            fd = os.open(name, flags | os.O_CLOEXEC | os.O_NONBLOCK, mode, dir_fd=directory)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise OSError(errno.ELOOP, _LINK, os.fspath(path)) from None
            if error.errno == errno.ENXIO:  # a FIFO without a reader, a socket
                raise OSError(errno.EINVAL, _NO_FILE, os.fspath(path)) from None
            raise
    kind = os.fstat(fd).st_mode
    if not stat.S_ISREG(kind):
        os.close(fd)
        if stat.S_ISDIR(kind):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        raise OSError(errno.EINVAL, _NO_FILE, os.fspath(path))
    return fd


# --- files -----------------------------------------------------------------------------------------------------------


def make_file(path: Path, mode: int = FILE_MODE) -> int:
    """Create an empty file, `mode` whatever the umask; what had its name is removed, except for a device: that is the host's. Return
    a read-write descriptor."""
    for _ in range(_MOST_LOOKS):
        _spare_device(path)
        remove_file(path)
        with contextlib.suppress(FileExistsError):
            return make_new_file(path, mode)
    raise OSError(errno.EEXIST, "Somebody else makes a file of that name again and again", os.fspath(path))


def _spare_device(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError), _parent(path) as (directory, name):
        kind = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        if stat.S_ISCHR(kind) or stat.S_ISBLK(kind):
            raise OSError(errno.EINVAL, _NO_FILE, os.fspath(path))


def make_new_file(path: Path, mode: int = FILE_MODE) -> int:
    """Do as `make_file`; an existing file stays. Raises: FileExistsError, for a link too."""
    fd = _open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    os.fchmod(fd, mode)
    return fd


def open_or_make(path: Path, mode: int = FILE_MODE) -> int:
    """Open the file, which is created empty if it is missing: of many processes that do so at once all have the same one.
    Read-write."""
    for _ in range(_MOST_LOOKS):
        with contextlib.suppress(FileExistsError):
            return make_new_file(path, mode)
        with contextlib.suppress(FileNotFoundError):
            return open_to_write(path)
    raise OSError(errno.EEXIST, "Somebody else makes and removes it again and again", os.fspath(path))


def open_to_write(path: Path) -> int:
    """Open an existing regular file, for reading and writing."""
    return _open(path, os.O_RDWR | os.O_NOFOLLOW)


def open_to_read(path: Path) -> int:
    """Open an existing regular file, for reading. Outside of all roots it may be a link: the user named it."""
    is_ours = _root_of(os.path.dirname(os.path.abspath(path))) is not None
    return _open(path, os.O_RDONLY | (os.O_NOFOLLOW if is_ours else 0))


def open_in_place(path: Path) -> int:
    """Do as `open_to_write`. Raises: OSError, also for a file that has another name: the bytes would be written there too."""
    fd = open_to_write(path)
    if os.fstat(fd).st_nlink > 1:
        os.close(fd)
        raise OSError(errno.EMLINK, "It has another name too, under which it would be changed", os.fspath(path))
    return fd


def regular_file(path: Path) -> os.stat_result:
    """Return the system's facts about a regular file, which is not opened. Raises: OSError, also for a link, a FIFO, a directory."""
    with _parent(path) as (directory, name):
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, _LINK, os.fspath(path))
    if stat.S_ISDIR(found.st_mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, _NO_FILE, os.fspath(path))
    return found


def part_from_other_names(path: Path) -> None:
    """Copy a regular file that has other names, and let the copy take this one; a missing file is ignored. No process has it open.

    A file with another name may be foreign: one that a hard link brought here, or a snapshot made by `cp -al`, stays as it is.
    """
    try:
        with _parent(path) as (directory, name):
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode) or found.st_nlink < 2:
        return
    temporary = path.with_name(f"{path.name}.alone.tmp")
    with open(open_to_read(path), "rb") as kept, open(make_file(temporary), "wb") as copy:
        shutil.copyfileobj(kept, copy, 1 << 20)
        copy.flush()
        os.fsync(copy.fileno())
    rename(temporary, path)
    sync_directory(path.parent)


def read_file(path: Path) -> bytes:
    """Return all of a regular file. Raises: OSError, also if it has more than MOST_READ_BYTES."""
    with open(open_to_read(path), "rb") as file:
        check_readable(os.fstat(file.fileno()).st_size, path)
        return file.read()


def check_readable(size: int, path: Path | None = None) -> None:
    """Raises: OSError, EFBIG, if a file of this size is not read as a whole."""
    if size > MOST_READ_BYTES:
        text = f"It has {size} bytes, and no file that is read as a whole has over {MOST_READ_BYTES >> 20} MiB"
        raise OSError(errno.EFBIG, text, *([] if path is None else [os.fspath(path)]))


def read_text(path: Path, encoding: str = "utf-8", errors: str = "strict") -> str:
    """Return the text of `read_file`. Raises also: UnicodeDecodeError."""
    return read_file(path).decode(encoding, errors)


def write_new_text(path: Path, text: str, mode: int = FILE_MODE) -> None:
    """Create a file with that text. Raises: FileExistsError, for a link too."""
    with open(make_new_file(path, mode), "w", encoding="utf-8") as file:
        file.write(text)


def write_named_text(path: Path, text: str) -> None:
    """Write to what the user named: a file, which is created or replaced, a pipe, a link to either."""
    with open(path, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, FILE_MODE)) as file:
        file.write(text)


def opened_named_text(path: Path, *, appends: bool = False) -> TextIO:
    """Open what the user named for writing, as `write_named_text` does; with `appends` what it contains stays."""
    return open(
        path, "a" if appends else "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, FILE_MODE)
    )


# --- names -----------------------------------------------------------------------------------------------------------


def remove_file(path: Path) -> None:
    """Remove a file, or a link in its place; a missing one is ignored."""
    with contextlib.suppress(FileNotFoundError), _parent(path) as (directory, name):
        os.unlink(name, dir_fd=directory)


def rename(source: Path, target: Path) -> None:
    """Replace `target` by `source`, neither of which is followed. Durable after `sync_directory`."""
    with _parent(source) as (old_directory, old), _parent(target) as (new_directory, new):
        try:
            os.rename(old, new, src_dir_fd=old_directory, dst_dir_fd=new_directory)
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.fspath(source), None, os.fspath(target)) from None


def link(path: Path, other: Path) -> None:
    """Give the file at `path` one more name, which must be free."""
    with _parent(path) as (old_directory, old), _parent(other) as (new_directory, new):
        os.link(old, new, src_dir_fd=old_directory, dst_dir_fd=new_directory, follow_symlinks=False)


# --- directories -----------------------------------------------------------------------------------------------------


def make_directory(path: Path, mode: int = DIRECTORY_MODE) -> list[Path]:
    """Create `path`, and what is missing above it, with `mode` whatever the umask; an existing one keeps its mode.

    Return what was created, outermost first. Raises: OSError, ELOOP if `path` is a link below a root.
    """
    whole = Path(os.path.abspath(path))
    missing: list[Path] = []
    for place in (whole, *whole.parents):
        if _is_directory(place):
            break
        missing.append(place)
    made = []
    for place in reversed(missing):
        with contextlib.suppress(FileExistsError):
            make_new_directory(place, mode)
            made.append(place)
    if not _is_directory(whole):
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(whole))
    return made


def make_named_directory(path: Path) -> None:
    """Create the directory that the user named, for others to read: with the process's own mode, and through links. An existing one
    is left alone."""
    path.mkdir(parents=True, exist_ok=True)


def make_new_directory(path: Path, mode: int = DIRECTORY_MODE) -> None:
    """Create `path` in an existing directory. Raises: FileExistsError, for a link too."""
    with _parent(path) as (directory, name):
        os.mkdir(name, mode, dir_fd=directory)
        fd = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
        try:
            os.fchmod(fd, mode)
        finally:
            os.close(fd)


def _is_directory(path: Path) -> bool:
    """Return whether it is a directory. Raises: OSError if a link below a root is met."""
    whole = str(path)
    root = _root_of(os.path.dirname(whole))
    try:
        if root is None:
            return stat.S_ISDIR(os.stat(whole).st_mode)
        with _parent(path) as (directory, name):
            kind = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISLNK(kind):
        raise OSError(errno.ELOOP, _LINK, whole)
    return stat.S_ISDIR(kind)


def open_directory(path: Path) -> int:
    """Open a directory, to be listed, locked or synced. Only below a root its last part must not be a link."""
    whole = os.path.abspath(path)
    root = _root_of(os.path.dirname(whole))
    if root is None:
        return os.open(whole, _DIRECTORY)
    with _parent(whole) as (directory, name):
        try:
            return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP) and _is_link(name, directory):
                raise OSError(errno.ELOOP, _LINK, whole) from None
            raise


def sync_directory(path: Path) -> None:
    """Return when renames, creations and removals in it are on stable storage."""
    fd = open_directory(path)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def remove_directory(path: Path) -> None:
    """Remove an empty directory."""
    with _parent(path) as (directory, name):
        os.rmdir(name, dir_fd=directory)


def remove_tree(path: Path) -> None:
    """Remove a directory and all that is in it; links in it are removed, not followed. Raises: OSError, for a link too."""
    with _parent(path) as (directory, name):
        _remove_tree(name, directory)


def _remove_tree(name: str, parent: int) -> None:
    fd = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        with os.scandir(fd) as entries:
            held = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for inner, is_directory in held:
            if is_directory:
                _remove_tree(inner, fd)
            else:
                os.unlink(inner, dir_fd=fd)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=parent)
