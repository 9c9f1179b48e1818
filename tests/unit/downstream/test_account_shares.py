"""Who goes when all places of logged-in connections are taken: one of the account, and of its address, that has most."""

from protocol.auth.account import Account
from protocol.auth.credentials import Credentials
from protocol.errors import ErrorCode
from relay.downstream.connection.account_shares import AccountShares

REPLICA = Account.with_password("replica", "x")
MONITOR = Account.with_password("monitor", "x")
DBA = Account.with_password("dba", "x", admin=True)
FEW = Account("few", Credentials.from_password("x"), max_connections=2)


def filled(*connections: tuple[str, Account, str], most: int = 6) -> AccountShares[str]:
    shares = AccountShares[str](most, for_admins=1)
    for name, account, address in connections:
        shares.add(name, account, address)
    return shares


def test_an_admin_has_places_of_its_own() -> None:
    shares = filled(*((str(number), REPLICA, "1") for number in range(6)))
    assert (shares.is_full(REPLICA), shares.is_full(MONITOR), shares.is_full(DBA)) == (True, True, False)
    shares.add("admin", DBA, "2")
    assert shares.is_full(DBA)


def test_an_account_with_fewer_gets_a_place_of_the_one_that_has_most() -> None:
    shares = filled(*((str(number), REPLICA, "1") for number in range(5)), ("m", MONITOR, "2"))
    assert shares.candidates(MONITOR, "2") == ["0", "1", "2", "3", "4"]
    # The account that has most has nothing to gain by connections from the same address.
    assert shares.candidates(REPLICA, "1") == []


def test_with_equal_shares_the_newcomer_goes() -> None:
    shares = filled(("r1", REPLICA, "1"), ("r2", REPLICA, "1"), ("m1", MONITOR, "1"), ("m2", MONITOR, "1"), most=4)
    assert shares.candidates(MONITOR, "1") == []
    shares = filled(("r1", REPLICA, "1"), ("r2", REPLICA, "1"), ("m1", MONITOR, "1"), most=3)
    assert shares.candidates(MONITOR, "1") == []


def test_of_an_account_whose_password_was_stolen_other_addresses_get_in() -> None:
    shares = filled(*((str(number), REPLICA, "thief") for number in range(5)), ("r", REPLICA, "replica"))
    assert shares.candidates(REPLICA, "another") == ["0", "1", "2", "3", "4"]
    assert shares.candidates(REPLICA, "replica") == ["0", "1", "2", "3", "4"]
    assert shares.candidates(REPLICA, "thief") == []


def test_an_account_with_a_limit_of_its_own_is_told_so() -> None:
    shares = filled(("a", FEW, "1"))
    assert shares.refusal(FEW) is None
    shares.add("b", FEW, "2")
    refused = shares.refusal(FEW)
    assert refused is not None
    assert refused.number == ErrorCode.ER_USER_LIMIT_REACHED
    assert refused.what == "User 'few' has exceeded the 'max_user_connections' resource (current value: 2)"
    assert shares.refusal(REPLICA) is None


def test_who_is_gone_takes_nothing() -> None:
    shares = filled(("a", REPLICA, "1"))
    shares.discard("a")
    shares.discard("never")
    assert (len(shares), shares.count(REPLICA)) == (0, 0)
