# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The text of a transaction's GTID, from its event: MySQL's (plain and tagged) and MariaDB's."""

import cython

from protocol.kernel.gtid_head import GtidHead

if not cython.compiled:
    from protocol.columns.codes.column_codes import *
    from protocol.columns.text.json_text import put_hex, put_unsigned
    from protocol.kernel.codes import *
    from protocol.kernel.pure import Bytes, copy_bytes, load32


class GtidText:
    """The GTID that was taken last: `length` bytes of `text`; 0: none."""

    def __init__(self) -> None:
        if not cython.compiled:
            self.text = bytearray(GTID_TEXT_ROOM)
        self.head = GtidHead()
        self.length = 0

    def take(self, p: Bytes, at: int, stop: int, t: int) -> None:
        """Write the GTID that the event in p[at:stop], of type `t`, gives its transaction; an anonymous one has none."""
        self.length = 0
        if t == ANONYMOUS_GTID_EVENT or not self.head.take(p, at, stop - at, t):
            return
        if t == MARIADB_GTID_EVENT:
            self.put_number(load32(self.head.key, 0), 45)
            self.put_number(load32(self.head.key, 4), 45)
        else:
            self.put_uuid()
            self.put_tag(self.head.key[KEY_LENGTH_AT] - UUID_SIZE)
        self.put_number(self.head.number, 0)

    def put_uuid(self) -> None:
        for i in range(UUID_SIZE):
            if i == 4 or i == 6 or i == 8 or i == 10:
                self.put_byte(45)
            self.length = put_hex(self.text, self.length, self.head.key[i])
        self.put_byte(58)

    def put_tag(self, count: int) -> None:
        if count > 0:
            copy_bytes(self.text, self.length, self.head.key, UUID_SIZE, count)
            self.length += count
            self.put_byte(58)

    def put_number(self, number: int, separator: int) -> None:
        """Write the number, and its separator from the next; 0: it is the last."""
        self.length = put_unsigned(self.text, self.length, number)
        if separator:
            self.put_byte(separator)

    def put_byte(self, byte: int) -> None:
        self.text[self.length] = byte
        self.length += 1
