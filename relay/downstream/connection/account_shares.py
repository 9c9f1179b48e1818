"""The limits of logged-in connections: each account has its share, and some places are kept for admins.

While there is room every login succeeds. When all places are taken, the account that has most connections loses one of them, the one
of its address that has most: the newcomer itself, or, if others have more than it, one of those. So neither an account whose password
was stolen nor an address locks out others.
"""

from typing import Final, Generic, NamedTuple, TypeVar

from protocol.auth.account import Account
from protocol.errors import AnsweredError, ErrorCode
from relay.fairness.fair_places import FairPlaces

T = TypeVar("T")


class AccountName(NamedTuple):
    """The key of an account that stays the same while its password and rights are changed."""

    user: str
    host: str


class AccountShares(Generic[T]):
    """The logged-in sessions. most: connections at once, of accounts that are not `admin`; admins may have `for_admins` more."""

    def __init__(self, most: int, for_admins: int) -> None:
        self._most: Final = most
        self._for_admins: Final = for_admins
        self._accounts: dict[AccountName, FairPlaces[T]] = {}
        self._names: dict[T, AccountName] = {}

    def __len__(self) -> int:
        return len(self._names)

    def count(self, account: Account) -> int:
        """Return the number of connections of the account."""
        return self._count(_name(account))

    def refusal(self, account: Account) -> AnsweredError | None:
        """Return the error if the account may have no more connections, whatever others have; None: it may."""
        if account.max_connections is None or self.count(account) < account.max_connections:
            return None
        text = f"User '{account.user}' has exceeded the 'max_user_connections' resource (current value: {account.max_connections})"
        return AnsweredError(ErrorCode.ER_USER_LIMIT_REACHED, text)

    def is_full(self, account: Account) -> bool:
        """Return whether another connection must end before the account gets a new one."""
        return len(self) >= self._most + (self._for_admins if account.admin else 0)

    def candidates(self, account: Account, address: str) -> list[T]:
        """Return the connections of which one may end for a connection of `account` from an address of this group, the oldest first.
        It is empty if the account, or the address among those of the account, has most itself.
        """
        name = _name(account)
        most = max(self._accounts, key=self._count, default=name)
        # A newcomer with as many as the others would be the next one to end: nothing would be gained.
        if self._count(name) + 1 < self._count(most):
            return list(self._accounts[most].of_largest())
        own = self._accounts.get(name)
        if own is None or own.count(address) + 1 >= own.most():
            return []
        return list(own.of_largest())

    def add(self, session: T, account: Account, address: str) -> None:
        """Add a session that has logged in. address: its address group."""
        name = _name(account)
        self._names[session] = name
        if name not in self._accounts:
            self._accounts[name] = FairPlaces()
        self._accounts[name].add(session, address)

    def discard(self, session: T) -> None:
        """Remove a session that has ended; one that had not logged in is ignored."""
        name = self._names.pop(session, None)
        if name is None:
            return
        places = self._accounts[name]
        places.discard(session)
        if not places:
            del self._accounts[name]

    def _count(self, name: AccountName) -> int:
        places = self._accounts.get(name)
        return len(places) if places is not None else 0


def _name(account: Account) -> AccountName:
    return AccountName(account.user, account.host.text)
