"""A port for a server that a test starts."""

import random
import socket


def free_port() -> int:
    """A free port on 127.0.0.1, below the range from which outgoing connections take theirs."""
    for port in random.sample(range(12000, 19000), 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port on 127.0.0.1 between 12000 and 19000")
