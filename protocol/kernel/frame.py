# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The way out: runs of archived events become the packets of one replica's stream.

Each event gets a packet header (length 3, sequence 1) and the prefix: the status byte 0x00, with semi-sync two bytes more. Payloads
of 16,777,215 bytes and more are split. Markers are kept, stripped, or converted to the layout `edges`; the CRC32 is corrected.

Semi-sync: the last byte of the prefix is 1 where an acknowledgement is asked for: at the newest transaction end of the bytes that are
framed at once, and at each one that is too big for that. Both sides count packets from 1 again after such an event.
"""

import cython

from protocol.kernel.edges import Edges

if not cython.compiled:
    from protocol.kernel.codes import *
    from protocol.kernel.pure import (
        Bytes,
        Writable,
        copy_bytes,
        crc32_of,
        flags_effect,
        load16,
        load32,
        native_setup,
        store32,
    )

native_setup()


def required_size(n: int, prefix_length: int = 1) -> int:
    """Return the bytes of output that `n` bytes of input can make: events have at least 19 bytes, packets at most 16 MiB."""
    return n + (n // HEADER_SIZE + 2) * (4 + prefix_length) + (n // MAX_PAYLOAD + 2) * 4


def ends_transaction(t: int, flags: int) -> bool:
    """Return whether a transaction ends with an archived event of type t, by the markers in its flags."""
    boundary = (flags & BOUNDARY_MASK) >> BOUNDARY_SHIFT
    if boundary == END:
        return True
    return boundary == SELF_CONTAINED and not (
        t == START_V3_EVENT
        or t == STOP_EVENT
        or t == ROTATE_EVENT
        or t == SLAVE_EVENT
        or t == HEARTBEAT_EVENT
        or t == HEARTBEAT_V2_EVENT
        or t == PREVIOUS_GTIDS_EVENT
        or t == GTID_LIST_EVENT
    )


class Framer:
    """Makes one replica's packets from the bytes of an archived file, which may be cut anywhere.

    `mode` is KEEP or STRIP for the boundary markers, or converts them to EDGES. `prefix` contains the bytes before each event, at
    most MAX_PREFIX. With `asks`, acknowledgements are asked for (the events carry markers, and the last byte of the prefix is the
    flag). `left_out` is the type of the events that make no packet, -1: none; events before and after them stay as they are.
    `sequence` is the next packet's. `asked_events` counts the acknowledgements asked for so far. `asked_end` is where in src the
    newest of these events ends, -1 if the last call asked for none or that event continues.
    """

    def __init__(self, mode: int = KEEP, prefix: bytes = b"\0", asks: bool = False, left_out: int = -1) -> None:
        if mode < KEEP or mode > EDGES:
            raise ValueError(f"mode {mode} is none of KEEP, STRIP, EDGES")
        if not 1 <= len(prefix) <= MAX_PREFIX:
            raise ValueError(f"a prefix has 1 to {MAX_PREFIX} bytes")
        if asks and len(prefix) < 2:
            raise ValueError("a prefix of one byte has no place for a flag")
        if not cython.compiled:
            self.prefix_bytes = bytearray(MAX_PREFIX)
        for i in range(len(prefix)):
            self.prefix_bytes[i] = prefix[i]
        self.mode = mode
        self.edges = Edges()
        self.prefix_length = len(prefix)
        self.asks = asks
        self.left_out = left_out
        self.leaving_out = False  # for the event that continues
        self.asked = False  # for the event that continues
        self.asked_end = -1
        self.asked_events = 0
        self.sequence = 1
        self.checksum = 1
        self.event_left = 0
        self.packet_left = 0
        self.more_packets = False
        self.effect = 0
        self.consumed = 0
        self.events = 0
        self.problem = 0

    @property
    def between_events(self) -> bool:
        """True if the last byte framed was the last of its event."""
        return self.event_left == 0 and not self.more_packets

    def begin_file(self, checksum: int) -> None:
        """Begin a file with this checksum algorithm: 0 none, 1 CRC32."""
        self.checksum = checksum
        self.event_left = 0
        self.packet_left = 0
        self.more_packets = False
        self.leaving_out = False
        self.asked = False
        self.edges.begin()

    def read_format(self, event: Bytes) -> None:
        """Read the format description in force when the stream does not start with it (EDGES needs its lengths)."""
        if len(event) > HEADER_SIZE + FORMAT_FIXED_SIZE:
            if cython.compiled:
                self.edges.take_format(cython.address(event[0]), 0, len(event))
            else:
                self.edges.take_format(event, 0, len(event))

    def frame(self, src: Bytes, start: int, stop: int, dst: Writable) -> int:
        """Frame src[start:stop] into dst; return the bytes written; `consumed` is where in src it stopped.

        Less than a header at the end, or in STRIP mode less than a whole checksum, is left for the next call.
        Raises: IndexError for a range outside src or a dst below `required_size`; ValueError for bytes that are no event.
        """
        if start < 0 or stop < start or stop > len(src):
            raise IndexError(f"range {start}:{stop} outside a buffer of {len(src)} bytes")
        if len(dst) < required_size(stop - start, self.prefix_length):
            raise IndexError(f"an output buffer of {len(dst)} bytes is too small for {stop - start} bytes of events")
        self.consumed = start
        self.asked_end = -1
        if start == stop:
            return 0
        if cython.compiled:
            with cython.nogil:
                if self.asks:
                    n = self.walk_asking(cython.address(src[0]), start, stop, cython.address(dst[0]))
                else:
                    n = self.walk(cython.address(src[0]), start, stop, cython.address(dst[0]), 0)
        elif self.asks:
            n = self.walk_asking(memoryview(src).cast("B"), start, stop, memoryview(dst).cast("B"))
        else:
            n = self.walk(memoryview(src).cast("B"), start, stop, memoryview(dst).cast("B"), 0)
        if self.problem:
            raise ValueError(f"no event at input offset {self.consumed}: its length is {self.problem} bytes")
        return n

    def put_head(self, q: Writable, o: int, size: int, with_prefix: bool) -> int:
        q[o] = size & 255
        q[o + 1] = (size >> 8) & 255
        q[o + 2] = (size >> 16) & 255
        q[o + 3] = self.sequence
        self.sequence = (self.sequence + 1) & 255
        o += 4
        if with_prefix:
            for i in range(self.prefix_length):
                q[o + i] = self.prefix_bytes[i]
            o += self.prefix_length
        return o

    def finish_event(self, r: int) -> None:
        """End an event that took several packets or calls, whose last byte was framed; `r` is the offset after it."""
        self.events += 1
        if self.asked:
            self.asked = False
            self.asked_end = r
            self.sequence = 1

    def walk_asking(self, p: Bytes, start: int, stop: int, q: Writable) -> int:
        """Walk like `walk`, and flag the newest transaction end that is whole in [start, stop) and takes one packet."""
        newest = -1
        size = 0
        r = start + self.event_left
        while stop - r >= HEADER_SIZE:
            length = load32(p, r + EVENT_SIZE_AT)
            if length < HEADER_SIZE or length > stop - r:
                break
            if length + self.prefix_length < MAX_PAYLOAD and ends_transaction(
                p[r + EVENT_TYPE_AT], load16(p, r + FLAGS_AT)
            ):
                newest = r + length
                size = length
            r += length
        o = 0
        if newest >= 0:
            o = self.walk(p, start, newest, q, 0)
            if self.problem or self.consumed != newest:
                return o
            q[o - size - 1] = 1
            self.asked_events += 1
            self.asked_end = newest
            self.sequence = 1
            start = newest
        return self.walk(p, start, stop, q, o)

    def walk(self, p: Bytes, start: int, stop: int, q: Writable, o: int) -> int:
        """Frame p[start:stop] into q from `o` on; return the offset after it."""
        r = start
        prefix = self.prefix_length
        mode = self.mode
        left_out = self.left_out
        self.problem = 0
        while r < stop or self.more_packets:
            if self.event_left == 0 and not self.more_packets:
                if stop - r < HEADER_SIZE:
                    break
                length = load32(p, r + EVENT_SIZE_AT)
                t = p[r + EVENT_TYPE_AT]
                if length < HEADER_SIZE:
                    self.problem = length if length else -1
                    break
                if t == left_out:
                    self.leaving_out = True
                    self.event_left = length
                    continue
                payload = length + prefix
                checksum = self.checksum
                flags = load16(p, r + FLAGS_AT)
                self.effect = 0
                bits = 0  # the changed ones of the four bits of the markers
                if mode == STRIP:
                    bits = (flags & BOUNDARY_MASK) >> BOUNDARY_SHIFT
                elif mode == EDGES:
                    if length > stop - r and stop - r < INFERENCE_HEAD:
                        break
                    if t == FORMAT_DESCRIPTION_EVENT and length <= stop - r:
                        self.edges.take_format(p, r, length)
                    n = length if length <= stop - r else stop - r
                    bits = ((flags >> BOUNDARY_SHIFT) & 15) ^ self.edges.bits(
                        p, r, n - (CHECKSUM_SIZE if checksum and n == length else 0)
                    )
                if t == FORMAT_DESCRIPTION_EVENT and bits:
                    # It has a CRC32 in files without checksums too, if the server knows checksums at all.
                    if length > stop - r:
                        break
                    at = r + length - CHECKSUM_SIZE
                    checksum = length >= HEADER_SIZE + CHECKSUM_SIZE and crc32_of(p, r, at, 0) == load32(p, at)
                if bits and checksum and length >= HEADER_SIZE + CHECKSUM_SIZE:
                    self.effect = flags_effect(bits, length - HEADER_SIZE - CHECKSUM_SIZE)
                if length <= stop - r and payload < MAX_PAYLOAD:
                    o = self.put_head(q, o, payload, True)
                    copy_bytes(q, o, p, r, length)
                    if bits:
                        q[o + FLAGS_AT + 1] = q[o + FLAGS_AT + 1] ^ (bits << 2)
                        if self.effect:
                            at = length - CHECKSUM_SIZE
                            store32(q, o + at, load32(p, r + at) ^ self.effect)
                    o += length
                    r += length
                    self.events += 1
                    continue
                # an event that continues in the next call, or in a second packet
                if payload >= MAX_PAYLOAD:
                    self.packet_left = MAX_PAYLOAD - prefix
                    self.more_packets = True
                    o = self.put_head(q, o, MAX_PAYLOAD, True)
                else:
                    self.packet_left = length
                    o = self.put_head(q, o, payload, True)
                if self.asks and ends_transaction(t, flags):
                    q[o - 1] = 1
                    self.asked = True
                    self.asked_events += 1
                    self.asked_end = -1
                self.event_left = length
                copy_bytes(q, o, p, r, HEADER_SIZE)
                if bits:
                    q[o + FLAGS_AT + 1] = q[o + FLAGS_AT + 1] ^ (bits << 2)
                o += HEADER_SIZE
                r += HEADER_SIZE
                self.event_left -= HEADER_SIZE
                self.packet_left -= HEADER_SIZE
                continue
            if self.packet_left == 0 and self.more_packets:
                n = self.event_left
                if n >= MAX_PAYLOAD:
                    n = MAX_PAYLOAD
                else:
                    self.more_packets = False
                self.packet_left = n
                o = self.put_head(q, o, n, False)
                if self.event_left == 0:
                    self.finish_event(r)
                continue
            if r >= stop:
                break
            n = stop - r
            if n > self.event_left:
                n = self.event_left
            if self.leaving_out:
                r += n
                self.event_left -= n
                if self.event_left == 0:
                    self.leaving_out = False
                    self.events += 1
                continue
            if self.effect and n > self.event_left - CHECKSUM_SIZE:
                # the checksum changes: its four bytes are taken together
                n = self.event_left - CHECKSUM_SIZE
                if n <= 0:
                    if stop - r < self.event_left:
                        break
                    stored = load32(p, r) ^ self.effect
                    for n in range(CHECKSUM_SIZE):
                        if self.packet_left == 0:
                            hold = self.event_left
                            if hold >= MAX_PAYLOAD:
                                hold = MAX_PAYLOAD
                            else:
                                self.more_packets = False
                            self.packet_left = hold
                            o = self.put_head(q, o, hold, False)
                        q[o] = (stored >> (8 * n)) & 255
                        o += 1
                        r += 1
                        self.event_left -= 1
                        self.packet_left -= 1
                    if not self.more_packets:
                        self.finish_event(r)
                    continue
            if n > self.packet_left:
                n = self.packet_left
            copy_bytes(q, o, p, r, n)
            o += n
            r += n
            self.event_left -= n
            self.packet_left -= n
            if self.event_left == 0 and not self.more_packets:
                self.finish_event(r)
        self.consumed = r
        return o
