# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The head of a GTID event, and a table of the keys of the sources that number transactions.

A key is, for MySQL, uuid 16 and the tag's characters; for MariaDB domain u32, server u32. It is kept in 64 bytes: 48 of key, filled
up with zeros (no tag contains one), and at 63 its length.
"""

from array import array

import cython

from protocol.errors import Malformed, Truncated

if not cython.compiled:
    from protocol.kernel.codes import *
    from protocol.kernel.pure import Bytes, bytes_of, copy_bytes, load32, load64, store32, store64, text_of

# It differs in each process: keys that fall into one bucket cannot be chosen by a client.
_SEED = hash("GTID keys") & 0xFFFFFFFFFFFFFFFF


# The roles of types; all others have ROLE_OTHER.
_ROLES = (
    (ROLE_GTID, (GTID_EVENT, ANONYMOUS_GTID_EVENT, GTID_TAGGED_EVENT, MARIADB_GTID_EVENT)),
    (
        ROLE_STATEMENT,
        (
            QUERY_EVENT,
            QUERY_COMPRESSED_EVENT,
            EXECUTE_LOAD_QUERY_EVENT,
            LOAD_EVENT,
            NEW_LOAD_EVENT,
            EXEC_LOAD_EVENT,
            DELETE_FILE_EVENT,
        ),
    ),
    (
        ROLE_ALONE,
        (
            ROTATE_EVENT,
            STOP_EVENT,
            FORMAT_DESCRIPTION_EVENT,
            PREVIOUS_GTIDS_EVENT,
            BINLOG_CHECKPOINT_EVENT,
            GTID_LIST_EVENT,
        ),
    ),
)


class TaggedFields:
    """The fields of the body of a Gtid_tagged event (42), in MySQL's tagged serialization; see `take`.

    `found` has a bit for each field that was there, `numbers` their values, unsigned, and for the tag its length, `uuid` the uuid;
    the tag is at `tag_at`.
    """

    def __init__(self) -> None:
        if not cython.compiled:
            self.numbers = [0] * (TAGGED_TICKET + 1)
            self.uuid = bytearray(UUID_SIZE)
        self.at = 0
        self.found = 0
        self.tag_at = 0

    def take(self, p: Bytes, body: int, end: int, last: int) -> bool:
        """Read the fields up to number `last` of p[body:end]. False: they are cut (`at` is after `end`), or the uuid is invalid.

        Layout: version, size and last field that may not be ignored, then (field id, value)*, all numbers of variable length: 0 flags
        | 1 uuid, 16 numbers | 2 gno, signed | 3 tag: length, text | 4 last_committed, signed | 5 sequence_number, signed | 6, 7
        immediate and original commit time µs | 8 transaction length | 9, 10 immediate and original server version | 11 ticket. Fields
        after an unknown one are not read.
        Source: MySQL 9.7 `libs/mysql/serialization`, `Gtid_event::define_fields`; checked on 9.7.4 output.
        """
        self.at = body
        self.found = 0
        self.next_number(p, end)
        self.next_number(p, end)
        self.next_number(p, end)
        while self.at < end:
            field = self.next_number(p, end)
            if field > last:
                break
            self.found |= 1 << field
            if field == TAGGED_UUID:
                for i in range(UUID_SIZE):
                    value = self.next_number(p, end)
                    if value > 255:
                        return False
                    self.uuid[i] = value
                continue
            value = self.next_number(p, end)
            self.numbers[field] = value
            if field == TAGGED_TAG:
                self.tag_at = self.at
                if self.at > end or value > end - self.at:
                    self.at = end + 1
                    return False
                self.at += value
        return self.at <= end

    def next_number(self, p: Bytes, end: int) -> int:
        """Return the number of 1 to 9 bytes at `at`, which moves past it; beyond `end` if it is cut.

        The first byte has as many trailing one-bits as bytes follow it. These marks (one bit more than bytes that follow, at most 8)
        are shifted out: below 128 a number is value * 2 in one byte.
        """
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

    def read(self, body: bytes) -> tuple[bytes, bytes, dict[int, int]]:
        """Return uuid, tag and the other fields by number, unsigned, of a body. A missing field has no number here.

        Raises: Truncated; Malformed for a number in the uuid that is no byte.
        """
        whole = self.take(text_of(body), 0, len(body), TAGGED_TICKET)
        if not whole and self.at <= len(body):
            raise Malformed("a number that is no byte of a uuid")
        if not whole:
            raise Truncated(f"a field ends behind the {len(body)} bytes of a Gtid_tagged")
        numbers = {i: self.numbers[i] for i in range(TAGGED_TICKET + 1) if self.found >> i & 1}
        uuid = bytes([self.uuid[i] for i in range(UUID_SIZE)]) if self.found >> TAGGED_UUID & 1 else bytes(UUID_SIZE)
        numbers.pop(TAGGED_UUID, None)
        tag_length = numbers.pop(TAGGED_TAG, 0)
        return uuid, body[self.tag_at : self.tag_at + tag_length], numbers

    def read_number(self, data: bytes, at: int) -> int:
        """Return the number of 1 to 9 bytes at data[at]; `at` is then the offset after it. Raises: Truncated."""
        self.at = at
        number = self.next_number(text_of(data), len(data))
        if self.at > len(data):
            raise Truncated(f"a number that begins at {at} ends behind the {len(data)} bytes")
        return number


class GtidHead:
    """The head that was read last: `key` and `number`. `role` contains that of each event type."""

    def __init__(self) -> None:
        if not cython.compiled:
            self.key = bytearray(KEY_ROW)
            self.role = bytearray(256)
        for i in range(256):
            self.role[i] = ROLE_OTHER
        for role, types in _ROLES:
            for t in types:
                self.role[t] = role
        self.number = 0
        self.tagged = TaggedFields()

    def take(self, p: Bytes, at: int, n: int, t: int) -> bool:
        """Read the GTID event of type t at p[at], of which n bytes (GTID_HEAD, or all) are there; False: no GTID."""
        body = at + HEADER_SIZE
        k = self.key
        for i in range(8):
            store64(k, i << 3, 0)
        if t == MARIADB_GTID_EVENT:
            if n < HEADER_SIZE + MARIADB_GTID_SIZE:
                return False
            store32(k, 0, load32(p, body + MARIADB_GTID_DOMAIN_AT))
            store32(k, 4, load32(p, at + SERVER_ID_AT))
            k[KEY_LENGTH_AT] = 8
            self.number = load64(p, body)
            return True
        length = UUID_SIZE
        if t == GTID_EVENT:
            if n < HEADER_SIZE + GTID_SIZE:
                return False
            copy_bytes(k, 0, p, body + GTID_UUID_AT, UUID_SIZE)
            number = load64(p, body + GTID_NUMBER_AT)
        else:
            if not self.tagged.take(p, body, at + n, TAGGED_TAG):
                return False
            number = 0
            if self.tagged.found >> TAGGED_NUMBER & 1:
                number = self.tagged.numbers[TAGGED_NUMBER]
                if number & 1:  # zig-zag: it was negative
                    return False
                number >>= 1
            if self.tagged.found >> TAGGED_UUID & 1:
                copy_bytes(k, 0, self.tagged.uuid, 0, UUID_SIZE)
            if self.tagged.found >> TAGGED_TAG & 1:
                if self.tagged.numbers[TAGGED_TAG] > LONGEST_TAG:
                    return False
                length = UUID_SIZE + self.tagged.numbers[TAGGED_TAG]
                copy_bytes(k, UUID_SIZE, p, self.tagged.tag_at, length - UUID_SIZE)
            for i in range(UUID_SIZE, length):
                c = k[i]
                if not (97 <= c <= 122 or c == 95 or (48 <= c <= 57 and i > UUID_SIZE)):
                    return False
        if number == 0 or number > MAX_GNO:
            return False
        k[KEY_LENGTH_AT] = length
        self.number = number
        return True

    def take_number(self, p: Bytes, at: int, n: int, t: int) -> bool:
        """Read only the number, if the event has the key that was read last from one of its type: mostly it has."""
        body = at + HEADER_SIZE
        if t == MARIADB_GTID_EVENT:
            if (
                n < HEADER_SIZE + MARIADB_GTID_SIZE
                or load32(p, body + MARIADB_GTID_DOMAIN_AT) != load32(self.key, 0)
                or load32(p, at + SERVER_ID_AT) != load32(self.key, 4)
            ):
                return False
            self.number = load64(p, body)
            return True
        if t == GTID_EVENT:
            if (
                n < HEADER_SIZE + GTID_SIZE
                or load64(p, body + GTID_UUID_AT) != load64(self.key, 0)
                or load64(p, body + GTID_UUID_AT + 8) != load64(self.key, 8)
            ):
                return False
            number = load64(p, body + GTID_NUMBER_AT)
            if number == 0 or number > MAX_GNO:
                return False
            self.number = number
            return True
        return False


class KeyTable:
    """Keys numbered from 0 in the order in which they were added."""

    def __init__(self) -> None:
        self.count = 0
        self.capacity = 32
        self.last = 0
        self.seed = _SEED
        self.keys = bytearray(KEY_ROW * self.capacity)
        self.buckets = array("q", bytes(16 * self.capacity))
        self.take_views()

    def take_views(self) -> None:
        # A view keeps its array from being resized, so growing makes new ones.
        self.keys_view = memoryview(self.keys)
        self.buckets_view = memoryview(self.buckets)

    def is_full(self) -> bool:
        """Return whether `grow` must come before `add`."""
        return self.count == self.capacity

    def find(self, k: Bytes) -> int:
        """Return the number of the key k[0:64], or -1."""
        if self.count and self.is_at(k, self.last):
            return self.last
        at = self.bucket_of(k) & (2 * self.capacity - 1)
        while self.buckets_view[at] != 0:
            if self.is_at(k, self.buckets_view[at] - 1):
                self.last = self.buckets_view[at] - 1
                return self.last
            at = (at + 1) & (2 * self.capacity - 1)
        return -1

    def add(self, k: Bytes) -> int:
        """Add the key k[0:64], which is not there; return its number."""
        if cython.compiled:
            copy_bytes(cython.address(self.keys_view[0]), self.count << 6, k, 0, KEY_ROW)
        else:
            copy_bytes(self.keys_view, self.count << 6, k, 0, KEY_ROW)
        self.put(k, self.count)
        self.last = self.count
        self.count += 1
        return self.last

    def put(self, k: Bytes, number: int) -> None:
        at = self.bucket_of(k) & (2 * self.capacity - 1)
        while self.buckets_view[at] != 0:
            at = (at + 1) & (2 * self.capacity - 1)
        self.buckets_view[at] = number + 1

    def bucket_of(self, k: Bytes) -> int:
        value = self.seed
        i = 0
        while i < LONGEST_KEY:
            value = ((value ^ load64(k, i)) * KEY_HASH) & U64_MAX
            value ^= value >> 29
            i += 8
        return value

    def is_at(self, k: Bytes, number: int) -> bool:
        at = number << 6
        i = 0
        while i < LONGEST_KEY:
            if cython.compiled:
                if load64(cython.address(self.keys_view[0]), at + i) != load64(k, i):
                    return False
            elif load64(self.keys_view, at + i) != load64(k, i):
                return False
            i += 8
        return True

    def grow(self) -> None:
        """Make room for twice as many keys."""
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

    def key(self, number: int) -> bytes:
        """Return the bytes of key `number`. Raises: IndexError."""
        if not 0 <= number < self.count:
            raise IndexError(number)
        at = number * KEY_ROW
        return bytes(self.keys[at : at + self.keys[at + KEY_LENGTH_AT]])

    def add_bytes(self, key: bytes) -> int:
        """Add a key of at most LONGEST_KEY bytes, from Python; return its number, also if it exists."""
        if len(key) > LONGEST_KEY:
            raise ValueError(f"a key of {len(key)} bytes; {LONGEST_KEY} are the most")
        if self.is_full():
            self.grow()
        row = bytearray(KEY_ROW)
        row[: len(key)] = key
        row[KEY_LENGTH_AT] = len(key)
        k = bytes_of(row)
        number = self.find(k)
        return number if number >= 0 else self.add(k)
