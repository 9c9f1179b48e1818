"""The options of the replica listener."""

from dataclasses import dataclass, field

from relay.downstream.connection.presentation import Presentation
from relay.process.certificates import ServerTls
from relay.process.memory_budget import DEFAULT_MEMORY_BYTES


@dataclass(frozen=True, slots=True)
class ListenOptions:
    """The configuration's `listen`, without the address."""

    position_wait_s: float = 10.0
    """The time for which a request for a position that may still arrive is held."""
    resumes_all: bool = False
    """True if any replica may continue inside a transaction, also one that was not receiving it."""
    max_connections: int = 500
    """The most connections at once that have logged in."""
    admin_connections: int = 10
    """So many more for accounts that are `admin`."""
    max_unauthenticated: int = 2000
    """The most connections at once that have not logged in."""
    backlog: int = 512
    """The connections that the system accepts before the event loop looks at them."""
    handshake_timeout_s: float = 10.0
    presentation: Presentation = field(default_factory=Presentation)
    """The identity that the relay shows."""
    tls: ServerTls | None = None
    max_login_failures: int = 20
    login_block_s: float = 60.0
    """A limit of `LoginGuard`, like `max_login_failures`."""
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    """The limit of `MemoryBudget`."""
    decoy_secret: bytes | None = field(default=None, repr=False)
    """The secret of `Accounts`; None: one for this process."""
