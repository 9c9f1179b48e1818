# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Text of any character set as a JSON string in UTF-8.

What is not UTF-8 is converted here, by tables where a character is one byte and by Python's codecs (with the GIL: slowly)
for the old East Asian sets.
"""

import cython

from protocol.binlog.schema.column_charsets import characters, codec_of_charset

if not cython.compiled:
    from protocol.columns.text.json_text import put_code_point, put_string

# Modes: how a column's bytes become text.
UTF8 = 0
BINARY = 1
UTF16 = 2
UTF16LE = 3
UTF32 = 4
C_BINARY = cython.declare(cython.int, 1)
C_UTF16LE = cython.declare(cython.int, 3)
C_UTF32 = cython.declare(cython.int, 4)
SINGLE_BYTE = cython.declare(cython.int, 16)
BY_CODEC = cython.declare(cython.int, 128)

C_INVALID = cython.declare(cython.int, -1)
C_NO_ROOM = cython.declare(cython.int, -2)
NO_CHARACTER = cython.declare(cython.int, 0xFFFD)


def wide_unit(p, at, mode):
    if mode == C_UTF16LE:
        return p[at] | p[at + 1] << 8
    return p[at] << 8 | p[at + 1]


class CharsetText:
    """Converters; `mode_of` a character set is what `put` is told."""

    def __init__(self):
        self.modes = {
            "binary": BINARY,
            "utf8": UTF8,
            "utf8mb4": UTF8,
            "ucs2": UTF16,
            "utf16": UTF16,
            "utf16le": UTF16LE,
            "utf32": UTF32,
        }
        self.codecs = []
        self.failure = None  # what went wrong where nothing can be raised
        self.tables = memoryview(bytearray(512)).cast("H")

    def mode_of(self, charset):
        """The mode of a character set; of one that is not known (None, or a name nobody had) UTF8."""
        if charset is None:
            return UTF8
        if charset not in self.modes:
            table = characters(charset)
            codec = codec_of_charset(charset)
            if table is not None:
                known = bytes(self.tables) if SINGLE_BYTE in self.modes.values() else b""
                count = len(known) // 512
                self.tables = memoryview(bytearray(known + memoryview(bytearray(512)).tobytes())).cast("H")
                for i in range(256):
                    self.tables[count * 256 + i] = table[i]
                self.modes[charset] = SINGLE_BYTE + count
            elif codec is not None:
                self.codecs.append(codec)
                self.modes[charset] = BY_CODEC + len(self.codecs) - 1
            else:
                self.modes[charset] = UTF8
        return self.modes[charset]

    def put(self, out, at, room, p, start, stop, mode):
        """The text p[start:stop] as a string. INVALID: it is none in its character set."""
        if mode == 0:
            return put_string(out, at, room, p, start, stop)
        if mode >= BY_CODEC:
            return self.put_by_codec(out, at, room, p, start, stop, mode - BY_CODEC)
        if mode >= SINGLE_BYTE:
            return self.put_single_byte(out, at, room, p, start, stop, (mode - SINGLE_BYTE) * 256)
        if mode == C_BINARY:
            return C_INVALID
        return self.put_wide(out, at, room, p, start, stop, mode)

    def put_single_byte(self, out, at, room, p, start, stop, table):
        if room - at < 16:
            return C_NO_ROOM
        out[at] = 34
        at += 1
        for i in range(start, stop):
            if room - at < 16:
                return C_NO_ROOM
            c = self.tables[table + p[i]]
            if c == NO_CHARACTER:
                return C_INVALID
            at = put_code_point(out, at, c)
        out[at] = 34
        return at + 1

    def put_wide(self, out, at, room, p, start, stop, mode):
        """ucs2, utf16 (big-endian), utf16le, utf32 (big-endian)."""
        width = 4 if mode == C_UTF32 else 2
        if room - at < 16:
            return C_NO_ROOM
        if (stop - start) % width:
            return C_INVALID
        out[at] = 34
        at += 1
        i = start
        while i < stop:
            if room - at < 16:
                return C_NO_ROOM
            if mode == C_UTF32:
                c = wide_unit(p, i, 0) << 16 | wide_unit(p, i + 2, 0)
            else:
                c = wide_unit(p, i, mode)
                if 0xD800 <= c < 0xDC00 and i + 4 <= stop:
                    low = wide_unit(p, i + 2, mode)
                    if 0xDC00 <= low < 0xE000:
                        c = 0x10000 + ((c - 0xD800) << 10 | (low - 0xDC00))
                        i += 2
            if 0xD800 <= c < 0xE000 or c > 0x10FFFF:
                return C_INVALID
            at = put_code_point(out, at, c)
            i += width
        out[at] = 34
        return at + 1

    def put_by_codec(self, out, at, room, p, start, stop, codec):
        try:
            data = bytes(p[start:stop]).decode(self.codecs[codec]).encode()
        except UnicodeError:
            return C_INVALID
        except BaseException as error:
            self.failure = error
            return C_INVALID
        return put_string(out, at, room, data, 0, len(data))
