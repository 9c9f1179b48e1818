# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""A row image as a JSON object: the values of its columns, by their table's plan.

Everything in an image is hostile until it is read: each length is held against the event's end before its bytes are.
"""

import cython

from protocol.binlog.compression import unpack_column
from protocol.errors import ProtocolError

if not cython.compiled:
    from protocol.columns.text.decimal_text import put_decimal
    from protocol.columns.text.json_text import put_base64, put_binary, put_signed, put_unsigned, put_word
    from protocol.columns.text.native_types import put_inet4, put_inet6, put_uuid
    from protocol.columns.text.real_text import put_double, put_float
    from protocol.columns.text.temporal_text import (
        load_big,
        put_date,
        put_datetime,
        put_old_datetime,
        put_old_time,
        put_seconds,
        put_time,
        put_timestamp,
    )
    from protocol.kernel.pure import copy_bytes, load16, load24, load32, load64
from protocol.columns.rows.column_plans import ColumnPlans
from protocol.columns.text.charset_text import CharsetText
from protocol.columns.text.json_binary import JsonBinary

C_INVALID = cython.declare(cython.int, -1)
C_NO_ROOM = cython.declare(cython.int, -2)
C_MALFORMED = cython.declare(cython.int, -3)  # the image ends where it may not: nothing behind it can be read
C_UNKNOWN_TYPE = cython.declare(cython.int, -4)
WRAP_32 = cython.declare(cython.ulonglong, 1 << 32)
HALF_32 = cython.declare(cython.ulonglong, 1 << 31)
SPARE = cython.declare(cython.int, 96)

# As column_plans has them.
UNKNOWN = cython.declare(cython.int, 0)
INTEGER = cython.declare(cython.int, 1)
FLOAT = cython.declare(cython.int, 2)
DOUBLE = cython.declare(cython.int, 3)
DECIMAL = cython.declare(cython.int, 4)
BIT = cython.declare(cython.int, 5)
YEAR = cython.declare(cython.int, 6)
DATE = cython.declare(cython.int, 7)
OLD_TIME = cython.declare(cython.int, 8)
OLD_DATETIME = cython.declare(cython.int, 9)
OLD_TIMESTAMP = cython.declare(cython.int, 10)
TIME = cython.declare(cython.int, 11)
DATETIME = cython.declare(cython.int, 12)
TIMESTAMP = cython.declare(cython.int, 13)
ENUM = cython.declare(cython.int, 14)
SET = cython.declare(cython.int, 15)
TEXT = cython.declare(cython.int, 16)
JSON = cython.declare(cython.int, 17)
GEOMETRY = cython.declare(cython.int, 18)
VECTOR = cython.declare(cython.int, 19)
COMPRESSED = cython.declare(cython.int, 20)
NOTHING = cython.declare(cython.int, 21)
UUID = cython.declare(cython.int, 23)
INET4 = cython.declare(cython.int, 24)
INET6 = cython.declare(cython.int, 25)
COLUMN_NUMBERS = cython.declare(cython.int, 12)
AT_SIZE = cython.declare(cython.int, 1)
AT_PREFIX = cython.declare(cython.int, 2)
AT_ARGUMENT = cython.declare(cython.int, 3)
AT_SCALE = cython.declare(cython.int, 4)
AT_UNSIGNED = cython.declare(cython.int, 5)
AT_MODE = cython.declare(cython.int, 6)
AT_NAME = cython.declare(cython.int, 7)
AT_NAME_LENGTH = cython.declare(cython.int, 8)
AT_TEXT = cython.declare(cython.int, 9)
AT_TEXT_COUNT = cython.declare(cython.int, 10)
AT_JSON = cython.declare(cython.int, 11)
MODE_BINARY = cython.declare(cython.int, 1)


def put_integer(out, at, p, start, size, is_unsigned):
    """An integer of 1, 2, 3, 4 or 8 bytes, little-endian."""
    if size == 4:
        value = load32(p, start)
        if not is_unsigned and value >= HALF_32:
            return put_signed(out, at, value - WRAP_32)
    elif size == 8:
        value = load64(p, start)
        if not is_unsigned and value >> 63:
            if cython.compiled:
                return put_signed(out, at, value)
            else:
                return put_signed(out, at, value - (1 << 64))
    elif size == 1:
        value = p[start]
        if not is_unsigned and value & 0x80:
            return put_signed(out, at, value - 0x100)
    elif size == 2:
        value = load16(p, start)
        if not is_unsigned and value & 0x8000:
            return put_signed(out, at, value - 0x10000)
    else:
        value = load24(p, start)
        if not is_unsigned and value & 0x800000:
            return put_signed(out, at, value - 0x1000000)
    return put_unsigned(out, at, value)


def load_little(p, at, size):
    """The number of `size` bytes, little-endian, at `at`."""
    value = 0
    for i in range(size):
        value = value << 8 | p[at + size - 1 - i]
    return value


class RowValues:
    """Writes images. `malformed` is set where a value was not what its type says, and was shown as bytes; `charsets.failure`
    where Python code below the walk failed: whoever walks raises it.
    """

    def __init__(self):
        self.charsets = CharsetText()
        self.plans = ColumnPlans(self.charsets)
        self.json = JsonBinary()
        self.malformed = False
        self.cursor = 0
        self.padded = memoryview(bytearray(1024))

    def put_image(self, out, at, room, q, bitmap, row_width, p, start, stop, plan, present, partial):
        """The image at p[start:], of the `present` columns in the bitmap at q[bitmap:], as an object; `cursor` is behind it.

        `partial`: where the bits are that tell which JSON columns are given as differences; -1: nowhere.
        NO_ROOM; MALFORMED: it passes `stop`; UNKNOWN_TYPE.
        """
        columns = self.plans.first(plan)
        nulls = start
        start += (present + 7) >> 3
        if start > stop:
            return C_MALFORMED
        if room - at < SPARE:
            return C_NO_ROOM
        out[at] = 123
        at += 1
        self.cursor = start
        k = 0
        json = 0
        for i in range(row_width):
            c = columns + i * COLUMN_NUMBERS
            is_partial = False
            if self.plans.columns[c + AT_JSON]:
                if partial >= 0:
                    is_partial = p[partial + (json >> 3)] >> (json & 7) & 1
                json += 1
            if not q[bitmap + (i >> 3)] >> (i & 7) & 1:
                continue
            length = self.plans.columns[c + AT_NAME_LENGTH]
            if room - at < length + SPARE:
                return C_NO_ROOM
            if k:
                out[at] = 44
                at += 1
            at = self.copy_text(out, at, self.plans.columns[c + AT_NAME], length)
            if p[nulls + (k >> 3)] >> (k & 7) & 1:
                out[at] = 110
                out[at + 1] = 117
                out[at + 2] = 108
                out[at + 3] = 108
                at += 4
            else:
                at = self.put_value(out, at, room, p, stop, c, is_partial)
                if at < 0:
                    return at
            k += 1
        if room - at < SPARE:
            return C_NO_ROOM
        out[at] = 125
        return at + 1

    def copy_text(self, out, at, text, length):
        if cython.compiled:
            copy_bytes(out, at, cython.address(self.plans.arena[0]), text, length)
        else:
            copy_bytes(out, at, self.plans.arena, text, length)
        return at + length

    def put_value(self, out, at, room, p, stop, c, partial):
        """The value at `cursor`, which moves behind it."""
        kind = self.plans.columns[c]
        prefix = self.plans.columns[c + AT_PREFIX]
        start = self.cursor
        if prefix == 0:
            size = self.plans.columns[c + AT_SIZE]
        else:
            if kind == UNKNOWN:
                return C_UNKNOWN_TYPE
            if prefix > stop - start:
                return C_MALFORMED
            if prefix == 1:
                size = p[start]
            elif prefix == 2:
                size = load16(p, start)
            elif prefix == 3:
                size = load24(p, start)
            else:
                size = load32(p, start)
            start += prefix
        if kind == UNKNOWN:
            return C_UNKNOWN_TYPE
        end = start + size
        if end > stop:
            return C_MALFORMED
        self.cursor = end
        if kind == INTEGER:
            return put_integer(out, at, p, start, size, self.plans.columns[c + AT_UNSIGNED])
        if kind == TEXT:
            return self.put_characters(out, at, room, p, start, end, c)
        if DATE <= kind <= TIMESTAMP:
            return self.put_temporal(out, at, p, start, kind, self.plans.columns[c + AT_ARGUMENT])
        at = self.put_kind(out, at, room, p, start, end, c, kind, partial)
        return at

    def put_temporal(self, out, at, p, start, kind, digits):
        out[at] = 34
        begin = at + 1
        if kind == DATETIME:
            at = put_datetime(out, begin, p, start, digits)
        elif kind == TIMESTAMP:
            at = put_timestamp(out, begin, p, start, digits)
        elif kind == DATE:
            at = put_date(out, begin, p, start)
        elif kind == TIME:
            at = put_time(out, begin, p, start, digits)
        elif kind == OLD_TIME:
            at = put_old_time(out, begin, p, start)
        elif kind == OLD_DATETIME:
            at = put_old_datetime(out, begin, p, start)
        else:
            at = put_seconds(out, begin, load32(p, start), 0, 0)
        out[at] = 34
        return at + 1

    def put_kind(self, out, at, room, p, start, end, c, kind, partial):
        """The other kinds, from p[start:end]. What is not what it should be becomes bytes."""
        begin = at
        if kind == FLOAT:
            return put_float(out, at, p, start)
        if kind == DOUBLE:
            return put_double(out, at, p, start)
        if kind == DECIMAL:
            out[at] = 34
            at = put_decimal(
                out, at + 1, p, start, self.plans.columns[c + AT_ARGUMENT], self.plans.columns[c + AT_SCALE]
            )
            if at >= 0:
                out[at] = 34
                return at + 1
        elif kind == YEAR:
            return put_unsigned(out, at, 1900 + p[start] if p[start] else 0)
        elif kind == BIT:
            return put_unsigned(out, at, load_big(p, start, end - start))
        elif kind == ENUM:
            return self.put_enum(out, at, room, p, start, end - start, c)
        elif kind == SET:
            return self.put_set(out, at, room, p, start, end - start, c)
        elif kind == NOTHING:
            return self.json.put_literal(out, at, 0)
        elif kind == JSON:
            if partial:
                at = self.json.put_diffs(out, at, room, p, start, end)
            else:
                at = self.json.put_column(out, at, room, p, start, end)
        elif kind == GEOMETRY:
            at = self.put_geometry(out, at, room, p, start, end)
        elif kind == VECTOR:
            at = self.put_vector(out, at, room, p, start, end)
        elif kind == COMPRESSED:
            at = self.put_compressed(out, at, room, p, start, end, c)
        elif UUID <= kind <= INET6:
            if end - start <= (4 if kind == INET4 else 16):
                return self.put_native(out, at, p, start, end, kind)
            at = C_INVALID
        else:
            at = C_INVALID
        if at == C_INVALID:
            self.malformed = True
            return put_binary(out, begin, room, p, start, end)
        return at

    def put_enum(self, out, at, room, p, start, size, c):
        """Its text; "" for 0, which is what an invalid value was stored as; the number where there is no text."""
        number = load_little(p, start, size)
        if number > self.plans.columns[c + AT_TEXT_COUNT] or self.plans.columns[c + AT_TEXT_COUNT] == 0:
            return put_unsigned(out, at, number)
        out[at] = 34
        at += 1
        if number:
            text = (self.plans.columns[c + AT_TEXT] + number - 1) * 2
            if room - at < self.plans.texts[text + 1] + SPARE:
                return C_NO_ROOM
            at = self.copy_text(out, at, self.plans.texts[text], self.plans.texts[text + 1])
        out[at] = 34
        return at + 1

    def put_set(self, out, at, room, p, start, size, c):
        """Its texts, with commas between, as one string; the number where there are none."""
        number = load_little(p, start, size)
        count = self.plans.columns[c + AT_TEXT_COUNT]
        if count == 0 or count > 64 or (count < 64 and number >> count):
            return put_unsigned(out, at, number)
        out[at] = 34
        at += 1
        first = True
        for i in range(count):
            if number >> i & 1:
                text = (self.plans.columns[c + AT_TEXT] + i) * 2
                if room - at < self.plans.texts[text + 1] + SPARE:
                    return C_NO_ROOM
                if not first:
                    out[at] = 44
                    at += 1
                at = self.copy_text(out, at, self.plans.texts[text], self.plans.texts[text + 1])
                first = False
        out[at] = 34
        return at + 1

    def put_characters(self, out, at, room, p, start, end, c):
        """Text in its character set; what is none, as bytes."""
        mode = self.plans.columns[c + AT_MODE]
        if mode == MODE_BINARY:
            if end - start < self.plans.columns[c + AT_ARGUMENT]:
                return self.put_padded_binary(out, at, room, p, start, end, self.plans.columns[c + AT_ARGUMENT])
            return put_binary(out, at, room, p, start, end)
        done = self.charsets.put(out, at, room, p, start, end, mode)
        if done == C_INVALID:
            return put_binary(out, at, room, p, start, end)
        return done

    def put_padded_binary(self, out, at, room, p, start, end, size):
        """A BINARY of `size` bytes, with the trailing zeros that are not stored."""
        self.pad(p, start, end, size)
        if cython.compiled:
            return put_binary(out, at, room, cython.address(self.padded[0]), 0, size)
        else:
            return put_binary(out, at, room, self.padded, 0, size)

    def pad(self, p, start, end, size):
        for i in range(size):
            self.padded[i] = p[start + i] if i < end - start else 0

    def put_native(self, out, at, p, start, end, kind):
        """A value of one of MariaDB's own types, whose trailing zeros are not stored."""
        self.pad(p, start, end, 16)
        out[at] = 34
        at += 1
        if cython.compiled:
            if kind == UUID:
                at = put_uuid(out, at, cython.address(self.padded[0]))
            elif kind == INET4:
                at = put_inet4(out, at, cython.address(self.padded[0]), 0)
            else:
                at = put_inet6(out, at, cython.address(self.padded[0]))
        elif kind == UUID:
            at = put_uuid(out, at, self.padded)
        elif kind == INET4:
            at = put_inet4(out, at, self.padded, 0)
        else:
            at = put_inet6(out, at, self.padded)
        out[at] = 34
        return at + 1

    def put_geometry(self, out, at, room, p, start, end):
        """{"srid":4326,"wkb":"base64"}. Layout: SRID u32, well-known binary."""
        if end - start < 4:
            return C_INVALID
        at = put_word(out, at, b'{"srid":', 8)
        at = put_unsigned(out, at, load32(p, start))
        at = put_word(out, at, b',"wkb":"', 8)
        at = put_base64(out, at, room - SPARE, p, start + 4, end)
        if at < 0:
            return at
        return put_word(out, at, b'"}', 2)

    def put_vector(self, out, at, room, p, start, end):
        """An array of its numbers, which are floats of four bytes."""
        if (end - start) % 4:
            return C_INVALID
        out[at] = 91
        at += 1
        i = start
        while i < end:
            if room - at < SPARE:
                return C_NO_ROOM
            if i > start:
                out[at] = 44
                at += 1
            at = put_float(out, at, p, i)
            i += 4
        out[at] = 93
        return at + 1

    def put_compressed(self, out, at, room, p, start, end, c):
        """A value of one of MariaDB's compressed columns."""
        try:
            data = unpack_column(bytes(p[start:end]))
        except ProtocolError:
            return C_INVALID
        except BaseException as error:
            self.charsets.failure = error
            return C_INVALID
        mode = self.plans.columns[c + AT_MODE]
        done = C_INVALID if mode == MODE_BINARY else self.charsets.put(out, at, room, data, 0, len(data), mode)
        return put_binary(out, at, room, data, 0, len(data)) if done == C_INVALID else done
