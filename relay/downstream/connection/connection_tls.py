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
    """The received bytes are no TLS, or no handshake was agreed on. The text is for the log: TLS has reported it to the peer."""


class ConnectionTls:
    """Answers the client's handshake, in threads, and then carries what the connection writes and reads.

    transport: the socket's. offered: the context of the greeting, which a reload in the meantime does not change. received: the bytes
    that came after the request; everything from there on is TLS. secured: called once, later, with the channel that protects the
    connection, or with the reason why nothing does; not after `drop`. more: called when more has arrived than is decrypted at once:
    `received(b"")` returns the rest. on_fault: called with an unforeseen exception.
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
        """Take bytes of the socket and return the decrypted bytes; during the handshake, none. Raises: TlsBroken."""
        try:
            return self.transport.received(data)
        except ssl.SSLError as error:
            raise TlsBroken(tls_trouble(error)) from error

    @property
    def peer_said_goodbye(self) -> bool:
        """True if the peer has announced that it sends nothing more."""
        return self.transport.peer_said_goodbye

    def drop(self) -> None:
        """End the handshake, if it is running: the connection has ended."""
        self._handshake.cancel()
