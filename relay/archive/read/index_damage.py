"""The damaged NAME.gtx files that were logged: thousands of reconnecting replicas meet the same one, each with its request."""

import threading
from pathlib import Path
from typing import Final

import structlog

from relay.archive.gtids.gtid_recorder import gtx_path

log = structlog.get_logger()

_MOST_FILES: Final = 4096
"""The most files of an archive that are named; each costs some 200 bytes."""
_NOTE: Final = "replicas that ask by GTID wait until the file itself was searched"
_ADVICE: Final = "Stop the relay and run `archive rebuild`."


class IndexDamage:
    """Logs once for each file, and for each content of it, that it is damaged. From any thread.

    most_files: beyond so many files no more are named; that is logged once too.
    """

    def __init__(self, most_files: int = _MOST_FILES) -> None:
        self._most_files = most_files
        self._reported: dict[Path, tuple[int, int, int]] = {}
        """The state of the file when it was reported: inode, size in bytes, time of its last change in ns."""
        self._rest_reported = False
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._reported)

    def report(self, binlog: Path, why: str) -> None:
        """Report that the NAME.gtx of `binlog` cannot be believed. Blocking: it reads the file's metadata, not its content."""
        path = gtx_path(binlog)
        try:
            facts = path.stat()
        except OSError:
            return  # it was purged or rebuilt since
        like = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
        with self._lock:
            if self._reported.get(path) == like:
                return
            is_full = path not in self._reported and len(self._reported) >= self._most_files
            if is_full and self._rest_reported:
                return
            if is_full:
                self._rest_reported = True
            else:
                self._reported[path] = like
        if is_full:
            what = f"more than the {self._most_files} that were named; no more are: `archive verify --deep` names all"
            log.warning("gtid_indexes_damaged", what=what, note=_NOTE, advice=_ADVICE)
        else:
            log.warning("gtid_index_damaged", file=str(path), why=why, note=_NOTE, advice=_ADVICE)
