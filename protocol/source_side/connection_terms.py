"""What one replica's connection is held to: its limits, and how it logs in."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from protocol.auth.account import Account
from protocol.auth.accounts import Accounts
from protocol.errors import AnsweredError
from protocol.statements import SourceFacts

# Before the login anybody may send; a login with all its attributes stays far below (attributes alone are capped at
# 64 KiB by real servers).
LOGIN_LIMIT_BYTES: Final = 65536
COMMAND_LIMIT_BYTES: Final = 1 << 20
# A replica's set of GTIDs: 16 MB for a million intervals.
GTID_DUMP_LIMIT_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one connection. Times in seconds; `command_wait_s` is the server's wait_timeout."""

    login_bytes: int = LOGIN_LIMIT_BYTES
    command_bytes: int = COMMAND_LIMIT_BYTES
    gtid_dump_bytes: int = GTID_DUMP_LIMIT_BYTES
    login_wait_s: float = 10.0
    command_wait_s: float = 28800.0


@dataclass(frozen=True, slots=True)
class Ruling:
    """What becomes of a verdict: how long its answer is held, and what is answered instead of it, for which `reason` (for logs).

    facts: the source as the account sees it from its login on; None: as it was greeted.
    """

    hold_s: float = 0.0
    instead: AnsweredError | None = None
    reason: str = "the address is blocked"
    facts: SourceFacts | None = None


@dataclass(frozen=True, slots=True)
class LoginTerms:
    """How a peer logs in.

    random_bytes(n): unpredictable, for the scramble. offer_tls: in the greeting. rule(account): asked once a verdict is
    reached, with the account that may log in, None for a refusal; without a rule each is given at once. accounts_now(): the
    accounts, asked when the login packet comes and when the verdict is given; without it `accounts`, those of the greeting.
    """

    accounts: Accounts
    random_bytes: Callable[[int], bytes]
    offer_tls: bool = False
    rule: Callable[[Account | None], Ruling] | None = None
    accounts_now: Callable[[], Accounts] | None = None

    def now(self) -> Accounts:
        """Return the accounts as they are."""
        return self.accounts if self.accounts_now is None else self.accounts_now()


@dataclass(frozen=True, slots=True)
class TurnTime:
    """How long a turn of one connection may last: `clock` and `length_s` in seconds. Without a clock it ends by counts.

    has_time(): whether a command may be answered now; if not, it waits for a turn.
    """

    clock: Callable[[], float] = lambda: 0.0
    length_s: Callable[[], float] = lambda: 0.005
    has_time: Callable[[], bool] = lambda: True
