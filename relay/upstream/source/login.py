"""aiomysql's login, with TLS decided by what the source offers and the plugins of both families."""

import asyncio
import ssl
import struct
from typing import Any, Final

import aiomysql
import pymysql.err
from pymysql import _auth
from pymysql.constants import CLIENT

from protocol.greeting import why_no_greeting
from relay.upstream.source.connect_errors import Entering, other_protocol
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.source.source_tls import SourceTls, handshake_error, tls_not_offered

# CR_AUTH_PLUGIN_CANNOT_LOAD
_PLUGIN_ERROR: Final = 2059
_ED25519_CHALLENGE_BYTES: Final = 32
_FIRST_BYTES: Final = 64
"""How much of what the other side sends first is kept, for the message if it is no greeting."""
# What to do instead, by the plugin that the source's account has.
_ADVICE: Final = {
    "mysql_old_password": "Give the account a password of the kind used since 4.1: SET old_passwords = 0, SET PASSWORD.",
    "mysql_clear_password": 'It is sent over TLS only: write source.ssl_mode = "required" or better.',
}
_OTHER_PLUGIN: Final = (
    "Give it an account with mysql_native_password, caching_sha2_password or sha256_password; on MariaDB also ed25519."
)


class SourceLogin(aiomysql.Connection):  # type: ignore[misc]
    """One connection to a source. Raises pymysql's errors, and UpstreamError for what they cannot say."""

    def __init__(self, *, where: str, tls: SourceTls, context: ssl.SSLContext | None, **options: Any) -> None:
        super().__init__(ssl=context, **options)
        self._ssl_context: ssl.SSLContext | None
        self._where = where
        self._tls = tls
        self._greeter: asyncio.StreamReader | None = None
        self._came = Entering()

    async def enter(self) -> None:
        """Connects and logs in. Raises: UpstreamError, pymysql.err.Error and what bad bytes of a peer lead to."""
        try:
            await self._connect()
        except pymysql.err.OperationalError as error:
            cause = error.__cause__
            if isinstance(cause, ssl.SSLError) or (isinstance(cause, OSError) and self._in_handshake):
                raise handshake_error(cause, self._where, self._tls) from error
            raise
        except BaseException:
            self.close()  # a login that took too long
            raise

    @property
    def entering(self) -> Entering:
        """How far it came; its first bytes with those that nobody has read yet."""
        came = self._came
        unread = bytes(getattr(self._greeter, "_buffer", b"")[:_FIRST_BYTES]) if not came.is_greeted else b""
        return Entering(came.is_taken, came.is_greeted, came.first + unread)

    async def _get_server_information(self) -> None:
        self._came.is_taken = True
        await super()._get_server_information()
        self._came.is_greeted = True

    async def _read_bytes(self, num_bytes: int) -> bytes:
        came = self._came
        if came.is_greeted:
            return bytes(await super()._read_bytes(num_bytes))
        self._greeter = self._reader
        try:
            data = bytes(await super()._read_bytes(num_bytes))
        except pymysql.err.OperationalError as error:
            if isinstance(error.__cause__, asyncio.IncompleteReadError):
                came.first += error.__cause__.partial[:_FIRST_BYTES]
            raise
        came.first += data[:_FIRST_BYTES]
        # At once: a header that cannot be may announce megabytes, for which it would be waited in vain.
        entering = self.entering
        if (why := why_no_greeting(entering.first)) is not None:
            raise other_protocol(self._where, entering, why)
        return data

    _in_handshake = False
    _logging_in = False

    async def _request_authentication(self) -> None:
        # aiomysql would tell the server that TLS follows, and then send its login in clear.
        if self._ssl_context is not None and not self.server_capabilities & CLIENT.SSL:
            if self._tls.required:
                raise tls_not_offered(self._where, self._tls.mode, f" ({self.server_version})")
            self._ssl_context = None
            self.client_flag &= ~CLIENT.SSL
        # aiomysql answers what the greeting proposes at once, without `_process_auth`.
        self._check_plugin(self._server_auth_plugin, secure=self._ssl_context is not None)
        self._in_handshake = self._ssl_context is not None
        self._logging_in = True
        await super()._request_authentication()
        self._logging_in = False

    async def _read_packet(self, *args: Any) -> Any:
        # The first packet behind the greeting: TLS, if there is any, stands.
        if self._secure:
            self._in_handshake = False
        packet = await super()._read_packet(*args)
        if self._logging_in and packet.is_auth_switch_request():
            named = self.server_capabilities & CLIENT.PLUGIN_AUTH and b"\0" in packet.get_all_data()
            if not named:  # the way in of servers before 4.1
                raise plugin_refused(self._where, "mysql_old_password")
        return packet

    def _check_plugin(self, name: str, *, secure: bool) -> None:
        # Whoever can speak for the source could have the password from it.
        if name == "mysql_old_password" or (name == "mysql_clear_password" and not secure):
            raise plugin_refused(self._where, name)

    async def _process_auth(self, plugin_name: bytes, auth_packet: Any) -> Any:
        name = plugin_name.decode("ascii", "replace")
        if name == "client_ed25519":
            return await self._ed25519(auth_packet)
        self._check_plugin(name, secure=self._secure)
        try:
            return await super()._process_auth(plugin_name, auth_packet)
        except pymysql.err.OperationalError as error:
            if error.args and error.args[0] == _PLUGIN_ERROR:
                raise plugin_refused(self._where, name) from error
            raise

    async def _ed25519(self, auth_packet: Any) -> Any:
        challenge = auth_packet.read_all()[:_ED25519_CHALLENGE_BYTES]
        if len(challenge) != _ED25519_CHALLENGE_BYTES:
            raise struct.error(f"an ed25519 challenge of {len(challenge)} bytes")
        try:
            signature = _auth.ed25519_password(self._password.encode("latin1"), challenge)
        except RuntimeError as error:
            text = f"the source {self._where} asks for client_ed25519, and the Python package PyNaCl is not installed"
            raise UpstreamError(
                FailureKind.AUTHENTICATION,
                text,
                "Run: pip install PyNaCl",
                name="plugin_unavailable",
                number=_PLUGIN_ERROR,
            ) from error
        self.write_packet(signature)
        packet = await self._read_packet()
        packet.check_error()
        self._auth_plugin_used = "client_ed25519"
        return packet

    def security(self) -> tuple[str, str] | None:
        """(TLS version, cipher) of the connection; None in clear text."""
        if not self._secure or self._writer is None:
            return None
        cipher = self._writer.transport.get_extra_info("cipher")
        secured = self._writer.transport.get_extra_info("ssl_object")
        version = secured.version() if secured is not None else None
        return (version or (cipher[1] if cipher else "TLS"), cipher[0] if cipher else "unknown")

    def peer_certificate(self) -> bytes | None:
        """The server's certificate, DER; None in clear text."""
        if not self._secure or self._writer is None:
            return None
        secured = self._writer.transport.get_extra_info("ssl_object")
        return secured.getpeercert(binary_form=True) if secured is not None else None


def plugin_refused(where: str, name: str) -> UpstreamError:
    """The error for an account whose plugin the relay does not take part in."""
    return UpstreamError(
        FailureKind.AUTHENTICATION,
        f"the source {where} asks for the authentication plugin {name!r}, which the relay does not offer there",
        _ADVICE.get(name, _OTHER_PLUGIN),
        name="plugin_unavailable",
        number=_PLUGIN_ERROR,
    )
