"""A login of the relay."""

from dataclasses import dataclass, field
from typing import Final, Literal, Self

from protocol.auth.authenticator import Plugin
from protocol.auth.credentials import Credentials
from protocol.auth.host_pattern import HostPattern

Markers = Literal["tbm", "edges", "strip"]
ANY_HOST: Final = HostPattern.parse("%")


@dataclass(frozen=True, slots=True)
class Account:
    """An account: who may log in, from where, how, and with which rights.

    `markers` are the boundary markers that it is sent. `admin` allows it to stop, purge and kill. `plugin` is the only plugin it logs
    in with; None: every one that its credentials allow. `view` names the view that it sees in place of the source's binlogs.
    `max_connections` limits its simultaneous connections; None: only the total limit applies.
    """

    user: str
    credentials: Credentials = field(repr=False)
    markers: Markers = "tbm"
    host: HostPattern = ANY_HOST
    admin: bool = False
    require_tls: bool = False
    require_client_cert: bool = False
    plugin: Plugin | None = None
    view: str | None = None
    max_connections: int | None = None

    def __post_init__(self) -> None:
        if not self.plugins:
            raise ValueError(f"account {self.user!r}: no plugin can check its credentials")

    @classmethod
    def with_password(cls, user: str, password: str, markers: Markers = "tbm", *, admin: bool = False) -> Self:
        """Make an account that every plugin can check."""
        return cls(user, Credentials.from_password(password), markers, admin=admin)

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """The plugins that it can log in with, the preferred one first."""
        able = self.credentials.plugins
        if self.plugin is None:
            return able
        return (self.plugin,) if self.plugin in able else ()
