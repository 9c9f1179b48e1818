"""A port for a server that a test starts."""

import contextlib
import random
import socket
from typing import Final

# Below the ports of the real servers, and below the range from which outgoing connections take theirs.
_PORTS: Final = range(12000, 19000)
# So many are a process's own, and are used again, the one that was given away longest ago first: who has got the
# newer ones may not listen yet.
_KEPT: Final = 128
_reserved: dict[int, socket.socket] = {}


def free_port() -> int:
    """Return a free port on 127.0.0.1 that no other process of these tests gets, also while it has no listener.

    Tests run in parallel, and a relay that was killed comes back to its port: another one must not use it meanwhile.
    """
    own = list(_reserved)
    others = random.sample(_PORTS, 500)
    for port in (*own, *others) if len(own) >= _KEPT else (*others, *own):
        if _is_free(port) and _reserve(port):
            _reserved[port] = _reserved.pop(port)
            return port
    raise RuntimeError(f"no free port on 127.0.0.1 between {_PORTS.start} and {_PORTS.stop}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.bind(("127.0.0.1", port))
        return True
    return False


def _reserve(port: int) -> bool:
    """Reserve it until this process ends. The name is abstract and leaves nothing."""
    if port in _reserved:
        return True
    lock = socket.socket(socket.AF_UNIX)
    try:
        lock.bind(f"\0binlog-relay-test-port-{port}")
    except OSError:
        lock.close()
        return False
    _reserved[port] = lock
    return True
