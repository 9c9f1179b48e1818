"""TLS between a socket and a session: bytes in, bytes out, through OpenSSL's memory buffers.

asyncio's own `start_tls` begins with the next bytes of the socket, but a client sends its ClientHello right after SSLRequest, so that
it has often been read already.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Final

_RECORD_BYTES: Final = 16384
# OpenSSL keeps a buffer as large as its largest input: for a thousand replicas that is not a run each.
_PIECE_BYTES: Final = 4 * _RECORD_BYTES
_RECORD_HEAD_BYTES: Final = 5
_MOST_RECORDS: Final = 200
"""The most records that are opened at once, 5 microseconds each: the rest waits for the loop's next iteration."""
_RECORD_TYPES: Final = range(20, 25)
_LARGEST_RECORD: Final = _RECORD_BYTES + 2048
_MOST_EMPTY_RECORDS: Final = 64
"""The most empty records of one connection: a change of keys takes 50 microseconds, and no client needs more than a few."""
# The errors that replicas and operators meet; OpenSSL's own names for the rest.
_WORDS: Final = {
    "WRONG_VERSION_NUMBER": "what came is no TLS",
    "HTTP_REQUEST": "what came is an HTTP request, no TLS",
    "UNSUPPORTED_PROTOCOL": "the client speaks no TLS of version 1.2 or later",
    "NO_SHARED_CIPHER": "the client knows none of our ciphers",
    "CERTIFICATE_VERIFY_FAILED": "no authority in listen.tls_client_ca has signed the client's certificate",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust our certificate: it lacks the authority that signed it",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client refuses our certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client refuses our certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client refuses our certificate: it has expired",
}


