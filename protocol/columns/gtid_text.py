# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The text of a transaction's GTID, from its event: MySQL's (plain and tagged) and MariaDB's."""

import cython

if not cython.compiled:
    from protocol.kernel.pure import load32, load64

GTID_ROOM = cython.declare(cython.int, 160)


def signed(value):
    """The same 64 bits as a signed number, which is what an Arrow column of numbers holds."""
    if cython.compiled:
        return value
    else:
        return value - (1 << 64) if value >= 1 << 63 else value


class GtidText:
    """The GTID that was taken last: `length` bytes of `text`; 0: none."""

    def __init__(self):
        if not cython.compiled:
            self.text = bytearray(160)
        self.length = 0
        self.cursor = 0

    def take(self, p, body, stop, t, at):
        """Writes the text of the transaction's GTID; an anonymous one has none.

        Layouts: 33: flags u8 | uuid | gno u64. 162: sequence u64 | domain u32 | flags u8, server id in the header.
        42: numbers of variable length, see protocol/binlog/gtid_tagged.py.
        """
        self.length = 0
        if t == 33:
            if stop - body >= 25:
                self.put_uuid_digits(p, body + 1)
                self.put_byte(58)
                self.put_number(load64(p, body + 17))
        elif t == 162:
            if stop - body >= 13:
                self.put_number(load32(p, body + 8))
                self.put_byte(45)
                self.put_number(load32(p, at + 5))
                self.put_byte(45)
                self.put_number(load64(p, body))
        elif t == 42:
            self.take_tagged(p, body, stop)

    def take_tagged(self, p, body, stop):
        self.cursor = body
        self.read_variable(p, stop)
        self.read_variable(p, stop)
        self.read_variable(p, stop)
        tag_at = 0
        tag_length = 0
        gno = 0
        has_uuid = False
        while self.cursor < stop:
            field = self.read_variable(p, stop)
            if field == 0:
                self.read_variable(p, stop)
            elif field == 1:
                has_uuid = True
                for i in range(16):
                    number = self.read_variable(p, stop)
                    if i == 4 or i == 6 or i == 8 or i == 10:
                        self.put_byte(45)
                    self.put_hex(number & 255)
            elif field == 2:
                number = self.read_variable(p, stop)
                gno = number >> 1
            elif field == 3:
                tag_length = self.read_variable(p, stop)
                tag_at = self.cursor
                if tag_length < 0 or tag_length > 32 or tag_at + tag_length > stop:
                    self.length = 0
                    return
                self.cursor += tag_length
            else:
                break
        if not has_uuid or self.cursor > stop or gno <= 0:
            self.length = 0
            return
        self.put_byte(58)
        if tag_length:
            for i in range(tag_length):
                self.put_byte(p[tag_at + i])
            self.put_byte(58)
        self.put_number(gno)

    def read_variable(self, p, stop):
        """A number whose first byte's trailing ones tell how many bytes follow; -1 and the cursor behind `stop`: cut."""
        if self.cursor >= stop:
            self.cursor = stop + 1
            return -1
        first = p[self.cursor]
        following = 0
        while following < 8 and first >> following & 1:
            following += 1
        if self.cursor + 1 + following > stop:
            self.cursor = stop + 1
            return -1
        value = 0
        for i in range(following):
            byte = p[self.cursor + following - i]
            value = value << 8 | byte
        self.cursor += 1 + following
        if following >= 8:
            return signed(value)
        value = value << (7 - following)
        return value | first >> (following + 1)

    def put_byte(self, byte):
        if self.length < GTID_ROOM:
            self.text[self.length] = byte
            self.length += 1

    def put_hex(self, byte):
        for i in range(2):
            digit = (byte >> 4) if i == 0 else (byte & 15)
            self.put_byte(48 + digit if digit < 10 else 87 + digit)

    def put_uuid_digits(self, p, at):
        for i in range(16):
            if i == 4 or i == 6 or i == 8 or i == 10:
                self.put_byte(45)
            self.put_hex(p[at + i])

    def put_number(self, number):
        power = 1
        left = number
        while left >= 10:
            left = left // 10
            power = power * 10
        while power > 0:
            digit = number // power
            self.put_byte(48 + digit)
            number = number - digit * power
            power = power // 10
