"""Counts of what clients did, as a server's status variables count it."""

import time
from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Traffic:
    """Counts since the relay's start, unless stated otherwise. Bytes are those of the protocol without TLS."""

    connections: int = 0
    """Connections that arrived, including refused ones."""
    aborted_connects: int = 0
    """Connections that ended before a login, or by a failed one."""
    aborted_clients: int = 0
    """Connections that ended after the login without a goodbye."""
    bytes_received: int = 0
    bytes_sent: int = 0
    """The bytes that were sent; those of dumps are added when they end."""
    commands: int = 0
    statements: int = 0
    logins: int = 0
    login_failures: int = 0
    """Refused logins."""
    turned_away: Counter[str] = field(default_factory=Counter)
    """Connections that got an error instead of a greeting, by reason: "blocked", "too_many", "shutdown", "other"."""
    dumps_begun: int = 0
    dumps_refused: Counter[int] = field(default_factory=Counter)
    """Requests for binlogs that were answered with an error, by its number."""
    most_connections: int = 0
    """The most connections at one time, since FLUSH STATUS."""
    started_at: float = field(default_factory=time.monotonic)
    flushed_at: float = field(default_factory=time.monotonic)

    def flush(self, connections_now: int) -> None:
        """Reset what FLUSH STATUS resets in servers."""
        self.most_connections = connections_now
        self.flushed_at = time.monotonic()
