"""How replicas are listened to."""

from dataclasses import dataclass, field

from relay.downstream.connection.presentation import Presentation
from relay.process.certificates import ServerTls


@dataclass(frozen=True, slots=True)
class ListenOptions:
    """The configuration's `listen`, as far as it is not the address.

    position_wait_s: how long a request for a position that may still arrive is held. resumes_all: any replica may go on inside a
    transaction, also one that was not being sent it. presentation: as whom the relay shows
    itself. max_connections: at once; half of them at most have not logged in. backlog: those that the system accepts before the
    event loop looks at them. max_login_failures, login_block_s: see `LoginGuard`.
    """

    position_wait_s: float = 10.0
    resumes_all: bool = False
    max_connections: int = 500
    backlog: int = 512
    handshake_timeout_s: float = 10.0
    presentation: Presentation = field(default_factory=Presentation)
    tls: ServerTls | None = None
    max_login_failures: int = 20
    login_block_s: float = 60.0
