"""The defence against guessed passwords: answers that are delayed more after each failure, then no answers for a while."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from protocol.errors import AnsweredError, ErrorCode
from protocol.source_side.connection_terms import Ruling
from relay.fairness.address_group import address_group

# The delay for one address; the first guess is free, because people mistype.
_FIRST_HOLD_S: Final = 0.1
_LONGEST_HOLD_S: Final = 2.0
# A replica with an old password comes once a minute, and for days.
_FORGOTTEN_AFTER_S: Final = 600.0
_MAX_ADDRESSES: Final = 10_000
# The users of one address that have counts of their own; the rest share one.
_MAX_USERS: Final = 8


@dataclass(slots=True)
class _Failures:
    by_user: dict[int | None, int] = field(default_factory=dict)
    """The counts by the hash of the user's name, which may be long; None: of users beyond the first few."""
    last_at: float = 0.0
    blocked_until: float = 0.0

    @property
    def count(self) -> int:
        return sum(self.by_user.values())

    def add(self, user: str) -> None:
        key = hash(user) if hash(user) in self.by_user or len(self.by_user) < _MAX_USERS else None
        self.by_user[key] = self.by_user.get(key, 0) + 1

    def forgive(self, user: str) -> None:
        self.by_user.pop(hash(user), None)


class LoginGuard:
    """Counts failed logins by address. Times are those of one monotonic clock, in seconds.

    An address is blocked for `block_s` after `max_failures` refused logins in a row; 0: never. Only refused logins count: a balancer
    that connects as a health check is no guesser. Logged-in sessions stay. A right password forgets the failures of its own user
    only: an owner of one account could otherwise guess another's password without end.
    """

    def __init__(self, max_failures: int, block_s: float) -> None:
        self.max_failures = max_failures
        self.block_s = block_s
        # The oldest failure first; memory is bounded by forgetting it.
        self._failures: OrderedDict[str, _Failures] = OrderedDict()
        # The addresses with a successful login, the latest last.
        self._known: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._failures)

    def refusal(self, address: str, now: float) -> AnsweredError | None:
        """Return the error for a connection from a blocked address, in a server's words."""
        failures = self._failures.get(address_group(address))
        if failures is None or now >= failures.blocked_until:
            return None
        text = f"Host '{address}' is blocked because of many connection errors; unblock with 'mysqladmin flush-hosts'"
        return AnsweredError(ErrorCode.ER_HOST_IS_BLOCKED, text)

    def knows(self, address: str) -> bool:
        """Return whether a login from there has succeeded."""
        return address_group(address) in self._known

    def rule(self, address: str, now: float, *, user: str, accepted: bool) -> Ruling:
        """Count a verdict. A right password is answered as late as a wrong one, or the delay would reveal it; while the address is
        blocked, it is refused too: its connections may have been opened before.
        """
        key = address_group(address)
        failures = self._failures.get(key)
        if failures is not None and failures.blocked_until <= now and self._is_over(failures, now):
            del self._failures[key]
            failures = None
        blocked = self.refusal(address, now)
        hold_s = _hold_s(failures.count) if failures is not None else 0.0
        if blocked is not None:
            return Ruling(hold_s, blocked)
        if accepted:
            self._known[key] = None
            self._known.move_to_end(key)
            if len(self._known) > _MAX_ADDRESSES:
                self._known.popitem(last=False)
            if failures is not None:
                failures.forgive(user)
                if not failures.by_user:
                    del self._failures[key]
            return Ruling(hold_s)
        if failures is None:
            failures = self._failures.setdefault(key, _Failures())
        failures.add(user)
        failures.last_at = now
        self._failures.move_to_end(key)
        if self.max_failures and failures.count >= self.max_failures:
            failures.blocked_until = now + self.block_s
        while len(self._failures) > _MAX_ADDRESSES:
            self._failures.popitem(last=False)
        return Ruling(hold_s)

    def _is_over(self, failures: _Failures, now: float) -> bool:
        """Return whether the block has ended, or the failures are old."""
        return failures.blocked_until > 0 or now >= failures.last_at + _FORGOTTEN_AFTER_S

    def forget(self) -> None:
        """Unblock every address: FLUSH HOSTS."""
        self._failures.clear()


def _hold_s(failures: int) -> float:
    if failures == 0:
        return 0.0
    return min(_FIRST_HOLD_S * 2.0 ** min(failures - 1, 16), _LONGEST_HOLD_S)
