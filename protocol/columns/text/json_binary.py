# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""MySQL's binary JSON as JSON text, and the differences of a partial update as a list.

Layout of a document: type u8, value. Objects and arrays, small ones with numbers of two bytes, large ones of four:
count | size in bytes | for each key offset, length u16 | for each value type u8, and its offset or, where it fits, the value
itself | keys | values. Offsets count from the count on. Source: MySQL 9.7 `json_binary.h`.

Lengths are hostile: entries may overlap or point back, so that a few bytes would become gigabytes of text. Servers write no
byte twice, so what is read may not be more than the document has (`budget`).
"""

import cython

if not cython.compiled:
    from protocol.columns.text.decimal_text import decimal_bytes, put_decimal
    from protocol.columns.text.json_text import put_base64, put_signed, put_string, put_unsigned, put_word
    from protocol.columns.text.real_text import put_double
    from protocol.columns.text.temporal_text import put_packed_date, put_packed_datetime, put_packed_time
    from protocol.kernel.pure import load16, load32, load64

C_INVALID = cython.declare(cython.int, -1)
C_NO_ROOM = cython.declare(cython.int, -2)
WRAP_32 = cython.declare(cython.longlong, 1 << 32)
HALF_32 = cython.declare(cython.longlong, 1 << 31)
LEAST = cython.declare(cython.longlong, -(1 << 63))  # its negative is none
DEEPEST = cython.declare(cython.int, 128)  # MySQL's limit is 100


def signed64(value):
    if cython.compiled:
        return value
    else:
        return value - (1 << 64) if value >= 1 << 63 else value


def signed32(value):
    wide = value
    if wide >= HALF_32:
        wide -= WRAP_32
    return wide


def signed16(value):
    wide = value
    if wide >= 0x8000:
        wide -= 0x10000
    return wide


class JsonBinary:
    """Writes documents; INVALID where one is malformed, NO_ROOM where there is none."""

    def __init__(self):
        self.budget = 0
        self.cursor = 0

    def put_column(self, out, at, room, p, start, stop):
        """The document of a column: as {"$json":...} where it is null, which SQL's NULL is too, or looks like what is written
        for something else ({"$diffs":...}, {"base64":...}).
        """
        if not self.is_ambiguous(p, start, stop):
            return self.put_document(out, at, room, p, start, stop)
        if room - at < 96:
            return C_NO_ROOM
        at = put_word(out, at, b'{"$json":', 9)
        at = self.put_document(out, at, room, p, start, stop)
        if at < 0:
            return at
        if room - at < 96:
            return C_NO_ROOM
        out[at] = 125
        return at + 1

    def is_ambiguous(self, p, start, stop):
        """Whether the document is null, or an object whose one key is "base64" or begins with $."""
        if start == stop:
            return True
        t = p[start]
        start += 1
        if t == 4:
            return start < stop and p[start] == 0
        if t > 1:
            return False
        width = 4 if t else 2
        key = start + 2 * width
        if stop - key < width + 2 or (load32(p, start) if t else load16(p, start)) != 1:
            return False
        length = load16(p, key + width)
        key = start + (load32(p, key) if t else load16(p, key))
        if length == 0 or length > stop - key:
            return False
        return p[key] == 36 or (length == 6 and load32(p, key) == 0x65736162 and load16(p, key + 4) == 0x3436)

    def put_document(self, out, at, room, p, start, stop):
        """The document at p[start:stop]. One of no bytes is `null`, as servers read it."""
        if room - at < 96:
            return C_NO_ROOM
        if start == stop:
            return self.put_literal(out, at, 0)
        self.budget = stop - start
        return self.put_value(out, at, room, p, start + 1, stop, p[start], 0)

    def put_literal(self, out, at, value):
        if value == 0:
            return put_word(out, at, b"null", 4)
        if value == 1:
            return put_word(out, at, b"true", 4)
        if value == 2:
            return put_word(out, at, b"false", 5)
        return C_INVALID

    def put_value(self, out, at, room, p, start, stop, t, depth):
        """The value of type `t` at p[start:], which ends at `stop` or before."""
        if room - at < 96:
            return C_NO_ROOM
        if t <= 3:
            if depth >= DEEPEST:
                return C_INVALID
            return self.put_container(out, at, room, p, start, stop, t, depth)
        if t == 4:
            return self.put_literal(out, at, p[start]) if start < stop else C_INVALID
        if t == 5 or t == 6:
            if stop - start < 2:
                return C_INVALID
            if t == 6:
                return put_unsigned(out, at, load16(p, start))
            return put_signed(out, at, signed16(load16(p, start)))
        if t == 7 or t == 8:
            if stop - start < 4:
                return C_INVALID
            if t == 8:
                return put_unsigned(out, at, load32(p, start))
            return put_signed(out, at, signed32(load32(p, start)))
        if t == 9 or t == 10 or t == 11:
            if stop - start < 8:
                return C_INVALID
            if t == 9:
                return put_signed(out, at, signed64(load64(p, start)))
            if t == 10:
                return put_unsigned(out, at, load64(p, start))
            return put_double(out, at, p, start)
        if t == 12:
            self.cursor = start
            length = self.read_size(p, stop)
            if length < 0:
                return C_INVALID
            return put_string(out, at, room, p, self.cursor, self.cursor + length)
        if t == 15:
            return self.put_opaque(out, at, room, p, start, stop)
        return C_INVALID

    def put_container(self, out, at, room, p, start, stop, t, depth):
        large = t & 1
        is_object = t < 2
        width = 4 if large else 2
        if stop - start < 2 * width:
            return C_INVALID
        count = load32(p, start) if large else load16(p, start)
        size = load32(p, start + 4) if large else load16(p, start + 2)
        head = 2 * width + count * (1 + width)
        if is_object:
            head += count * (width + 2)
        if size > stop - start or head > size:
            return C_INVALID
        stop = start + size
        self.budget -= head
        if self.budget < 0:
            return C_INVALID
        out[at] = 123 if is_object else 91
        at += 1
        entry = start + head - count * (1 + width)
        for i in range(count):
            if room - at < 96:
                return C_NO_ROOM
            if i:
                out[at] = 44
                at += 1
            if is_object:
                key = start + 2 * width + i * (width + 2)
                length = load16(p, key + width)
                key = load32(p, key) if large else load16(p, key)
                self.budget -= length
                if key < head or key + length > size or self.budget < 0:
                    return C_INVALID
                at = put_string(out, at, room, p, start + key, start + key + length)
                if at < 0:
                    return at
                if room - at < 96:
                    return C_NO_ROOM
                out[at] = 58
                at += 1
            kind = p[entry]
            if 4 <= kind <= 6 or (large and (kind == 7 or kind == 8)):
                at = self.put_value(out, at, room, p, entry + 1, entry + 1 + width, kind, depth + 1)
            else:
                there = load32(p, entry + 1) if large else load16(p, entry + 1)
                if there < head or there >= size:
                    return C_INVALID
                at = self.put_value(out, at, room, p, start + there, stop, kind, depth + 1)
            if at < 0:
                return at
            entry += 1 + width
        if room - at < 96:
            return C_NO_ROOM
        out[at] = 125 if is_object else 93
        return at + 1

    def read_size(self, p, stop):
        """The length at `cursor`, seven bits a byte, of what follows, all of which is before `stop`; -1: it is not."""
        size = 0
        for i in range(5):
            if self.cursor >= stop:
                return -1
            part = p[self.cursor] & 127
            size = size | part << (7 * i)
            self.cursor += 1
            if p[self.cursor - 1] < 128:
                self.budget -= size
                if size > stop - self.cursor or self.budget < 0:
                    return -1
                return size
        return -1

    def put_opaque(self, out, at, room, p, start, stop):
        """A value of one of SQL's types: type u8 | length | value. What JSON has no form for is as MySQL prints it."""
        if start >= stop:
            return C_INVALID
        t = p[start]
        self.cursor = start + 1
        size = self.read_size(p, stop)
        if size < 0:
            return C_INVALID
        data = self.cursor
        if t == 246:  # precision, scale, digits
            if size < 2 or p[data] > 65 or p[data + 1] > p[data] or p[data] == 0:
                return C_INVALID
            if decimal_bytes(p[data] - p[data + 1]) + decimal_bytes(p[data + 1]) != size - 2:
                return C_INVALID
            return put_decimal(out, at, p, data + 2, p[data], p[data + 1])
        if t == 7 or t == 10 or t == 11 or t == 12:
            if size != 8:
                return C_INVALID
            return self.put_temporal(out, at, p, data, t)
        at = put_word(out, at, b'"base64:type', 12)
        at = put_unsigned(out, at, t)
        out[at] = 58
        at = put_base64(out, at + 1, room - 1, p, data, data + size)
        if at < 0:
            return at
        out[at] = 34
        return at + 1

    def put_temporal(self, out, at, p, data, t):
        """DATE, TIME, DATETIME, TIMESTAMP: a packed number of 64 bits, the last 24 of them µs."""
        out[at] = 34
        at += 1
        value = signed64(load64(p, data))
        negative = value < 0
        if negative:
            value = 0 if value == LEAST else -value
        if t == 10:
            at = put_packed_date(out, at, value >> 24)
        elif t == 11:
            at = put_packed_time(out, at, negative, value >> 24, value & 0xFFFFFF, 6)
        else:
            at = put_packed_datetime(out, at, value >> 24, value & 0xFFFFFF, 6)
        out[at] = 34
        return at + 1

    def read_packed(self, p, stop):
        """The packed length at `cursor` of what follows, all of which is before `stop`; -1: it is not."""
        if self.cursor >= stop:
            return -1
        first = p[self.cursor]
        length = first
        self.cursor += 1
        if first == 0xFC and stop - self.cursor >= 2:
            length = load16(p, self.cursor)
            self.cursor += 2
        elif first == 0xFD and stop - self.cursor >= 3:
            length = load16(p, self.cursor) | p[self.cursor + 2] << 16
            self.cursor += 3
        elif first == 0xFE and stop - self.cursor >= 8:
            if p[self.cursor + 4] or p[self.cursor + 5] or p[self.cursor + 6] or p[self.cursor + 7]:
                return -1
            length = load32(p, self.cursor)
            self.cursor += 8
        elif first >= 0xFB:
            return -1
        return length if length <= stop - self.cursor else -1

    def put_diffs(self, out, at, room, p, start, stop):
        """What a partial update does to a document: {"$diffs":[{"op":...,"path":...,"value":...},...]}.

        Layout, repeated: operation u8 (0 replace, 1 insert, 2 remove) | path's length packed, path | unless removed: document's
        length packed, document. Source: MySQL 9.7 `json_diff.cc`.
        """
        if room - at < 96:
            return C_NO_ROOM
        at = put_word(out, at, b'{"$diffs":[', 11)
        first = True
        while start < stop:
            if room - at < 96:
                return C_NO_ROOM
            if not first:
                out[at] = 44
                at += 1
            first = False
            operation = p[start]
            if operation == 0:
                at = put_word(out, at, b'{"op":"replace","path":', 23)
            elif operation == 1:
                at = put_word(out, at, b'{"op":"insert","path":', 22)
            elif operation == 2:
                at = put_word(out, at, b'{"op":"remove","path":', 22)
            else:
                return C_INVALID
            self.cursor = start + 1
            size = self.read_packed(p, stop)
            if size < 0:
                return C_INVALID
            start = self.cursor + size
            at = put_string(out, at, room, p, self.cursor, start)
            if at < 0:
                return at
            if operation != 2:
                if room - at < 96:
                    return C_NO_ROOM
                at = put_word(out, at, b',"value":', 9)
                self.cursor = start
                size = self.read_packed(p, stop)
                if size < 0:
                    return C_INVALID
                start = self.cursor + size
                at = self.put_document(out, at, room, p, self.cursor, start)
                if at < 0:
                    return at
            if room - at < 96:
                return C_NO_ROOM
            out[at] = 125
            at += 1
        if room - at < 96:
            return C_NO_ROOM
        out[at] = 93
        out[at + 1] = 125
        return at + 2
