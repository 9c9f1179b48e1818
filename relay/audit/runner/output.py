"""The output directory of an audit: complete, or absent.

Everything is written beside it first, synced, and renamed. The next run to the same place removes what a killed run left.
"""

import json
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from relay.commands.outcome import CommandFailed
from relay.disk.file_calls import make_new_directory, remove_directory, remove_tree, rename, write_new_text

SUMMARY: Final = "audit.json"
REPORT: Final = "report.html"
INDEX: Final = "index.html"
_PARTIAL: Final = ".partial-"


def check_output(out: Path, *, replace: bool) -> None:
    """Refuse, before any work, an output that could not be written in the end. Raises: CommandFailed."""
    if out.exists() or out.is_symlink():
        if not out.is_dir():
            raise CommandFailed(f"{out} is there, and is no directory.")
        names = os.listdir(out)
        if names and SUMMARY not in names:
            raise CommandFailed(
                f"{out} holds other things than an audit; nothing in it is touched. Name a new directory."
            )
        if names and not replace:
            raise CommandFailed(f"{out} holds an audit already. --replace writes it again, or name another directory.")
    parent = out.resolve().parent
    if not parent.is_dir():
        raise CommandFailed(f"there is no directory {parent} for {out.name} to be made in.")
    probe = parent / f".{out.name}{_PARTIAL}{socket.gethostname()}-{os.getpid()}-probe"
    try:
        make_new_directory(probe)
        remove_directory(probe)
    except OSError as error:
        raise CommandFailed(f"nothing can be made in {parent}: {error.strerror}.") from None


@contextmanager
def written_whole(out: Path, *, replace: bool = True) -> Iterator[Path]:
    """Yield a directory to write to; it becomes `out` if the block succeeds, and is removed otherwise.

    With `replace` an existing audit at `out` is overwritten. Raises: CommandFailed, OSError.
    """
    out = out.resolve()  # The target of a link is created, not the link
    _clear_away(out)
    partial = out.parent / f".{out.name}{_PARTIAL}{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
    make_new_directory(partial)
    try:
        yield partial
        _sync_tree(partial)
        _put(partial, out, replace)
    except BaseException:
        _remove(partial)
        raise
    _sync(out.parent)


def write_text(path: Path, text: str) -> None:
    """Write a new file that its group may read."""
    write_new_text(path, text)


def write_summary(directory: Path, summary: dict[str, object]) -> None:
    """Write the summary for programs; its name marks a directory as an audit's."""
    write_text(directory / SUMMARY, json.dumps(summary, indent=2) + "\n")


def _put(partial: Path, out: Path, replace: bool) -> None:
    if not out.exists() or not os.listdir(out):
        rename(partial, out)  # This also replaces an empty directory
        return
    if SUMMARY not in os.listdir(out):
        raise CommandFailed(f"{out} was filled by somebody else while the audit ran; nothing in it was touched.")
    if not replace:
        raise CommandFailed(f"another audit was written to {out} while this one ran; nothing in it was touched.")
    old = partial.with_name(f"{partial.name}.old")
    rename(out, old)
    rename(partial, out)
    _remove(old)


def _clear_away(out: Path) -> None:
    """Remove what dead runs of this machine left; an audit that they had set aside is restored."""
    mark = f".{out.name}{_PARTIAL}{socket.gethostname()}-"
    for path in out.parent.iterdir():
        if not path.name.startswith(mark):
            continue
        process = path.name.removeprefix(mark).partition("-")[0]
        if process.isdecimal() and _lives(int(process)):
            continue
        if path.name.endswith(".old") and not out.exists():
            rename(path, out)
        else:
            _remove(path)


def _remove(directory: Path) -> None:
    with suppress(OSError):
        remove_tree(directory)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _sync_tree(directory: Path) -> None:
    for path, _, names in os.walk(directory, topdown=False):
        for name in names:
            _sync(Path(path, name))
        _sync(Path(path))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
