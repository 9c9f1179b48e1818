# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Text of any character set as a JSON string in UTF-8.

Text in other sets is converted here, by tables if a character is one byte, and by Python's codecs (with the GIL: slowly) for the old
East Asian sets.
"""

from array import array

import cython

from protocol.binlog.schema.column_charsets import characters, codec_of_charset

if not cython.compiled:
    from protocol.columns.codes.column_codes import *
    from protocol.columns.text.json_text import put_code_point, put_string
    from protocol.kernel.pure import Bytes, Writable, copy_plain, shorts_of


def wide_unit(p: Bytes, at: int, mode: int) -> int:
    if mode == CHARSET_UTF16LE:
        return p[at] | p[at + 1] << 8
    return p[at] << 8 | p[at + 1]


class CharsetText:
    """Converters of character sets; `put` needs the result of `mode_of`."""

    def __init__(self) -> None:
        self.modes = {
            "binary": CHARSET_BINARY,
            "utf8": CHARSET_UTF8,
            "utf8mb4": CHARSET_UTF8,
            "ucs2": CHARSET_UTF16,
            "utf16": CHARSET_UTF16,
            "utf16le": CHARSET_UTF16LE,
            "utf32": CHARSET_UTF32,
        }
        self.codecs: list[str] = []
        self.failure: BaseException | None = None  # an error where nothing can be raised
        self.table_bytes = bytearray()
        self.tables = shorts_of(self.table_bytes)
        self.ascii_tables = 0  # a bit for each table in which ASCII means itself

    def mode_of(self, charset: str | None) -> int:
        """Return the mode of a character set; UTF-8's for an unknown one (None, or a name that no server has)."""
        if charset is None:
            return CHARSET_UTF8
        if charset not in self.modes:
            table = characters(charset)
            codec = codec_of_charset(charset)
            if table is not None:
                number = len(self.table_bytes) // 512
                self.modes[charset] = CHARSET_SINGLE_BYTE + number
                if number < 64 and list(table[:128]) == list(range(128)):
                    self.ascii_tables |= 1 << number
                self.table_bytes = self.table_bytes + array("H", table).tobytes()
                self.tables = shorts_of(self.table_bytes)
            elif codec is not None:
                self.codecs.append(codec)
                self.modes[charset] = CHARSET_CODEC + len(self.codecs) - 1
            else:
                self.modes[charset] = CHARSET_UTF8
        return self.modes[charset]

    def put(self, out: Writable, at: int, room: int, p: Bytes, start: int, stop: int, mode: int) -> int:
        """Write the text p[start:stop] as a string. VALUE_INVALID: it is invalid in its character set."""
        if mode == CHARSET_UTF8:
            return put_string(out, at, room, p, start, stop)
        if mode >= CHARSET_CODEC:
            return self.put_by_codec(out, at, room, p, start, stop, mode - CHARSET_CODEC)
        if mode >= CHARSET_SINGLE_BYTE:
            return self.put_single_byte(out, at, room, p, start, stop, (mode - CHARSET_SINGLE_BYTE) * 256)
        if mode == CHARSET_BINARY:
            return VALUE_INVALID
        return self.put_wide(out, at, room, p, start, stop, mode)

    def put_single_byte(self, out: Writable, at: int, room: int, p: Bytes, start: int, stop: int, table: int) -> int:
        if room - at < SPARE_ROUND:
            return NO_ROOM
        number = table >> 8
        is_ascii = number < 64 and self.ascii_tables >> number & 1
        out[at] = 34
        at += 1
        i = start
        while i < stop:
            if room - at < SPARE_ROUND:
                return NO_ROOM
            if is_ascii:
                plain = copy_plain(out, at, room - SPARE_ROUND, p, i, stop)
                at += plain
                i += plain
            near = i + 8
            while i < stop and i < near:
                c = self.tables[table + p[i]]
                if c == NO_CHARACTER:
                    return VALUE_INVALID
                at = put_code_point(out, at, c)
                i += 1
        out[at] = 34
        return at + 1

    def put_wide(self, out: Writable, at: int, room: int, p: Bytes, start: int, stop: int, mode: int) -> int:
        """Write ucs2, utf16 (big-endian), utf16le or utf32 (big-endian)."""
        width = 4 if mode == CHARSET_UTF32 else 2
        if room - at < 16:
            return NO_ROOM
        if (stop - start) % width:
            return VALUE_INVALID
        out[at] = 34
        at += 1
        i = start
        while i < stop:
            if room - at < 16:
                return NO_ROOM
            if mode == CHARSET_UTF32:
                c = wide_unit(p, i, CHARSET_UTF16) << 16 | wide_unit(p, i + 2, CHARSET_UTF16)
            else:
                c = wide_unit(p, i, mode)
                if 0xD800 <= c < 0xDC00 and i + 4 <= stop:
                    low = wide_unit(p, i + 2, mode)
                    if 0xDC00 <= low < 0xE000:
                        c = 0x10000 + ((c - 0xD800) << 10 | (low - 0xDC00))
                        i += 2
            if 0xD800 <= c < 0xE000 or c > 0x10FFFF:
                return VALUE_INVALID
            at = put_code_point(out, at, c)
            i += width
        out[at] = 34
        return at + 1

    def put_by_codec(self, out: Writable, at: int, room: int, p: Bytes, start: int, stop: int, codec: int) -> int:
        try:
            data = bytes(p[start:stop]).decode(self.codecs[codec]).encode()
        except UnicodeError:
            return VALUE_INVALID
        except BaseException as error:
            self.failure = error
            return VALUE_INVALID
        return put_string(out, at, room, data, 0, len(data))
