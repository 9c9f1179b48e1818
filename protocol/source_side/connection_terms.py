"""The terms of one replica's connection: its limits, and how it logs in."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from protocol.auth.account import Account
from protocol.auth.accounts import Accounts
from protocol.errors import AnsweredError
from protocol.statements import SourceFacts

# Before the login anybody may send; a login with all its attributes stays far below (real servers limit attributes alone to 64 KiB).
LOGIN_LIMIT_BYTES: Final = 65536
COMMAND_LIMIT_BYTES: Final = 1 << 20
# The size of a replica's set of GTIDs: 16 MB for a million intervals.
GTID_DUMP_LIMIT_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one connection. Times are in seconds; `command_wait_s` is the server's wait_timeout."""

    login_bytes: int = LOGIN_LIMIT_BYTES
    command_bytes: int = COMMAND_LIMIT_BYTES
    gtid_dump_bytes: int = GTID_DUMP_LIMIT_BYTES
    login_wait_s: float = 10.0
    command_wait_s: float = 28800.0


@dataclass(frozen=True, slots=True)
class Ruling:
    """The ruling on a verdict: how long its answer is held, and what is answered instead of it, for which `reason` (for logs).

    `facts` describe the source as the account sees it from its login on; None: as in the greeting.
    """

    hold_s: float = 0.0
    instead: AnsweredError | None = None
    reason: str = "the address is blocked"
    facts: SourceFacts | None = None


@dataclass(frozen=True, slots=True)
class LoginTerms:
    """The terms on which a peer logs in.

    random_bytes(n) returns unpredictable bytes for the scramble. `offer_tls` offers TLS in the greeting. rule(account) is called
    after a verdict, with the account that may log in, None for a refusal; without a rule each verdict is given at once.
    accounts_now() returns the accounts when the login packet comes and when the verdict is given; without it `accounts`, those of the
    greeting, apply.
    """

    accounts: Accounts
    random_bytes: Callable[[int], bytes]
    offer_tls: bool = False
    rule: Callable[[Account | None], Ruling] | None = None
    accounts_now: Callable[[], Accounts] | None = None

    def now(self) -> Accounts:
        """Return the accounts at this moment."""
        return self.accounts if self.accounts_now is None else self.accounts_now()


@dataclass(frozen=True, slots=True)
class TurnTime:
    """The limit of a turn of one connection: `clock` and `length_s` are in seconds. Without a clock it ends by counts.

    has_time() returns whether a command may be answered now; if not, it waits for a turn.
    """

    clock: Callable[[], float] = lambda: 0.0
    length_s: Callable[[], float] = lambda: 0.005
    has_time: Callable[[], bool] = lambda: True
