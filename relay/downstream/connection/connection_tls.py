"""The TLS of one connection, from the client's request for it to the connection's end."""

import asyncio
import ssl
from collections.abc import Callable
from concurrent.futures import Executor

from protocol.auth.authenticator import Channel
from protocol.errors import RelayError
from relay.process.background import OnFault, begin_task
from relay.process.certificates import ServerTls
from relay.process.tls_transport import TlsTransport, tls_trouble


class TlsBroken(RelayError):
    """What came is no TLS, or no handshake that was agreed on. Its text is for the log: to the peer TLS has said it."""


class ConnectionTls:
    """Answers the client's handshake, in threads, then is what the connection writes to and reads from.

    transport: the socket's. offered: what the greeting promised: a reload meanwhile changes nothing. received: what came
    behind the request: from there on everything is TLS. secured: called once, later, with what protects the connection, or
    with why nothing does; not after `drop`. more: called where more has come than is decrypted at once: `received(b"")`
    has the rest. on_fault: called with an exception that nobody foresaw.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        offered: ServerTls,
        received: bytes,
        threads: Executor,
        secured: Callable[["ConnectionTls", Channel | TlsBroken], None],
        more: Callable[["ConnectionTls"], None],
        on_fault: OnFault,
    ) -> None:
        self.transport = TlsTransport(transport, offered.context, received, lambda: more(self))
        """Nothing may be written to it before the handshake is done."""
        self._certificate_digest = offered.digest
        self._secured = secured
        self._handshake = begin_task(self._shake_hands(threads), "a replica's TLS handshake", on_fault)

    async def _shake_hands(self, threads: Executor) -> None:
        tls = self.transport
        outcome: Channel | TlsBroken
        try:
            await tls.handshake(threads)
        except ssl.SSLError as error:
            outcome = TlsBroken(tls_trouble(error))
        else:
            outcome = Channel(tls.version, tls.cipher, tls.client_certificate, self._certificate_digest)
        self._secured(self, outcome)

    def received(self, data: memoryview | bytes) -> bytes:
        """Takes bytes of the socket; gives what is inside of them. During the handshake, nothing. Raises: TlsBroken."""
        try:
            return self.transport.received(data)
        except ssl.SSLError as error:
            raise TlsBroken(tls_trouble(error)) from error

    @property
    def peer_said_goodbye(self) -> bool:
        """Whether nothing more comes from the peer, by its own word."""
        return self.transport.peer_said_goodbye

    def drop(self) -> None:
        """Ends the handshake, if it goes on: the connection is gone."""
        self._handshake.cancel()
