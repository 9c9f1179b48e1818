"""Counts of what clients did, as a server's status variables count it."""

import time
from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Traffic:
    """Since the relay's start, unless something else is said. Bytes are those of the protocol, TLS not counted."""

    connections: int = 0
    """Connections that came, refused ones included."""
    aborted_connects: int = 0
    """Ended before a login, or by a failed one."""
    aborted_clients: int = 0
    """Ended after the login without a goodbye."""
    bytes_received: int = 0
    bytes_sent: int = 0
    """Of dumps, only what those have sent that are over."""
    commands: int = 0
    statements: int = 0
    logins: int = 0
    login_failures: int = 0
    """Logins that were refused."""
    turned_away: Counter[str] = field(default_factory=Counter)
    """Connections that got an error in place of a greeting, by why: "blocked", "too_many", "shutdown", "other"."""
    dumps_begun: int = 0
    dumps_refused: Counter[int] = field(default_factory=Counter)
    """Requests for binlogs that were answered with an error, by its number."""
    most_connections: int = 0
    """At one time, since FLUSH STATUS."""
    started_at: float = field(default_factory=time.monotonic)
    flushed_at: float = field(default_factory=time.monotonic)

    def flush(self, connections_now: int) -> None:
        """FLUSH STATUS: begins anew with what servers begin anew with."""
        self.most_connections = connections_now
        self.flushed_at = time.monotonic()
