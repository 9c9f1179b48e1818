# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""MySQL's binary JSON as JSON text, and the differences of a partial update as a list.

Layout of a document: type u8, value. Objects and arrays, small ones with numbers of two bytes, large ones of four: count | size in
bytes | for each key offset, length u16 | for each value type u8, and its offset or, if it fits, the value itself | keys | values.
Offsets count from the count on. Source: MySQL 9.7 `json_binary.h`.

Lengths are untrusted: entries may overlap or point back, so that a few bytes would become gigabytes of text. Servers write no byte
twice, so no more bytes may be read than the document has (`budget`).
"""

import cython

if not cython.compiled:
    from protocol.columns.codes.column_codes import *
    from protocol.columns.text.json_text import put_base64, put_signed, put_string, put_unsigned, put_word
    from protocol.columns.text.scalar_text import (
        decimal_bytes,
        put_decimal,
        put_double,
        put_packed_date,
        put_packed_datetime,
        put_packed_time,
    )
    from protocol.kernel.codes import *
    from protocol.kernel.pure import Bytes, Writable, load16, load32, load64, magnitude, signed64


class JsonBinary:
    """Writes documents; the result is VALUE_INVALID for a malformed one, NO_ROOM if it does not fit."""

    def __init__(self) -> None:
        self.budget = 0
        self.cursor = 0

    def put_column(self, out: Writable, at: int, room: int, p: Bytes, start: int, stop: int) -> int:
        """Write the document of a column: as {"$json":...} if it is null, which SQL's NULL is too, or looks like other output
        ({"$diffs":...}, {"base64":...}).
        """
        if not self.is_ambiguous(p, start, stop):
            return self.put_document(out, at, room, p, start, stop)
        if room - at < SPARE:
            return NO_ROOM
        at = put_word(out, at, b'{"$json":', 9)
        at = self.put_document(out, at, room, p, start, stop)
        if at < 0:
            return at
        if room - at < SPARE:
            return NO_ROOM
        out[at] = 125
        return at + 1

    def is_ambiguous(self, p: Bytes, start: int, stop: int) -> bool:
        """Return whether the document is null, or an object whose one key is "base64" or begins with $."""
        if start == stop:
            return True
        t = p[start]
        start += 1
        if t == JSON_LITERAL:
            return start < stop and p[start] == JSON_NULL
        if t > JSON_LARGE_OBJECT:
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

    def put_document(self, out: Writable, at: int, room: int, p: Bytes, start: int, stop: int) -> int:
        """Write the document at p[start:stop]. One of no bytes is `null`, as for servers."""
        if room - at < SPARE:
            return NO_ROOM
        if start == stop:
            return self.put_literal(out, at, JSON_NULL)
        self.budget = stop - start
        return self.put_value(out, at, room, p, start + 1, stop, p[start], 0)

    def put_literal(self, out: Writable, at: int, value: int) -> int:
        if value == JSON_NULL:
            return put_word(out, at, b"null", 4)
        if value == JSON_TRUE:
            return put_word(out, at, b"true", 4)
        if value == JSON_FALSE:
            return put_word(out, at, b"false", 5)
        return VALUE_INVALID

    def put_value(self, out: Writable, at: int, room: int, p: Bytes, start: int, stop: int, t: int, depth: int) -> int:
        """Write the value of type `t` at p[start:], which ends at `stop` or before."""
        if room - at < SPARE:
            return NO_ROOM
        if t <= JSON_LARGE_ARRAY:
            if depth >= JSON_DEEPEST:
                return VALUE_INVALID
            return self.put_container(out, at, room, p, start, stop, t, depth)
        if t == JSON_LITERAL:
            return self.put_literal(out, at, p[start]) if start < stop else VALUE_INVALID
        if t == JSON_INT16 or t == JSON_UINT16:
            if stop - start < 2:
                return VALUE_INVALID
            number = load16(p, start)
            if t == JSON_UINT16:
                return put_unsigned(out, at, number)
            return put_signed(out, at, number - 0x10000 if number >> 15 else number)
        if t == JSON_INT32 or t == JSON_UINT32:
            if stop - start < 4:
                return VALUE_INVALID
            number = load32(p, start)
            if t == JSON_UINT32:
                return put_unsigned(out, at, number)
            return put_signed(out, at, number - U32_MAX - 1 if number >> 31 else number)
        if JSON_INT64 <= t <= JSON_DOUBLE:
            if stop - start < 8:
                return VALUE_INVALID
            if t == JSON_INT64:
                return put_signed(out, at, signed64(load64(p, start)))
            if t == JSON_UINT64:
                return put_unsigned(out, at, load64(p, start))
            return put_double(out, at, p, start)
        if t == JSON_STRING:
            self.cursor = start
            length = self.read_size(p, stop)
            if length < 0:
                return VALUE_INVALID
            return put_string(out, at, room, p, self.cursor, self.cursor + length)
        if t == JSON_OPAQUE:
            return self.put_opaque(out, at, room, p, start, stop)
        return VALUE_INVALID

    def put_container(
        self, out: Writable, at: int, room: int, p: Bytes, start: int, stop: int, t: int, depth: int
    ) -> int:
        large = t == JSON_LARGE_OBJECT or t == JSON_LARGE_ARRAY
        is_object = t < JSON_SMALL_ARRAY
        width = 4 if large else 2
        if stop - start < 2 * width:
            return VALUE_INVALID
        count = load32(p, start) if large else load16(p, start)
        size = load32(p, start + 4) if large else load16(p, start + 2)
        head = 2 * width + count * (1 + width)
        if is_object:
            head += count * (width + 2)
        if size > stop - start or head > size:
            return VALUE_INVALID
        stop = start + size
        self.budget -= head
        if self.budget < 0:
            return VALUE_INVALID
        out[at] = 123 if is_object else 91
        at += 1
        entry = start + head - count * (1 + width)
        for i in range(count):
            if room - at < SPARE:
                return NO_ROOM
            if i:
                out[at] = 44
                at += 1
            if is_object:
                key = start + 2 * width + i * (width + 2)
                length = load16(p, key + width)
                key = load32(p, key) if large else load16(p, key)
                self.budget -= length
                if key < head or key + length > size or self.budget < 0:
                    return VALUE_INVALID
                at = put_string(out, at, room, p, start + key, start + key + length)
                if at < 0:
                    return at
                if room - at < SPARE:
                    return NO_ROOM
                out[at] = 58
                at += 1
            kind = p[entry]
            if JSON_LITERAL <= kind <= JSON_UINT16 or (large and (kind == JSON_INT32 or kind == JSON_UINT32)):
                at = self.put_value(out, at, room, p, entry + 1, entry + 1 + width, kind, depth + 1)
            else:
                there = load32(p, entry + 1) if large else load16(p, entry + 1)
                if there < head or there >= size:
                    return VALUE_INVALID
                at = self.put_value(out, at, room, p, start + there, stop, kind, depth + 1)
            if at < 0:
                return at
            entry += 1 + width
        if room - at < SPARE:
            return NO_ROOM
        out[at] = 125 if is_object else 93
        return at + 1

    def read_size(self, p: Bytes, stop: int) -> int:
        """Return the length at `cursor`, seven bits a byte, of the data that follows, all before `stop`; -1: it is not."""
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

    def put_opaque(self, out: Writable, at: int, room: int, p: Bytes, start: int, stop: int) -> int:
        """Write a value of one of SQL's types: type u8 | length | value. Values that JSON cannot express are as MySQL prints them."""
        if start >= stop:
            return VALUE_INVALID
        t = p[start]
        self.cursor = start + 1
        size = self.read_size(p, stop)
        if size < 0:
            return VALUE_INVALID
        data = self.cursor
        if t == FIELD_NEWDECIMAL:  # precision, scale, digits
            if size < 2 or p[data] > 65 or p[data + 1] > p[data] or p[data] == 0:
                return VALUE_INVALID
            if decimal_bytes(p[data] - p[data + 1]) + decimal_bytes(p[data + 1]) != size - 2:
                return VALUE_INVALID
            return put_decimal(out, at, p, data + 2, p[data], p[data + 1])
        if t == FIELD_TIMESTAMP or t == FIELD_DATE or t == FIELD_TIME or t == FIELD_DATETIME:
            if size != 8:
                return VALUE_INVALID
            return self.put_temporal(out, at, p, data, t)
        at = put_word(out, at, b'"base64:type', 12)
        at = put_unsigned(out, at, t)
        out[at] = 58
        at = put_base64(out, at + 1, room - 1, p, data, data + size)
        if at < 0:
            return at
        out[at] = 34
        return at + 1

    def put_temporal(self, out: Writable, at: int, p: Bytes, data: int, t: int) -> int:
        """Write DATE, TIME, DATETIME or TIMESTAMP: a packed number of 64 bits, the last 24 of them µs."""
        out[at] = 34
        at += 1
        value = signed64(load64(p, data))
        packed = magnitude(value)
        if t == FIELD_DATE:
            at = put_packed_date(out, at, packed >> 24)
        elif t == FIELD_TIME:
            at = put_packed_time(out, at, value < 0, packed >> 24, packed & 0xFFFFFF, 6)
        else:
            at = put_packed_datetime(out, at, packed >> 24, packed & 0xFFFFFF, 6)
        out[at] = 34
        return at + 1

    def read_packed(self, p: Bytes, stop: int) -> int:
        """Return the packed length at `cursor` of the data that follows, all before `stop`; -1: it is not."""
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

    def put_diffs(self, out: Writable, at: int, room: int, p: Bytes, start: int, stop: int) -> int:
        """Write the changes of a partial update to a document: {"$diffs":[{"op":...,"path":...,"value":...},...]}.

        Layout, repeated: operation u8 (0 replace, 1 insert, 2 remove) | path's length packed, path | unless removed: document's
        length packed, document. Source: MySQL 9.7 `json_diff.cc`.
        """
        if room - at < SPARE:
            return NO_ROOM
        at = put_word(out, at, b'{"$diffs":[', 11)
        first = True
        while start < stop:
            if room - at < SPARE:
                return NO_ROOM
            if not first:
                out[at] = 44
                at += 1
            first = False
            operation = p[start]
            if operation == DIFF_REPLACE:
                at = put_word(out, at, b'{"op":"replace","path":', 23)
            elif operation == DIFF_INSERT:
                at = put_word(out, at, b'{"op":"insert","path":', 22)
            elif operation == DIFF_REMOVE:
                at = put_word(out, at, b'{"op":"remove","path":', 22)
            else:
                return VALUE_INVALID
            self.cursor = start + 1
            size = self.read_packed(p, stop)
            if size < 0:
                return VALUE_INVALID
            start = self.cursor + size
            at = put_string(out, at, room, p, self.cursor, start)
            if at < 0:
                return at
            if operation != DIFF_REMOVE:
                if room - at < SPARE:
                    return NO_ROOM
                at = put_word(out, at, b',"value":', 9)
                self.cursor = start
                size = self.read_packed(p, stop)
                if size < 0:
                    return VALUE_INVALID
                start = self.cursor + size
                at = self.put_document(out, at, room, p, self.cursor, start)
                if at < 0:
                    return at
            if room - at < SPARE:
                return NO_ROOM
            out[at] = 125
            at += 1
        if room - at < SPARE:
            return NO_ROOM
        out[at] = 93
        out[at + 1] = 125
        return at + 2
