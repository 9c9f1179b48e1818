# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The head of a GTID event, and a table of the keys that say who numbers transactions.

A key is, for MySQL, uuid 16 and the tag's characters; for MariaDB domain u32, server u32. It is kept in 64 bytes: 48 of key,
filled up with zeros (no tag has one), and at 63 its length.
"""

from array import array

import cython

if not cython.compiled:
    from protocol.kernel.pure import copy_bytes, load32, load64, store32, store64

HEAD = 256  # bytes of a GTID event that hold all that is read of it
KEY_ROW = 64
C_MAX_GNO = cython.declare(cython.ulonglong, 0x7FFFFFFFFFFFFFFE)
C_HASH = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
# Of this process alone: nobody can choose keys that fall into one bucket.
C_SEED = cython.declare(cython.ulonglong, hash("GTID keys") & 0xFFFFFFFFFFFFFFFF)
C_U64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


class GtidHead:
    """What was read last: `key` and `number`."""

    def __init__(self):
        if not cython.compiled:
            self.key = bytearray(64)
        self.number = 0
        self.at = 0

    def take(self, p, at, n, t):
        """Reads the event of type t (33, 42, 162) at p[at], of which n bytes (HEAD, or all) are there; False: no GTID."""
        body = at + 19
        end = at + n
        k = self.key
        for i in range(8):
            store64(k, i << 3, 0)
        if t == 162:
            if n < 19 + 13:
                return False
            store32(k, 0, load32(p, body + 8))
            store32(k, 4, load32(p, at + 5))
            k[63] = 8
            self.number = load64(p, body)
            return True
        length = 16
        number = 0
        if t == 33:
            if n < 19 + 25:
                return False
            copy_bytes(k, 0, p, body + 1, 16)
            number = load64(p, body + 17)
        else:
            # The tagged serialization: version, size, last field that may not be ignored, then fields in ascending order.
            self.at = body
            self.varied(p, end)
            self.varied(p, end)
            self.varied(p, end)
            while self.at < end:
                field = self.varied(p, end)
                if field == 0:
                    self.varied(p, end)
                elif field == 1:
                    for i in range(16):
                        value = self.varied(p, end)
                        if value > 255:
                            return False
                        k[i] = value
                elif field == 2:
                    number = self.varied(p, end)
                    if number & 1:  # zig-zag: it was negative
                        return False
                    number >>= 1
                elif field == 3:
                    value = self.varied(p, end)
                    if self.at > end or value > 32 or value > end - self.at:
                        return False
                    length = 16 + value
                    copy_bytes(k, 16, p, self.at, value)
                    self.at += value
                else:
                    break
            if self.at > end:
                return False
            for i in range(16, length):
                c = k[i]
                if not (97 <= c <= 122 or c == 95 or (48 <= c <= 57 and i > 16)):
                    return False
        if number == 0 or number > C_MAX_GNO:
            return False
        k[63] = length
        self.number = number
        return True

    def varied(self, p, end):
        """The number of 1 to 9 bytes at `self.at`, which moves behind it; beyond `end` if it is cut."""
        if self.at >= end:
            self.at = end + 1
            return 0
        first = p[self.at]
        following = 0
        while following < 8 and first >> following & 1:
            following += 1
        if self.at + 1 + following > end:
            self.at = end + 1
            return 0
        value = 0
        i = following
        while i > 0:
            value = value << 8 | p[self.at + i]
            i -= 1
        self.at += 1 + following
        if following == 8:
            return value
        return value << (7 - following) | first >> (following + 1)


class KeyTable:
    """Keys numbered from 0 in the order in which they were added."""

    def __init__(self):
        self.count = 0
        self.capacity = 32
        self.last = 0
        self.keys = bytearray(KEY_ROW * self.capacity)
        self.buckets = array("q", bytes(16 * self.capacity))
        self.take_views()

    def take_views(self):
        # A view keeps its array from being resized, so growing makes new ones.
        if cython.compiled:
            self.keys_view = self.keys
            self.buckets_view = self.buckets
        else:
            self.keys_view = memoryview(self.keys)
            self.buckets_view = memoryview(self.buckets)

    def is_full(self):
        """Whether `grow` must come before `add`."""
        return self.count == self.capacity

    def find(self, k):
        """Number of the key k[0:64], or -1."""
        if self.count and self.is_at(k, self.last):
            return self.last
        at = bucket_of(k) & (2 * self.capacity - 1)
        while self.buckets_view[at] != 0:
            if self.is_at(k, self.buckets_view[at] - 1):
                self.last = self.buckets_view[at] - 1
                return self.last
            at = (at + 1) & (2 * self.capacity - 1)
        return -1

    def add(self, k):
        """Adds the key k[0:64], which is not there; returns its number."""
        if cython.compiled:
            copy_bytes(cython.address(self.keys_view[0]), self.count << 6, k, 0, 64)
        else:
            copy_bytes(self.keys_view, self.count << 6, k, 0, 64)
        self.put(k, self.count)
        self.last = self.count
        self.count += 1
        return self.last

    def put(self, k, number):
        at = bucket_of(k) & (2 * self.capacity - 1)
        while self.buckets_view[at] != 0:
            at = (at + 1) & (2 * self.capacity - 1)
        self.buckets_view[at] = number + 1

    def is_at(self, k, number):
        at = number << 6
        i = 0
        while i < 48:
            if cython.compiled:
                if load64(cython.address(self.keys_view[0]), at + i) != load64(k, i):
                    return False
            elif load64(self.keys_view, at + i) != load64(k, i):
                return False
            i += 8
        return True

    def grow(self):
        """Room for twice as many."""
        self.capacity *= 2
        keys = bytearray(KEY_ROW * self.capacity)
        keys[: len(self.keys)] = self.keys
        self.keys = keys
        self.buckets = array("q", bytes(16 * self.capacity))
        self.take_views()
        for i in range(self.count):
            if cython.compiled:
                self.put(cython.address(self.keys_view[i << 6]), i)
            else:
                self.put(self.keys_view[i << 6 : (i + 1) << 6], i)

    def key(self, number):
        """The bytes of key `number`. Raises: IndexError."""
        if not 0 <= number < self.count:
            raise IndexError(number)
        at = number * KEY_ROW
        return bytes(self.keys[at : at + self.keys[at + 63]])

    def add_bytes(self, key):
        """Adds a key of 48 bytes at most, from Python; returns its number, also of one that is there."""
        if len(key) > 48:
            raise ValueError(f"a key of {len(key)} bytes; 48 are the most")
        if self.is_full():
            self.grow()
        row = bytearray(64)
        row[: len(key)] = key
        row[63] = len(key)
        if cython.compiled:
            number = self.find(cython.cast(cython.p_uchar, row))
            if number < 0:
                number = self.add(cython.cast(cython.p_uchar, row))
            return number
        number = self.find(row)
        return number if number >= 0 else self.add(row)


def bucket_of(k):
    value = C_SEED
    i = 0
    while i < 48:
        value = ((value ^ load64(k, i)) * C_HASH) & C_U64
        value ^= value >> 29
        i += 8
    return value
