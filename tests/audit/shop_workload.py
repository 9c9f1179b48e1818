"""A shop's changes on a real server, half of them as rows and half as statements: what the figures about audits are measured with.

python -m tests.audit.shop_workload mysql56 DIR        writes the binlogs to DIR, and says what is in them
"""

import json
import random
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

from deploy.servers import SERVERS, Server

_TABLES: Final = (
    "CREATE TABLE customers (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(60), mail VARCHAR(90)) ENGINE=InnoDB",
    "CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, customer INT, total DECIMAL(10,2), note TEXT) ENGINE=InnoDB",
    "CREATE TABLE items (id INT PRIMARY KEY AUTO_INCREMENT, order_id INT, name VARCHAR(60), count INT) ENGINE=InnoDB",
    "CREATE TABLE stock (id INT PRIMARY KEY, count INT, moved DATETIME) ENGINE=InnoDB",
    "CREATE TABLE prices (id INT PRIMARY KEY, price DECIMAL(10,2)) ENGINE=InnoDB",
    "CREATE TABLE trail_nopk (what VARCHAR(80), at DATETIME) ENGINE=InnoDB",
    "CREATE TABLE log_nopk (what VARCHAR(200)) ENGINE=MyISAM",
    "CREATE TABLE hits (id INT PRIMARY KEY AUTO_INCREMENT, page VARCHAR(60)) ENGINE=MyISAM",
)


def write(server: Server, operations: int = 16000, seed: int = 1) -> Counter[str]:
    """So many operations in ROW and as many in STATEMENT format; the rows that were inserted, updated and deleted in ROW format."""
    chance = random.Random(seed)
    rows: Counter[str] = Counter()
    server.sql("CREATE DATABASE shop")
    connection = server.connect("shop")
    try:
        with connection.cursor() as cursor:
            for statement in _TABLES:
                cursor.execute(statement)
            _stock(cursor)
            for form in ("ROW", "STATEMENT"):
                cursor.execute(f"SET binlog_format = {form}")
                for number in range(operations):
                    done = _operate(cursor, chance, number)
                    if form == "ROW":
                        rows.update(done)
                    if number == operations // 2:
                        cursor.execute("FLUSH BINARY LOGS")
    finally:
        connection.close()
    server.sql("FLUSH BINARY LOGS")
    return rows


def _stock(cursor: Any) -> None:
    values = ", ".join(f"({number}, 100, '2026-01-01')" for number in range(1, 201))
    cursor.execute(f"INSERT INTO stock VALUES {values}")
    prices = ", ".join(f"({number}, {number}.50)" for number in range(1, 201))
    cursor.execute(f"INSERT INTO prices VALUES {prices}")


def _operate(cursor: Any, chance: random.Random, number: int) -> dict[str, int]:
    kind = chance.random()
    one = chance.randint(1, 200)
    cursor.execute("BEGIN")
    if kind < 0.5:
        cursor.execute(
            f"INSERT INTO orders (customer, total, note) VALUES ({one}, {one}.25, '{'n' * chance.randint(5, 300)}')"
        )
        count = chance.randint(1, 4)
        values = ", ".join(f"({number}, 'thing {one}', {place})" for place in range(count))
        cursor.execute(f"INSERT INTO items (order_id, name, count) VALUES {values}")
        changed = cursor.execute(
            f"UPDATE stock SET count = count - 1, moved = '2026-01-02' WHERE id = {one} ORDER BY id"
        )
        done = {"insert": 1 + count, "update": changed}
    elif kind < 0.7:
        cursor.execute(f"INSERT INTO customers (name, mail) VALUES ('name {number}', 'mail{number}@example.org')")
        cursor.execute(f"INSERT INTO trail_nopk VALUES ('customer {number}', '2026-01-01 10:00:00')")
        done = {"insert": 2}
    elif kind < 0.9:
        done = {"update": cursor.execute(f"UPDATE prices SET price = price + 0.01 WHERE id = {one}")}
    elif kind < 0.97:
        done = {"delete": cursor.execute(f"DELETE FROM items WHERE id = {chance.randint(1, max(2, number))}")}
    elif kind < 0.985:
        cursor.execute(f"INSERT INTO customers (name) VALUES ('late {number}')")
        cursor.execute(f"INSERT INTO hits (page) VALUES ('/page/{one}')")
        cursor.execute(f"INSERT INTO log_nopk VALUES ('seen {number}')")
        done = {"insert": 3}
    else:
        cursor.execute(f"INSERT INTO hits (page) VALUES ('/page/{one}')")
        done = {"insert": 1}
    cursor.execute("COMMIT")
    return done


def main(name: str, target: Path) -> None:
    """Writes the binlogs of such a server to `target`."""
    target.mkdir(parents=True)
    with SERVERS[name]() as server:
        server.start(server_id=7)
        rows = write(server)
        for path in server.binlogs()[:-1]:
            shutil.copy(path, target / path.name)
    (target.parent / f"{target.name}.json").write_text(json.dumps(rows))
    print(dict(rows), [(path.name, path.stat().st_size) for path in sorted(target.iterdir())])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], Path(sys.argv[2]))
