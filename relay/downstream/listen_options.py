"""The options of the replica listener."""

from dataclasses import dataclass, field

from relay.downstream.connection.presentation import Presentation
from relay.process.certificates import ServerTls
from relay.process.memory_budget import DEFAULT_MEMORY_BYTES


@dataclass(frozen=True, slots=True)
class ListenOptions:
    """The configuration's `listen`, as far as it is not the address.

    position_wait_s: how long a request for a position that may still arrive is held. resumes_all: any replica may continue inside a
    transaction, also one that was not receiving it. presentation: the identity that the relay shows. max_connections: at once, of
    those that have logged in; admin_connections: so many more of accounts that are `admin`. max_unauthenticated: at once, of those
    that have not. backlog: those that the system accepts before the event loop looks at them. max_login_failures, login_block_s: see
    `LoginGuard`. memory_bytes: see `MemoryBudget`. decoy_secret: see `Accounts`; None: one for this process.
    """

    position_wait_s: float = 10.0
    resumes_all: bool = False
    max_connections: int = 500
    admin_connections: int = 10
    max_unauthenticated: int = 2000
    backlog: int = 512
    handshake_timeout_s: float = 10.0
    presentation: Presentation = field(default_factory=Presentation)
    tls: ServerTls | None = None
    max_login_failures: int = 20
    login_block_s: float = 60.0
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    decoy_secret: bytes | None = field(default=None, repr=False)
