"""One login, packet by packet: which plugin, what is sent, and the verdict. The framing of packets and the states of the connection
are in the machine of `source_side`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from protocol.auth.account import Account
from protocol.auth.accounts import Accounts
from protocol.auth.authenticator import (
    CACHING_SHA2,
    ED25519,
    NATIVE,
    SCRAMBLE_BYTES,
    Authenticator,
    AuthResult,
    Channel,
    Plugin,
    Step,
    Work,
    printable_scramble,
)
from protocol.auth.caching_sha2 import CachingSha2
from protocol.auth.ed25519 import NONCE_BYTES, Ed25519
from protocol.auth.native import NativePassword
from protocol.auth.server_proof import server_proof
from protocol.capabilities import Capability
from protocol.handshake import Login


class Refusal(Enum):
    """The reason, for the operator's log. The client gets the same answer in every case but the last."""

    UNKNOWN = "no account for this user and address"
    WRONG_PASSWORD = "wrong password"
    NEEDS_TLS = "the account requires TLS"
    NEEDS_CERTIFICATE = "the account requires a client certificate"
    CHANGED = "the account was changed or removed during the login"
    OLD_CLIENT = "the client is too old for the account's plugin"


@dataclass(frozen=True, slots=True)
class Switch:
    """The client must use another plugin."""

    plugin: str
    challenge: bytes


@dataclass(frozen=True, slots=True)
class More:
    """The data for the client's plugin, which answers."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Accepted:
    """The login is accepted. `data` is sent for the client's plugin, before OK; empty for none."""

    account: Account
    data: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """The login is refused. `password_used`: the client showed one, for the error's text."""

    reason: Refusal
    password_used: bool


Reply = Switch | More | Work | Accepted | Refused


class LoginExchange:
    """One login: call `begin`, then `respond` for each packet of the client; after a Work, `finish` with its result.

    `scramble` is the greeting's, made for `greeting_plugin`.
    """

    def __init__(
        self,
        login: Login,
        accounts: Accounts,
        *,
        address: str,
        greeting_plugin: Plugin,
        scramble: bytes,
        channel: Channel,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self.user = login.user
        self.attributes = login.attributes
        self.plugin: Plugin = greeting_plugin
        self._login = login
        self._accounts = accounts
        self._address = address
        self._candidate = accounts.find(login.user, address)
        self._greeting_plugin = greeting_plugin
        self._scramble = scramble
        self._channel = channel
        self._random_bytes = random_bytes
        self._authenticator: Authenticator | None = None
        # MariaDB's clients take this for the login's scramble, whatever their plugin was sent.
        self._proven_with = scramble
        self._password_used = False

    def begin(self) -> Reply:
        """Take the data of the login packet, or ask for another plugin."""
        able = self._candidate.account.plugins
        # A client without plugins (MySQL 5.1) means the one it knows, and it computed with the greeting's scramble.
        proposed = self._login.plugin or NATIVE
        negotiates = bool(self._login.capabilities & Capability.PLUGIN_AUTH)
        if proposed in able and (proposed == self._greeting_plugin or not negotiates):
            self._authenticator = self._make(proposed, self._scramble)
            return self.respond(self._login.auth)
        if not negotiates:
            return Refused(Refusal.OLD_CLIENT, password_used=bool(self._login.auth))
        wanted = proposed if proposed in able else able[0]
        self._authenticator = self._make(wanted, printable_scramble(self._random_bytes(SCRAMBLE_BYTES)))
        return Switch(wanted, self._authenticator.challenge())

    def respond(self, data: bytes) -> Reply:
        """Take the client's next packet."""
        assert self._authenticator is not None, "begin() comes first"
        self._password_used = self._password_used or data not in (b"", b"\0")
        step = self._authenticator.respond(data)
        return self.finish(step) if isinstance(step, Step) else step

    def finish(self, step: Step) -> Reply:
        """Take the result of a Work."""
        if step.result is AuthResult.CONTINUE:
            return More(step.data)
        reason = self._refusal(step)
        return Accepted(self._candidate.account, step.data) if reason is None else self._refused(reason)

    def still_allowed(self, accounts: Accounts) -> bool:
        """Return whether `accounts` contain the same account: a login that began before a change ends by the accounts after it."""
        if accounts is self._accounts:
            return True
        found = accounts.find(self.user, self._address)
        return found.known and found.account == self._candidate.account

    def changed(self) -> Refused:
        """Return the refusal of a login whose account has changed."""
        return self._refused(Refusal.CHANGED)

    def proof(self) -> bytes:
        """Return the text of the OK of an accepted login by which MariaDB trusts our certificate; b"" for none."""
        credentials = self._candidate.account.credentials
        stored = {NATIVE: credentials.native, ED25519: credentials.ed25519}.get(self.plugin)
        digest = self._channel.certificate_digest
        return server_proof(stored, self._proven_with, digest) if stored and digest else b""

    def _refusal(self, step: Step) -> Refusal | None:
        account = self._candidate.account
        if not self._candidate.known:
            return Refusal.UNKNOWN
        if step.result is AuthResult.REFUSED:
            return Refusal.WRONG_PASSWORD
        if account.require_tls and not self._channel.tls:
            return Refusal.NEEDS_TLS
        if account.require_client_cert and not self._channel.client_certificate:
            return Refusal.NEEDS_CERTIFICATE
        return None

    def _refused(self, reason: Refusal) -> Refused:
        return Refused(reason, self._password_used)

    def _make(self, plugin: str, scramble: bytes) -> Authenticator:
        credentials = self._candidate.account.credentials
        if plugin == NATIVE and credentials.native is not None:
            self.plugin = NATIVE
            self._proven_with = scramble
            return NativePassword(credentials.native, scramble)
        if plugin == CACHING_SHA2 and credentials.sha2 is not None:
            self.plugin = CACHING_SHA2
            return CachingSha2(
                credentials.sha2,
                scramble,
                secure=bool(self._channel.tls),
                cache=self._accounts.digests,
                rsa_key=self._accounts.rsa_key,
            )
        assert credentials.ed25519 is not None, f"{plugin} is not among the account's plugins"
        self.plugin = ED25519
        return Ed25519(credentials.ed25519, self._random_bytes(NONCE_BYTES))
