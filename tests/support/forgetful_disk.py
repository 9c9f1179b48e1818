"""A file layer over a real directory that can lose everything that was not synced, and can run full."""

import contextlib
import errno
import os
import random
import stat
from collections.abc import Sequence
from pathlib import Path

from relay.archive.storage.files import Buffer, FileLayer


class ForgetfulDisk(FileLayer):
    """A file layer that remembers the content of each file and the names in each directory at their last sync.

    `lose_power` restores that state: a file has its synced bytes, then a part of its unsynced ones, zeros, or none. `room_bytes` is how
    many more bytes can be written before ENOSPC (None: no limit). `sync_error` is an errno for syncs.
    """

    def __init__(self) -> None:
        self.paths: dict[int, Path] = {}
        self.synced: dict[int, bytes] = {}
        """The bytes at the last sync, by inode."""
        self.names_synced: dict[Path, dict[str, int]] = {}
        self.directory_inodes: set[int] = set()
        self.room_bytes: int | None = None
        self.sync_error: int | None = None
        self.write_in_pieces = False

    def create(self, path: Path) -> int:
        fd = super().create(path)
        self.synced.setdefault(os.fstat(fd).st_ino, b"")
        return fd

    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        data = b"".join(bytes(buffer) for buffer in buffers)
        if self.write_in_pieces and len(data) > 1:
            data = data[: len(data) // 2]
        if self.room_bytes is not None:
            if not self.room_bytes:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            data = data[: self.room_bytes]
            self.room_bytes -= len(data)
        return super().pwritev(fd, [data], offset)

    def sync_data(self, fd: int) -> None:
        if self.sync_error is not None:
            raise OSError(self.sync_error, os.strerror(self.sync_error))
        self.synced[os.fstat(fd).st_ino] = os.pread(fd, os.fstat(fd).st_size, 0)

    def sync_directory(self, directory: Path) -> None:
        with os.scandir(directory) as entries:
            found = {entry.name: entry.stat() for entry in entries if not entry.name.startswith("catalog")}
        self.names_synced[directory] = {name: status.st_ino for name, status in found.items()}
        self.directory_inodes |= {status.st_ino for status in found.values() if stat.S_ISDIR(status.st_mode)}

    def lose_power(self, directory: Path, survivor: Path, seed: int) -> None:
        """Write to `survivor` what a power cut would have left of `directory`; SQLite's files are not copied.

        This includes directories, also those whose removal was not synced.
        """
        chance = random.Random(seed)
        survivor.mkdir()
        now = {}
        with contextlib.suppress(FileNotFoundError), os.scandir(directory) as entries:
            for entry in entries:
                # Another thread may give a file its name meanwhile: opened, it is the same file under any.
                with contextlib.suppress(FileNotFoundError, IsADirectoryError), open(entry.path, "rb") as file:
                    now[os.fstat(file.fileno()).st_ino] = file.read()
        durable = self.names_synced.get(directory, {})
        for name, inode in durable.items():
            if inode in self.directory_inodes:
                self.lose_power(directory / name, survivor / name, seed)
                continue
            kept = self.synced.get(inode, b"")
            current = now.get(inode, kept)
            if current[: len(kept)] == kept and len(current) > len(kept):
                fate = chance.choice(["lost", "part", "zeros", "holes"])
                tail = current[len(kept) :]
                cut = chance.randrange(len(tail) + 1)
                if fate == "part":
                    kept += tail[:cut]
                elif fate == "zeros":
                    kept += tail[:cut] + bytes(len(tail) - cut)
                elif fate == "holes":
                    kept += bytes(cut) + tail[cut:]
            (survivor / name).write_bytes(kept)
