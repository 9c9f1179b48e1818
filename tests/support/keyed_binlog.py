"""A binlog of a MySQL 5.6 with random transactions over tables with keys, whose content the test knows."""

import struct
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.support.event_stream import EventStream, query_body
from tests.support.view_making import marked

TABLES: Final = {
    "a": "CREATE TABLE a (id INT PRIMARY KEY, other INT, UNIQUE (other), filler LONGBLOB)",
    "b": "CREATE TABLE b (id INT PRIMARY KEY, other INT, filler LONGBLOB, FOREIGN KEY (other) REFERENCES a (id))",
    "keyless": "CREATE TABLE keyless (id INT, other INT, filler LONGBLOB)",
}
_TABLE_MAP, _WRITE, _UPDATE, _DELETE, _XID = 19, 30, 31, 32, 16


@dataclass
class KeyedBinlog:
    """A binlog. `data` has the markers of an archive. `waits` gives, for each transaction from 1 on, the last one before it with which
    it shares a row; for a barrier, which all wait for, the one before it and the `barriers`. With `begins` it defines the tables;
    otherwise an earlier file did."""

    seed: int
    count: int
    filler_bytes: int = 20
    large: bool = False
    begins: bool = True
    stream: EventStream = field(default_factory=EventStream)
    starts: list[int] = field(default_factory=list)

    def make(self) -> bytes:
        """Return the binlog."""
        chance = Random(self.seed)
        if self.begins:
            self._statement("CREATE DATABASE d CHARACTER SET latin1")
            for text in TABLES.values():
                self._statement(text)
        for number in range(self.count):
            kind = chance.random()
            if self.large and kind < 0.01:
                self._rows(chance, filler=chance.choice((300_000, 700_000, 1_500_000)))
            elif kind < 0.004:
                self._statement(f"CREATE TABLE new{number} (id INT PRIMARY KEY)")
            elif kind < 0.006:
                self._statement("ALTER TABLE keyless ADD INDEX (id)")
            elif kind < 0.01:
                self._in_statements()
            else:
                self._rows(chance, filler=self.filler_bytes)
        self.stream.add(4, struct.pack("<Q", 4) + b"mysql-bin.000002")
        return marked(b"\xfebin" + self.stream.data)

    def _statement(self, text: str) -> None:
        self.starts.append(self.stream.offset)
        charsets = b"\x04" + struct.pack("<HHH", 8, 8, 8)
        self.stream.add(2, query_body(text, b"d", charsets))

    def _in_statements(self) -> None:
        self.starts.append(self.stream.offset)
        self.stream.add(2, query_body("BEGIN", b"d"))
        self.stream.add(2, query_body("INSERT INTO a VALUES (1, 2, 'x')", b"d")).add(_XID, bytes(8))

    def _rows(self, chance: Random, filler: int) -> None:
        self.starts.append(self.stream.offset)
        self.stream.add(2, query_body("BEGIN", b"d"))
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            number = chance.choice((0, 0, 0, 1, 1, 2)) if chance.random() < 0.9 else 0
            if number == 2 and chance.random() < 0.9:
                number = 0
            name = list(TABLES)[number].encode()
            table = struct.pack("<IHH", number + 70, 0, 1)
            names = b"\x01d\0" + bytes([len(name)]) + name + b"\0"
            self.stream.add(_TABLE_MAP, table + names + b"\x03\x03\x03\xfc\x01\x04\x06")
            kind = chance.choice((_WRITE, _UPDATE, _DELETE))
            images = b"".join(self._image(chance, filler) for _ in range(2 if kind == _UPDATE else 1))
            bits = b"\x07\x07" if kind == _UPDATE else b"\x07"
            self.stream.add(kind, table + b"\x02\x00\x03" + bits + images)
        self.stream.add(_XID, bytes(8))

    def _image(self, chance: Random, filler: int) -> bytes:
        other = chance.choice((None, chance.randrange(4000)))
        values = struct.pack("<i", chance.randrange(chance.choice((30, 100_000, 100_000))))
        values += b"" if other is None else struct.pack("<i", other)
        return bytes([2 * (other is None)]) + values + struct.pack("<I", filler) + bytes(filler)
