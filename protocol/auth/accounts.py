"""All accounts: they give the one for a user and an address, or a decoy, so that existing users cannot be found out."""

import functools
import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from protocol.auth.account import Account
from protocol.auth.authenticator import CACHING_SHA2, NATIVE, Plugin
from protocol.auth.caching_sha2 import DigestCache, StoredSha2
from protocol.auth.credentials import Credentials
from protocol.auth.host_pattern import plain_address
from protocol.auth.rsa_key import RsaKey
from protocol.auth.sha_crypt import ENCODED_BYTES

_SALT: Final = b"decoy of 20 letters."
SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Candidate:
    """An account that a login is checked against. If not `known` it is a decoy, which is refused whatever its check returns."""

    account: Account
    known: bool


class Accounts:
    """Accounts by user and host, the most specific host first, then in the order given.

    `secret` contains random bytes, the same after a restart; they choose the decoy of an unknown user, the same for every attempt, so
    that it cannot be distinguished from an account. `rsa_key` is called in a thread and may generate the key; by default the first
    call does.
    """

    def __init__(
        self,
        accounts: Iterable[Account] = (),
        *,
        secret: bytes,
        rsa_key: Callable[[], RsaKey] | None = None,
        digests: DigestCache | None = None,
    ) -> None:
        if len(secret) < SECRET_BYTES:
            raise ValueError(f"the secret behind decoys needs {SECRET_BYTES} random bytes")
        self.all = tuple(accounts)
        self.rsa_key: Callable[[], RsaKey] = rsa_key or functools.cache(RsaKey.new)
        stored = {account.credentials.sha2 for account in self.all}
        self.digests: DigestCache = {key: digest for key, digest in (digests or {}).items() if key in stored}
        self._secret = secret
        self._by_user: dict[str, list[Account]] = {}
        for account in sorted(self.all, key=lambda account: account.host.order):
            self._by_user.setdefault(account.user, []).append(account)
        self._decoys = _decoys(self.all, secret)

    def replaced(self, accounts: Iterable[Account]) -> "Accounts":
        """Return other accounts, with the digests of those that stay the same."""
        return Accounts(accounts, secret=self._secret, rsa_key=self.rsa_key, digests=self.digests)

    def find(self, user: str, address: str) -> Candidate:
        """Return the account, or the decoy, for a login."""
        choice = hmac.digest(self._secret, user.encode("utf-8", "replace"), "sha256")
        decoy = self._decoys[int.from_bytes(choice[:8], "big") % len(self._decoys)]
        # The address is parsed for unknown users too: they must take as long.
        peer = plain_address(address)
        found = next((account for account in self._by_user.get(user, ()) if account.host.matches(peer)), None)
        return Candidate(found, known=True) if found is not None else Candidate(decoy, known=False)

    @functools.cached_property
    def greeting_plugin(self) -> Plugin:
        """The plugin that the greeting proposes: old replicas give up on a plugin that they do not have, so it is native as long as
        any account can log in with it.
        """
        plugins = {plugin for account in self.all for plugin in account.plugins}
        return CACHING_SHA2 if CACHING_SHA2 in plugins and NATIVE not in plugins else NATIVE

    @property
    def may_need_rsa_key(self) -> bool:
        """True if an account may log in whose digest is not known."""
        return any(isinstance(account.credentials.sha2, StoredSha2) for account in self.all)


def _decoys(accounts: tuple[Account, ...], secret: bytes) -> tuple[Account, ...]:
    """Return a decoy for each account, with secrets that nobody has: unknown users look like the existing accounts."""
    password = hmac.digest(secret, b"password", "sha256").hex()
    full = Credentials.from_password(password)
    encoded = hmac.digest(secret, b"encoded", "sha256").hex()[:ENCODED_BYTES].encode()
    made = [
        replace(
            account,
            user="",
            credentials=Credentials(
                native=full.native if account.credentials.native is not None else None,
                sha2=_like(account.credentials.sha2, full.sha2, encoded),
                ed25519=full.ed25519 if account.credentials.ed25519 is not None else None,
            ),
        )
        for account in accounts
    ]
    return tuple(made) or (Account("", full),)


def _like(
    secret: bytes | StoredSha2 | None, digest: bytes | StoredSha2 | None, encoded: bytes
) -> bytes | StoredSha2 | None:
    if secret is None:
        return None
    return StoredSha2(secret.rounds, _SALT, encoded) if isinstance(secret, StoredSha2) else digest