class TlsTransport(asyncio.Transport):
    """A transport that a session uses instead of its socket's.

    `received`: the part of the handshake that has come already. `handshake` first; then `write` encrypts and `received()` decrypts.
    on_more: called in a later iteration of the loop when more has come than is decrypted at once; it calls `received(b"")`.
    Backpressure is the socket's: `pause_writing` and `resume_writing` of the protocol are called for the encrypted bytes.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        context: ssl.SSLContext,
        received: bytes = b"",
        on_more: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__()
        self._transport = transport
        self._on_more = on_more
        self._has_more = False
        self._wants_reading = True
        self._empty_records = 0
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._waiting = bytearray(received)
        self._arrived = asyncio.Event()
        self._established = False
        self._said_goodbye = False
        self.peer_said_goodbye = False
        """True if the peer's close_notify has come."""

    # --- the handshake ----------------------------------------------------------------------------------------------

    async def handshake(self, threads: Executor) -> None:
        """Answer the client's handshake; `received()` brings the rest of it.

        In threads: the signature takes a millisecond with an RSA key of 2,048 bits and five with one of 4,096. Raises: ssl.SSLError;
        the alert for the peer has been written then.
        """
        loop = asyncio.get_running_loop()
        while not self._established:
            while not self._next_record():
                self._arrived.clear()
                await self._arrived.wait()
            came = bytes(self._waiting)
            self._waiting.clear()
            # A peer that sends faster than the handshake proceeds fills the socket, not the relay's memory.
            self._transport.pause_reading()
            try:
                self._established, rest = await loop.run_in_executor(threads, self._step, came)
                self._waiting[:0] = rest
            finally:
                self._flush()
                if not self._transport.is_closing():
                    self._transport.resume_reading()

    def _step(self, came: bytes) -> tuple[bool, bytes]:
        """Return whether it is done, and the bytes that belong to no record of it, or to one that has not come whole."""
        at = 0
        while size := _record_size(came, at):
            self._incoming.write(came[at : at + size])
            at += size
            with contextlib.suppress(ssl.SSLWantReadError):
                self._ssl.do_handshake()
                return True, came[at:]
        return False, came[at:]

    @property
    def version(self) -> str:
        """The version of the protocol, such as TLSv1.3."""
        return self._ssl.version() or ""

    @property
    def cipher(self) -> str:
        """The cipher, such as TLS_AES_256_GCM_SHA384."""
        cipher = self._ssl.cipher()
        return cipher[0] if cipher else ""

    @property
    def client_certificate(self) -> bool:
        """True if the client showed a certificate; one that no trusted authority has signed ends the handshake."""
        return self._ssl.getpeercert(binary_form=True) is not None

    # --- receiving --------------------------------------------------------------------------------------------------

    def received(self, data: memoryview | bytes) -> bytes:
        """Take bytes of the socket; return the decrypted bytes. During the handshake, none.

        Raises: ssl.SSLError for what is no TLS or was changed on its way.
        """
        if not self._established:
            self._waiting += data
            self._arrived.set()
            if len(self._waiting) > _PIECE_BYTES:
                self._transport.pause_reading()
            return b""
        self._waiting += data
        plain = bytearray()
        try:
            self._has_more = self._open_records(plain)
        finally:
            self._flush()
        if self._has_more:
            self._transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._go_on)
        return bytes(plain)

    def _open_records(self, plain: bytearray) -> bool:
        """Add the contents of the records that have come whole. Return whether there are more than are opened at once.

        Raises: ssl.SSLError.
        """
        for _ in range(_MOST_RECORDS):
            size = self._next_record()
            if not size:
                return False
            self._incoming.write(self._waiting[:size])
            del self._waiting[:size]
            before = len(plain)
            try:
                while piece := self._ssl.read(_RECORD_BYTES):
                    plain += piece
                self.peer_said_goodbye = True
                return False
            except ssl.SSLWantReadError:
                pass
            if len(plain) == before:
                self._empty_records += 1
                if self._empty_records > _MOST_EMPTY_RECORDS:
                    raise ssl.SSLError(1, f"the peer sent more than {_MOST_EMPTY_RECORDS} records without data")
        return self._next_record() > 0

    def _next_record(self) -> int:
        return _record_size(self._waiting, 0)

    def _go_on(self) -> None:
        self._has_more = False
        if self._transport.is_closing():
            return
        self._on_more()
        if not self._has_more and self._wants_reading and not self._transport.is_closing():
            self._transport.resume_reading()

    # --- sending ----------------------------------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and write; `data` may change afterwards."""
        view = memoryview(data)
        while view:
            piece = view[:_PIECE_BYTES]
            view = view[_PIECE_BYTES:]
            while piece:
                piece = piece[self._ssl.write(piece) :]
            self._flush()

    def _flush(self) -> None:
        if self._outgoing.pending and not self._transport.is_closing():
            self._transport.write(self._outgoing.read())

    def _say_goodbye(self) -> None:
        """Send close_notify: the peer can tell this end from a cut line."""
        if self._said_goodbye or not self._established:
            return
        self._said_goodbye = True
        # It would wait for the peer's as well.
        with contextlib.suppress(ssl.SSLError):
            self._ssl.unwrap()
        self._flush()

    # --- the rest of a transport ------------------------------------------------------------------------------------

    def write_eof(self) -> None:
        """Send close_notify, and end the writing side."""
        self._say_goodbye()
        self._transport.write_eof()

    def can_write_eof(self) -> bool:
        """Return the socket's answer."""
        return self._transport.can_write_eof()

    def close(self) -> None:
        """Send close_notify and close when all is written."""
        self._say_goodbye()
        self._transport.close()

    def abort(self) -> None:
        """Close now."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Return whether it is closed or about to be."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Let the peer's bytes wait in the socket."""
        self._wants_reading = False
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read the peer's bytes again."""
        self._wants_reading = True
        if not self._has_more:
            self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return the socket's information; `sslcontext` is there, as in asyncio's own."""
        return self._ssl.context if name == "sslcontext" else self._transport.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        """Return the encrypted bytes that the socket has not taken."""
        return self._transport.get_write_buffer_size()


def _record_size(data: bytes | bytearray, at: int) -> int:
    """Return the size of the record that begins there; 0: it has not come whole. What is no record goes to OpenSSL as it is."""
    there = len(data) - at
    if there and data[at] not in _RECORD_TYPES:
        return there
    if there < _RECORD_HEAD_BYTES:
        return 0
    size = _RECORD_HEAD_BYTES + int.from_bytes(data[at + 3 : at + 5], "big")
    if size > _LARGEST_RECORD:
        return there
    return size if there >= size else 0


def tls_trouble(error: ssl.SSLError) -> str:
    """Return what went wrong, in words for the log."""
    reason = getattr(error, "reason", None) or error.strerror or str(error)
    return _WORDS.get(reason, reason.replace("_", " ").lower())
