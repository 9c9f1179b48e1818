"""The client's half of a login: its answers to a peer that claims to be the server, and what it withholds.

login = first answer ( switch | more data, each with an answer or none ) OK

All our clients log in through here. The login packet carries proofs only: mysql_native_password's and caching_sha2_password's tokens.
A token is made from a hash of the password and the server's challenge: whoever gets it may guess passwords offline, and learns
nothing else. The password itself, also encrypted by the peer's RSA key, is sent only to a peer that proved to be the server, by its
certificate or by a key that was given to us beforehand.

Source: MySQL 9.x `sql-common/client_authentication.cc`; MariaDB 10.11 `libmariadb/plugins/auth`.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from protocol.auth.authenticator import CACHING_SHA2, ED25519, NATIVE, SCRAMBLE_BYTES
from protocol.auth.caching_sha2 import sha2_token
from protocol.auth.ed25519 import NONCE_BYTES, ed25519_signature
from protocol.auth.native import native_token
from protocol.auth.rsa_key import ServerKey
from protocol.errors import Malformed, RelayError

SHA256: Final = "sha256_password"
CLEARTEXT: Final = "mysql_clear_password"
OLD: Final = "mysql_old_password"
_IN_LOGIN_PACKET: Final = (NATIVE, CACHING_SHA2)
_OK: Final = 0x00
_MORE: Final = 0x01
_SWITCH: Final = 0xFE
_FAST_OK: Final = b"\x03"
_FULL_REQUEST: Final = b"\x04"
_MOST_PACKETS: Final = 20
"""The most packets of a login. MariaDB sends a switch for each plugin that the account has."""


class Peer(Enum):
    """The trust in the peer that answers."""

    CLEAR = "clear text"
    ENCRYPTED = "TLS, its certificate unchecked"
    VERIFIED = "TLS, its certificate checked"


class LoginWithheld(RelayError):
    """The peer asks for what it must not get. `what` is the plugin, as the peer named it."""


class PluginNotOffered(LoginWithheld):
    """Our clients do not take part in this plugin, whoever asks."""


class PasswordWithheld(LoginWithheld):
    """The plugin wants the password itself, and the peer did not prove to be the server."""


class PasswordTooLong(LoginWithheld):
    """The password does not fit into one block of the server's RSA key."""


@dataclass(frozen=True, slots=True)
class LoginSecrets:
    """The secrets of a login. `server_key` is the server's, from a file of ours; None: not known."""

    password: str = field(repr=False)
    server_key: ServerKey | None = None


class ClientLogin:
    """One login: call `first`, then `answer` for each packet of the peer until `is_over`.

    `peer` is the trust in it when the login packet is sent. Errors that the peer sends are the caller's business.
    """

    def __init__(self, secrets: LoginSecrets, peer: Peer) -> None:
        self._password = secrets.password
        self._whole = secrets.password.encode() + b"\0"
        self._server_key = secrets.server_key
        self.peer = peer
        self._scramble = b""
        self._packets = 0
        self._full = False
        self.plugin = NATIVE
        self.is_over = False

    def first(self, proposed: str, scramble: bytes) -> tuple[str, bytes]:
        """Return plugin and data of the login packet. `proposed` is the greeting's plugin, "" for none; `scramble` is its challenge.

        If no token may be sent unasked for the proposed plugin, the token of native is sent: a server then switches to the account's.
        """
        self.plugin = proposed if proposed in _IN_LOGIN_PACKET else NATIVE
        self._scramble = scramble[:SCRAMBLE_BYTES]
        return self.plugin, self._token()

    def answer(self, packet: bytes) -> bytes | None:
        """Return the answer to this packet of the peer; None: there is none, and the next packet is read unless `is_over`.

        Raises: PluginNotOffered, PasswordWithheld, PasswordTooLong; Malformed for what cannot come here.
        """
        self._packets += 1
        kind = packet[0] if packet else -1
        if self._packets > _MOST_PACKETS:
            raise Malformed(f"a login of more than {_MOST_PACKETS} packets")
        if kind == _OK:
            self.is_over = True
            return None
        if kind == _SWITCH:
            return self._switch(packet[1:])
        if kind == _MORE and self.plugin == CACHING_SHA2 and not self._full:
            return self._caching_sha2(packet[1:])
        raise Malformed(f"a login's answer that begins with {packet[:1].hex() or 'nothing'}")

    def _switch(self, data: bytes) -> bytes:
        name, named, challenge = data.partition(b"\0")
        if not named:
            raise PluginNotOffered(OLD)  # the plugin of servers before 4.1
        self._full = False
        self.plugin = name.decode("ascii", "replace")
        if self.plugin == ED25519:
            if len(challenge[:NONCE_BYTES]) != NONCE_BYTES:
                raise Malformed(f"an ed25519 challenge of {len(challenge)} bytes")
            return ed25519_signature(self._password, challenge[:NONCE_BYTES])
        self._scramble = challenge[:SCRAMBLE_BYTES]
        if self.plugin in _IN_LOGIN_PACKET:
            return self._token()
        if self.plugin == SHA256:
            return self._whole_password()
        if self.plugin == CLEARTEXT:
            if self.peer is not Peer.VERIFIED:
                raise PasswordWithheld(self.plugin)
            return self._whole
        raise PluginNotOffered(self.plugin)

    def _caching_sha2(self, data: bytes) -> bytes | None:
        if data == _FAST_OK:
            return None
        if data != _FULL_REQUEST:
            raise Malformed(f"caching_sha2_password with {data[:8].hex()}")
        self._full = True
        return self._whole_password()

    def _token(self) -> bytes:
        if not self._password:
            return b""
        if len(self._scramble) != SCRAMBLE_BYTES:
            raise Malformed(f"a challenge of {len(self._scramble)} bytes")
        if self.plugin == CACHING_SHA2:
            return sha2_token(self._whole[:-1], self._scramble)
        return native_token(self._password, self._scramble)

    def _whole_password(self) -> bytes:
        """Return the password for a verified peer, or over clear text its cipher for the server's known key; no other peer gets any.

        Servers open an RSA cipher on connections without TLS only: over TLS they take the same bytes for the password.
        """
        if self.peer is Peer.VERIFIED:
            return self._whole
        if not self._password:
            return self._whole
        if self.peer is not Peer.CLEAR or self._server_key is None:
            raise PasswordWithheld(self.plugin)
        if len(self._scramble) != SCRAMBLE_BYTES:
            raise Malformed(f"a challenge of {len(self._scramble)} bytes")
        cipher = self._server_key.encrypt(self._whole, self._scramble)
        if cipher is None:
            raise PasswordTooLong(self.plugin)
        return cipher
