"""Which logged-in connections there may be: each account has its share, and some places are kept for admins.

While there is room everybody may come. With all places taken the account that has most connections loses one of them, and of its
connections the address that has most: the newcomer itself, or, where others have more than it, one of those. So neither an account
whose password was stolen nor an address locks out others.
"""

from typing import Final, Generic, NamedTuple, TypeVar

from protocol.auth.account import Account
from protocol.errors import AnsweredError, ErrorCode
from relay.fairness.fair_places import FairPlaces

T = TypeVar("T")


class AccountName(NamedTuple):
    """What an account is known by while its password and rights are changed."""

    user: str
    host: str


class AccountShares(Generic[T]):
    """Who is logged in. most: connections at once, of accounts that are not `admin`; those that are may have `for_admins` more."""

    def __init__(self, most: int, for_admins: int) -> None:
        self._most: Final = most
        self._for_admins: Final = for_admins
        self._accounts: dict[AccountName, FairPlaces[T]] = {}
        self._names: dict[T, AccountName] = {}

    def __len__(self) -> int:
        return len(self._names)

    def count(self, account: Account) -> int:
        """How many connections the account has."""
        return self._count(_name(account))

    def refusal(self, account: Account) -> AnsweredError | None:
        """Why the account may have no more connections, whoever else is there; None: it may."""
        if account.max_connections is None or self.count(account) < account.max_connections:
            return None
        text = f"User '{account.user}' has exceeded the 'max_user_connections' resource (current value: {account.max_connections})"
        return AnsweredError(ErrorCode.ER_USER_LIMIT_REACHED, text)

    def is_full(self, account: Account) -> bool:
        """Whether somebody has to go before another connection of the account comes."""
        return len(self) >= self._most + (self._for_admins if account.admin else 0)

    def candidates(self, account: Account, address: str) -> list[T]:
        """Who may have to go for a connection of `account` from an address of this group, the oldest first; empty: nobody, as the
        account, or the address among those of the account, has most itself."""
        name = _name(account)
        most = max(self._accounts, key=self._count, default=name)
        # A newcomer that had as many as the others would be the next one to go: nothing would be gained.
        if self._count(name) + 1 < self._count(most):
            return list(self._accounts[most].of_largest())
        own = self._accounts.get(name)
        if own is None or own.count(address) + 1 >= own.most():
            return []
        return list(own.of_largest())

    def add(self, session: T, account: Account, address: str) -> None:
        """It has logged in. address: its group."""
        name = _name(account)
        self._names[session] = name
        if name not in self._accounts:
            self._accounts[name] = FairPlaces()
        self._accounts[name].add(session, address)

    def discard(self, session: T) -> None:
        """It is gone; fine for one that had not logged in."""
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
