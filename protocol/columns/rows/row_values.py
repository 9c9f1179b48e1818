# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""A row image as a JSON object: the values of its columns, by their table's plan.

Everything in an image is untrusted: each length is compared with the event's end before its bytes are read.
"""

import cython

from protocol.binlog.compression import MOST_HELD_BYTES, unpack_column
from protocol.columns.column_batch import TextColumn
from protocol.columns.rows.table_plans import ColumnPlans
from protocol.columns.rows.value_columns import ValueColumns
from protocol.columns.tables import ImageColumns
from protocol.columns.text.charset_text import CharsetText
from protocol.columns.text.json_binary import JsonBinary
from protocol.errors import ProtocolError

if not cython.compiled:
    from protocol.columns.codes.column_codes import *
    from protocol.columns.text.json_text import put_base64, put_binary, put_signed, put_unsigned, put_word
    from protocol.columns.text.scalar_text import (
        load_big,
        put_date,
        put_datetime,
        put_decimal,
        put_double,
        put_float,
        put_inet4,
        put_inet6,
        put_old_datetime,
        put_old_time,
        put_seconds,
        put_time,
        put_timestamp,
        put_uuid,
    )
    from protocol.kernel.codes import *
    from protocol.kernel.pure import (
        Bytes,
        Writable,
        bytes_of,
        copy_bytes,
        load16,
        load24,
        load32,
        load64,
        signed64,
        text_of,
    )


def put_integer(out: Writable, at: int, p: Bytes, start: int, size: int, is_unsigned: bool) -> int:
    """Write an integer of 1, 2, 3, 4 or 8 bytes, little-endian."""
    if size == 8:
        if is_unsigned:
            return put_unsigned(out, at, load64(p, start))
        return put_signed(out, at, signed64(load64(p, start)))
    if size == 4:
        value = load32(p, start)
        if not is_unsigned and value >> 31:
            value = value - U32_MAX - 1
    elif size == 1:
        value = p[start]
        if not is_unsigned and value >> 7:
            value = value - 0x100
    elif size == 2:
        value = load16(p, start)
        if not is_unsigned and value >> 15:
            value = value - 0x10000
    else:
        value = load24(p, start)
        if not is_unsigned and value >> 23:
            value = value - 0x1000000
    return put_signed(out, at, value)


def load_little(p: Bytes, at: int, size: int) -> int:
    """Return the number of `size` bytes, little-endian, at `at`."""
    value = 0
    for i in range(size):
        value = value << 8 | p[at + size - 1 - i]
    return value


class RowValues:
    """Writes images of the table whose plan is `plan`. `malformed` is set if a value did not fit its type, and was shown as bytes;
    `uncertain` if it was read without knowing its sign or character set; `odd` if a value that is written alone is not in the form of
    its column;
    `charsets.failure` if Python code below the walk failed: the caller of the walk raises it.
    """

    def __init__(self) -> None:
        self.charsets = CharsetText()
        self.plans = ColumnPlans(self.charsets)
        self.json = JsonBinary()
        self.plan = 0
        self.malformed = False
        self.uncertain = False
        self.odd = False
        self.cursor = 0
        self.padded_bytes = bytearray(1024)
        self.padded = bytes_of(self.padded_bytes)

    def enter_image(self, columns: ImageColumns, start: int, stop: int) -> bool:
        """Put `cursor` after the NULL bits of the image at `start`; False: they pass `stop`."""
        start += (columns.present + 7) >> 3
        if start > stop:
            return False
        self.cursor = start
        return True

    def put_image(
        self, column: TextColumn, columns: ImageColumns, p: Bytes, start: int, stop: int, partial: int
    ) -> int:
        """Write the image at p[start:], of `columns`, as an object after the text column's content; return where it ends there.

        `cursor` is then after the image. `partial` is the place of the bits for JSON columns that are given as differences; -1: none.
        NO_ROOM; IMAGE_MALFORMED: it passes `stop`; IMAGE_UNKNOWN_TYPE.
        """
        out = column.data
        at = column.used
        room = column.room
        bits = columns.bits
        bitmap = columns.at
        c = self.plans.first[self.plan] - COLUMN_NUMBERS
        nulls = start
        if not self.enter_image(columns, start, stop):
            return IMAGE_MALFORMED
        if room - at < SPARE:
            return NO_ROOM
        out[at] = 123
        at += 1
        k = 0
        json = 0
        for i in range(columns.width):
            c += COLUMN_NUMBERS
            is_partial = False
            if self.plans.columns[c + AT_JSON]:
                if partial >= 0:
                    is_partial = p[partial + (json >> 3)] >> (json & 7) & 1 != 0
                json += 1
            if not bits[bitmap + (i >> 3)] >> (i & 7) & 1:
                continue
            length = self.plans.columns[c + AT_NAME_LENGTH]
            if room - at < length + SPARE:
                return NO_ROOM
            if k:
                out[at] = 44
                at += 1
            copy_bytes(out, at, self.plans.arena, self.plans.columns[c + AT_NAME], length)
            at += length
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
            return NO_ROOM
        out[at] = 125
        return at + 1

    def put_values(
        self, values: ValueColumns, columns: ImageColumns, p: Bytes, start: int, stop: int, partial: int
    ) -> int:
        """Write an image like put_image, but each value to a column of its own; return where the image ends."""
        bits = columns.bits
        bitmap = columns.at
        c = self.plans.first[self.plan] - COLUMN_NUMBERS
        nulls = start
        if not self.enter_image(columns, start, stop):
            return IMAGE_MALFORMED
        if columns.width > values.width:
            return NO_ROOM
        k = 0
        json = 0
        for i in range(columns.width):
            c += COLUMN_NUMBERS
            is_partial = False
            if self.plans.columns[c + AT_JSON]:
                if partial >= 0:
                    is_partial = p[partial + (json >> 3)] >> (json & 7) & 1 != 0
                json += 1
            if not bits[bitmap + (i >> 3)] >> (i & 7) & 1:
                values.note(i, -1)
                continue
            if p[nulls + (k >> 3)] >> (k & 7) & 1:
                values.note(i, -1)
            else:
                base = values.base(i)
                at = self.put_alone(values.data, base + values.used(i), base + values.room, p, stop, c, is_partial)
                if at < 0:
                    return at
                values.note(i, at - base)
            k += 1
        return self.cursor

    def put_alone(self, out: Writable, at: int, room: int, p: Bytes, stop: int, c: int, partial: bool) -> int:
        """Write a value like put_value, in the form of the column."""
        if room - at < SPARE:
            return NO_ROOM
        form = self.plans.columns[c + AT_FORM]
        if form == FORM_BYTES:
            return self.put_bytes(out, at, room, p, stop, c)
        if form != FORM_TEXT:
            done = self.put_value(out, at, room, p, stop, c, partial)
            if partial or form == FORM_OTHER or (form == FORM_NUMBER and out[at] == 34):
                self.odd = True
            return done
        # its quotation mark takes the place of the byte before for a moment
        before = out[at - 1]
        done = self.put_value(out, at - 1, room, p, stop, c, partial)
        if done > 0:
            if out[at - 1] == 34:
                done -= 1
            else:
                self.odd = True
                done = at
        out[at - 1] = before
        return done

    def put_bytes(self, out: Writable, at: int, room: int, p: Bytes, stop: int, c: int) -> int:
        """Write the bytes at `cursor`; for a BINARY with the trailing zeros that are not stored."""
        start = self.value_start(p, stop, c)
        if start < 0:
            return start
        size = self.cursor - start
        padded = self.plans.columns[c + AT_ARGUMENT]
        if padded < size:
            padded = size
        if room - at < padded:
            return NO_ROOM
        if self.plans.columns[c + AT_UNCERTAIN]:
            self.uncertain = True
        copy_bytes(out, at, p, start, size)
        for i in range(at + size, at + padded):
            out[i] = 0
        return at + padded

    def value_start(self, p: Bytes, stop: int, c: int) -> int:
        """Return where the bytes of the value at `cursor` begin; `cursor` moves to their end. IMAGE_MALFORMED."""
        prefix = self.plans.columns[c + AT_PREFIX]
        start = self.cursor
        if prefix == 0:
            size = self.plans.columns[c + AT_SIZE]
        else:
            if prefix > stop - start:
                return IMAGE_MALFORMED
            if prefix == 1:
                size = p[start]
            elif prefix == 2:
                size = load16(p, start)
            elif prefix == 3:
                size = load24(p, start)
            else:
                size = load32(p, start)
            start += prefix
        if start + size > stop:
            return IMAGE_MALFORMED
        self.cursor = start + size
        return start

    def put_value(self, out: Writable, at: int, room: int, p: Bytes, stop: int, c: int, partial: bool) -> int:
        """Write the value at `cursor`, which moves past it, of the column whose numbers begin at `c`."""
        kind = self.plans.columns[c]
        if kind == TYPE_UNKNOWN:
            return IMAGE_UNKNOWN_TYPE
        start = self.value_start(p, stop, c)
        if start < 0:
            return start
        end = self.cursor
        size = end - start
        if kind == TYPE_INTEGER:
            if self.plans.columns[c + AT_UNCERTAIN] and p[end - 1] >= 0x80:
                self.uncertain = True
            return put_integer(out, at, p, start, size, self.plans.columns[c + AT_UNSIGNED] != 0)
        if self.plans.columns[c + AT_UNCERTAIN]:
            self.uncertain = True
        if kind == TYPE_TEXT:
            return self.put_characters(out, at, room, p, start, end, c)
        if TYPE_DATE <= kind <= TYPE_TIMESTAMP:
            return self.put_temporal(out, at, p, start, kind, self.plans.columns[c + AT_ARGUMENT])
        if partial and kind == TYPE_JSON:
            done = self.json.put_diffs(out, at, room, p, start, end)
        else:
            done = self.put_kind(out, at, room, p, start, end, c)
        if done == VALUE_INVALID:
            self.malformed = True
            return put_binary(out, at, room, p, start, end)
        return done

    def put_temporal(self, out: Writable, at: int, p: Bytes, start: int, kind: int, digits: int) -> int:
        out[at] = 34
        begin = at + 1
        if kind == TYPE_DATETIME:
            at = put_datetime(out, begin, p, start, digits)
        elif kind == TYPE_TIMESTAMP:
            at = put_timestamp(out, begin, p, start, digits)
        elif kind == TYPE_DATE:
            at = put_date(out, begin, p, start)
        elif kind == TYPE_TIME:
            at = put_time(out, begin, p, start, digits)
        elif kind == TYPE_OLD_TIME:
            at = put_old_time(out, begin, p, start)
        elif kind == TYPE_OLD_DATETIME:
            at = put_old_datetime(out, begin, p, start)
        else:
            at = put_seconds(out, begin, load32(p, start), 0, 0)
        out[at] = 34
        return at + 1

    def put_kind(self, out: Writable, at: int, room: int, p: Bytes, start: int, end: int, c: int) -> int:
        """Write the other kinds, from p[start:end]. VALUE_INVALID: the bytes do not fit the type."""
        kind = self.plans.columns[c]
        if kind == TYPE_FLOAT:
            return put_float(out, at, p, start)
        if kind == TYPE_DOUBLE:
            return put_double(out, at, p, start)
        if kind == TYPE_DECIMAL:
            return self.put_quoted_decimal(out, at, p, start, c)
        if kind == TYPE_YEAR:
            return put_unsigned(out, at, 1900 + p[start] if p[start] else 0)
        if kind == TYPE_BIT:
            return put_unsigned(out, at, load_big(p, start, end - start))
        if kind == TYPE_ENUM:
            return self.put_enum(out, at, room, p, start, end - start, c)
        if kind == TYPE_SET:
            return self.put_set(out, at, room, p, start, end - start, c)
        if kind == TYPE_NOTHING:
            return self.json.put_literal(out, at, JSON_NULL)
        if kind == TYPE_JSON:
            return self.json.put_column(out, at, room, p, start, end)
        if kind == TYPE_GEOMETRY:
            return self.put_geometry(out, at, room, p, start, end)
        if kind == TYPE_VECTOR:
            return self.put_vector(out, at, room, p, start, end)
        if kind == TYPE_COMPRESSED:
            return self.put_compressed(out, at, room, p, start, end, c)
        if TYPE_UUID <= kind <= TYPE_INET6 and end - start <= (4 if kind == TYPE_INET4 else 16):
            return self.put_native(out, at, p, start, end, kind)
        return VALUE_INVALID

    def put_quoted_decimal(self, out: Writable, at: int, p: Bytes, start: int, c: int) -> int:
        """Write a DECIMAL as a string, so that no reader removes digits."""
        out[at] = 34
        at = put_decimal(out, at + 1, p, start, self.plans.columns[c + AT_ARGUMENT], self.plans.columns[c + AT_SCALE])
        if at < 0:
            return at
        out[at] = 34
        return at + 1

    def copy_text(self, out: Writable, at: int, text: int) -> int:
        """Copy one of the texts of an ENUM or SET, whose numbers are at `text`."""
        length = self.plans.texts[text + 1]
        copy_bytes(out, at, self.plans.arena, self.plans.texts[text], length)
        return at + length

    def put_enum(self, out: Writable, at: int, room: int, p: Bytes, start: int, size: int, c: int) -> int:
        """Write an ENUM's text; "" for 0, as which invalid values are stored; the number if there is no text."""
        number = load_little(p, start, size)
        if number > self.plans.columns[c + AT_TEXT_COUNT] or self.plans.columns[c + AT_TEXT_COUNT] == 0:
            return put_unsigned(out, at, number)
        out[at] = 34
        at += 1
        if number:
            text = (self.plans.columns[c + AT_TEXT] + number - 1) * 2
            if room - at < self.plans.texts[text + 1] + SPARE:
                return NO_ROOM
            at = self.copy_text(out, at, text)
        out[at] = 34
        return at + 1

    def put_set(self, out: Writable, at: int, room: int, p: Bytes, start: int, size: int, c: int) -> int:
        """Write a SET's texts, with commas between, as one string; the number if there are none."""
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
                    return NO_ROOM
                if not first:
                    out[at] = 44
                    at += 1
                at = self.copy_text(out, at, text)
                first = False
        out[at] = 34
        return at + 1

    def put_characters(self, out: Writable, at: int, room: int, p: Bytes, start: int, end: int, c: int) -> int:
        """Write text in its character set; invalid text as bytes."""
        mode = self.plans.columns[c + AT_MODE]
        if mode == CHARSET_BINARY:
            if end - start < self.plans.columns[c + AT_ARGUMENT]:
                return self.put_padded_binary(out, at, room, p, start, end, self.plans.columns[c + AT_ARGUMENT])
            return put_binary(out, at, room, p, start, end)
        done = self.charsets.put(out, at, room, p, start, end, mode)
        if done == VALUE_INVALID:
            return put_binary(out, at, room, p, start, end)
        return done

    def put_padded_binary(self, out: Writable, at: int, room: int, p: Bytes, start: int, end: int, size: int) -> int:
        """Write a BINARY of `size` bytes, with the trailing zeros that are not stored."""
        self.pad(p, start, end, size)
        return put_binary(out, at, room, self.padded, 0, size)

    def pad(self, p: Bytes, start: int, end: int, size: int) -> None:
        for i in range(size):
            self.padded[i] = p[start + i] if i < end - start else 0

    def put_native(self, out: Writable, at: int, p: Bytes, start: int, end: int, kind: int) -> int:
        """Write a value of one of MariaDB's own types, whose trailing zeros are not stored."""
        self.pad(p, start, end, 16)
        out[at] = 34
        at += 1
        if kind == TYPE_UUID:
            at = put_uuid(out, at, self.padded)
        elif kind == TYPE_INET4:
            at = put_inet4(out, at, self.padded, 0)
        else:
            at = put_inet6(out, at, self.padded)
        out[at] = 34
        return at + 1

    def put_geometry(self, out: Writable, at: int, room: int, p: Bytes, start: int, end: int) -> int:
        """Write {"srid":4326,"wkb":"base64"}. Layout: SRID u32, well-known binary."""
        if end - start < 4:
            return VALUE_INVALID
        at = put_word(out, at, b'{"srid":', 8)
        at = put_unsigned(out, at, load32(p, start))
        at = put_word(out, at, b',"wkb":"', 8)
        at = put_base64(out, at, room - SPARE, p, start + 4, end)
        if at < 0:
            return at
        return put_word(out, at, b'"}', 2)

    def put_vector(self, out: Writable, at: int, room: int, p: Bytes, start: int, end: int) -> int:
        """Write an array of a vector's numbers, which are floats of four bytes."""
        if (end - start) % 4:
            return VALUE_INVALID
        out[at] = 91
        at += 1
        i = start
        while i < end:
            if room - at < SPARE:
                return NO_ROOM
            if i > start:
                out[at] = 44
                at += 1
            at = put_float(out, at, p, i)
            i += 4
        out[at] = 93
        return at + 1

    def put_compressed(self, out: Writable, at: int, room: int, p: Bytes, start: int, end: int, c: int) -> int:
        """Write a value of one of MariaDB's compressed columns."""
        try:
            data = unpack_column(bytes(p[start:end]), MOST_HELD_BYTES)
        except ProtocolError:
            return VALUE_INVALID
        except BaseException as error:
            self.charsets.failure = error
            return VALUE_INVALID
        mode = self.plans.columns[c + AT_MODE]
        done = VALUE_INVALID
        if mode != CHARSET_BINARY:
            done = self.charsets.put(out, at, room, text_of(data), 0, len(data), mode)
        return put_binary(out, at, room, text_of(data), 0, len(data)) if done == VALUE_INVALID else done
