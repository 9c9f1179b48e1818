"""Which peers an account is for, and which of several accounts is the one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.auth.account import Account
from protocol.auth.accounts import Accounts
from protocol.auth.credentials import Credentials
from protocol.auth.host_pattern import HostPattern, plain_address


@pytest.mark.parametrize(
    ("pattern", "peer", "matches"),
    [
        ("%", "192.0.2.1", True),
        ("%", "2001:db8::1", True),
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.10", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("2001:DB8:0::1", "2001:db8::1", True),
        ("192.0.2.%", "192.0.2.77", True),
        ("192.0.2.%", "192.0.20.77", False),
        ("192.0.2._", "192.0.2.7", True),
        ("192.0.2._", "192.0.2.77", False),
        ("192.0.2._", "192.0.2.", False),
        ("2001:db8:%", "2001:db8::1", True),
        ("2001:DB8:%", "2001:db8::1", True),
        ("10.%", "2001:db8::10", False),
        ("10.0.0.0/255.255.255.0", "10.0.0.77", True),
        ("10.0.0.0/255.255.255.0", "10.0.1.77", False),
        ("10.0.0.0/24", "10.0.0.77", True),
        ("10.0.0.0/24", "::ffff:10.0.0.77", True),
        ("10.0.0.0/24", "2001:db8::1", False),
        ("0.0.0.0/0", "192.0.2.1", True),
        ("2001:db8::/32", "2001:db8:1::5", True),
        ("2001:db8::/32", "2001:db9::5", False),
        ("localhost", "127.0.0.1", True),
        ("localhost", "127.0.1.1", True),
        ("localhost", "::1", True),
        ("localhost", "192.0.2.1", False),
        ("fe80::1", "fe80::1%eth0", True),
        ("192.0.2.1", "", False),
        ("192.0.2.%", "", False),
    ],
)
def test_a_pattern_means_these_peers(pattern: str, peer: str, matches: bool) -> None:
    assert HostPattern.parse(pattern).matches(plain_address(peer)) == matches


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        ("db.example.com", "names are not looked up"),
        ("%.example.com", "names are not looked up"),
        ("10.0.0.1/24", "does not cover"),
        ("10.0.0.1/255.255.255.0", "does not cover"),
        ("10.0.0.0/33", "0 to 32"),
        ("2001:db8::/129", "0 to 128"),
        ("10.0.0.0/0.0.0.255", "no netmask"),
        ("10.0.0.0/255.0.255.0", "no netmask"),
        ("10.0.0.0/255.255.x", "no netmask"),
        ("10.0.0.0/", "0 to 32"),
        ("x/24", "no address"),
        ("", "no address"),
        ("%" * 300, "names are not looked up"),
    ],
)
def test_what_no_peer_could_match_is_refused_with_the_reason(pattern: str, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        HostPattern.parse(pattern)


@given(st.text(max_size=60), st.text(max_size=40))
def test_any_text_is_a_pattern_or_refused_and_no_peer_breaks_it(pattern: str, peer: str) -> None:
    try:
        parsed = HostPattern.parse(pattern)
    except ValueError:
        return
    parsed.matches(plain_address(peer))


@given(st.ip_addresses())
def test_an_address_is_a_pattern_for_itself(address: object) -> None:
    assert HostPattern.parse(str(address)).matches(plain_address(str(address)))


# As MySQL 8.0.23 and later sort: address, networks by their bits, those with a netmask, patterns by their first
# wildcard, and % last.
ORDER = ["10.0.0.1", "10.0.0.0/24", "10.0.0.0/8", "10.0.0.0/255.255.0.0", "10.0.0.%", "10.0.%", "10.%", "%"]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_of_several_accounts_the_most_specific_host_wins(first: int) -> None:
    accounts = [
        Account("repl", Credentials.from_password("x"), host=HostPattern.parse(text))
        for text in reversed(ORDER[first:])
    ]
    found = Accounts(accounts, secret=bytes(32)).find("repl", "10.0.0.1")
    assert (found.known, found.account.host.text) == (True, ORDER[first])


def test_a_user_at_another_host_is_unknown() -> None:
    account = Account("repl", Credentials.from_password("x"), host=HostPattern.parse("10.0.0.0/8"))
    assert not Accounts([account], secret=bytes(32)).find("repl", "192.0.2.1").known
