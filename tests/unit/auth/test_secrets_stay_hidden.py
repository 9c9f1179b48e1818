"""No password, hash or key is in the text of anything that could be printed or logged."""

import base64

import pytest

from protocol.auth.account import Account
from protocol.auth.accounts import Accounts
from protocol.auth.caching_sha2 import StoredSha2, sha2_digest
from protocol.auth.credentials import Credentials
from protocol.auth.ed25519 import ed25519_public_key
from protocol.auth.native import native_hash

PASSWORD = "s3cret"


def forms(secret: bytes) -> list[str]:
    """How a secret could be written."""
    return [repr(secret)[2:-1], secret.hex(), secret.hex().upper(), base64.b64encode(secret).decode().rstrip("=")]


SECRETS = [
    *forms(PASSWORD.encode()),
    *forms(native_hash(PASSWORD)),
    *forms(sha2_digest(PASSWORD.encode())),
    *forms(ed25519_public_key(PASSWORD)),
]


@pytest.mark.parametrize("secret", SECRETS)
def test_an_account_with_a_password_shows_nothing_of_it(secret: str) -> None:
    account = Account.with_password("repl", PASSWORD)
    shown = repr(account) + str(account) + repr(account.credentials) + repr(Accounts([account], secret=bytes(32)))
    assert secret not in shown


def test_an_account_with_a_stored_hash_shows_nothing_of_it() -> None:
    encoded = "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789./AbCdE"
    credentials = Credentials.from_stored("$A$005$" + "s" * 20 + encoded)
    assert isinstance(credentials.sha2, StoredSha2)
    assert encoded not in repr(Account("repl", credentials)) + repr(credentials) + repr(credentials.sha2)


@pytest.mark.parametrize("wrong", ["hunter2", "*12", "$A$005$short", "0xhunter2", "*" + "g" * 40])
def test_what_is_no_stored_hash_is_not_repeated_in_the_error(wrong: str) -> None:
    with pytest.raises(ValueError, match="not a stored hash") as caught:
        Credentials.from_stored(wrong)
    assert wrong not in str(caught.value)
