"""Accounts that cannot be, and tokens that are none."""

import pytest

from protocol.auth.account import Account
from protocol.auth.accounts import Accounts
from protocol.auth.authenticator import ED25519
from protocol.auth.caching_sha2 import sha2_digest, sha2_matches, sha2_token
from protocol.auth.credentials import Credentials
from protocol.auth.native import native_hash

SCRAMBLE = b"!" * 20


def test_an_account_that_no_plugin_can_check_is_refused() -> None:
    with pytest.raises(ValueError, match="account 'u': no plugin can check its credentials"):
        Account("u", Credentials(native=native_hash("x")), plugin=ED25519)


def test_decoys_need_a_secret_that_nobody_guesses() -> None:
    with pytest.raises(ValueError, match="random bytes"):
        Accounts((), secret=b"short")


def test_a_token_of_another_length_matches_no_password() -> None:
    token, digest = sha2_token(b"x", SCRAMBLE), sha2_digest(b"x")
    assert sha2_matches(token, SCRAMBLE, digest)
    assert not sha2_matches(token[:-1], SCRAMBLE, digest)
    assert not sha2_matches(b"", SCRAMBLE, digest)
