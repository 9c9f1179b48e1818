"""The TCP ports of a process, by /proc: in its own network, and as far as this user may see. Blocking."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_LISTENS: Final = "0A"
_LOCAL, _STATE, _INODE = 1, 3, 9


@dataclass(frozen=True, slots=True)
class ProcessSockets:
    """listening: the ports on which it listens. connected: the local ports of its other connections."""

    listening: frozenset[int]
    connected: frozenset[int]


def process_sockets(pid: int) -> ProcessSockets | None:
    """Return the ports; None: they are not visible from here."""
    try:
        held = set()
        for entry in os.scandir(f"/proc/{pid}/fd"):
            target = os.readlink(entry.path)
            if target.startswith("socket:["):
                held.add(target[len("socket:[") : -1])
        rows = [
            line.split()
            for name in ("tcp", "tcp6")
            for line in Path(f"/proc/{pid}/net/{name}").read_text(encoding="ascii").splitlines()[1:]
        ]
    except OSError:
        return None
    ours = [
        (int(row[_LOCAL].rpartition(":")[2], 16), row[_STATE])
        for row in rows
        if len(row) > _INODE and row[_INODE] in held
    ]
    return ProcessSockets(
        frozenset(port for port, state in ours if state == _LISTENS),
        frozenset(port for port, state in ours if state != _LISTENS),
    )
