"""The archive of a cluster's proof: one table with a key, its history over many files, and what it is at the end."""

import asyncio
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.audit.test_rows import add_map, add_rows, add_statement, image
from tests.support.archive_filling import fill
from tests.support.binlog_builder import BinlogBuilder

_TRANSACTIONS: Final = 20_000
"""Of a file."""
_CREATED: Final = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.orders (id INT NOT NULL, name VARCHAR(20), PRIMARY KEY (id)) ENGINE=InnoDB DEFAULT CHARSET=latin1",
)
_WRITE, _UPDATE, _DELETE = 30, 31, 32


class Orders:
    """shop.orders, as somebody works on it. `rows`: id -> name, what it is now."""

    def __init__(self, seed: int) -> None:
        self.rows: dict[int, str] = {}
        self._random = random.Random(seed)
        self._ids: list[int] = []
        self._next = 0

    def binlog(self, transactions: int) -> BinlogBuilder:
        """So many transactions more, in a file of their own; the first file begins with the table's CREATE."""
        binlog = BinlogBuilder()
        for text in () if self._next else _CREATED:
            binlog.query(text)
        for number in range(transactions):
            binlog.begin()
            add_statement(binlog, f"INSERT INTO orders /* {number} */")
            add_map(binlog, b"orders", nullable=b"\x02")
            add_rows(binlog, _WRITE, self._inserted() + self._inserted())
            if number % 5 == 4:
                add_map(binlog, b"orders", nullable=b"\x02")
                kind, images = self._removed() if number % 10 == 9 else self._updated(moves=number % 20 == 4)
                add_rows(binlog, kind, images)
            binlog.xid()
        return binlog

    def _inserted(self) -> bytes:
        key = self._next
        self._next += 1
        self._ids.append(key)
        self.rows[key] = f"row {key}"
        return image(key, self.rows[key])

    def _updated(self, *, moves: bool) -> tuple[int, bytes]:
        """An order has another name, or another key, which is as if it went and a new one came."""
        if moves:
            return _UPDATE, self._gone() + self._inserted()
        key = self._random.choice(self._ids)
        before = image(key, self.rows[key])
        self.rows[key] = f"now {self._random.randrange(1 << 40)}"
        return _UPDATE, before + image(key, self.rows[key])

    def _removed(self) -> tuple[int, bytes]:
        return _DELETE, self._gone()

    def _gone(self) -> bytes:
        """What an order was that is not there any more."""
        at = self._random.randrange(len(self._ids))
        key = self._ids[at]
        self._ids[at] = self._ids[-1]
        self._ids.pop()
        return image(key, self.rows.pop(key))


@dataclass(frozen=True, slots=True)
class ClusterArchive:
    """Where it is, how much it is, and what its table is at its end."""

    directory: Path
    size: int
    orders: dict[int, str]


def make_archive(directory: Path, megabytes: int, seed: int) -> ClusterArchive:
    """An archive of about so much, as a relay leaves it, of two files at least."""
    orders = Orders(seed)
    files: list[bytearray] = []
    while len(files) < 2 or sum(map(len, files)) < megabytes << 20:
        files.append(orders.binlog(min(_TRANSACTIONS, megabytes * 2_000)).data)
    asyncio.run(fill(directory, *((f"bin.{number:06}", data) for number, data in enumerate(files, 1))))
    return ClusterArchive(directory, sum(map(len, files)), orders.rows)
