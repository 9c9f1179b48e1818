"""The load during hand-overs and backups."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from deploy.servers import Server


@contextmanager
def write_load(source: Server, pause_s: float = 0.0) -> Iterator[Callable[[], int]]:
    """Write transactions of one row and of sixty into load_.t, and a new binlog now and then; yield a function that returns the number
    of transactions.

    `pause_s` follows each.
    """
    done = threading.Event()
    count = 0
    source.execute_many(
        ["CREATE DATABASE load_", "CREATE TABLE load_.t (id INT AUTO_INCREMENT PRIMARY KEY, n INT, b BLOB)"]
    )

    def work() -> None:
        nonlocal count
        with source.connect("load_", autocommit=True) as link, link.cursor() as cursor:
            cursor.execute("SET binlog_format = ROW")
            while not done.is_set():
                count += 1
                cursor.execute("BEGIN")
                for _ in range(1 if count % 3 else 60):
                    cursor.execute(f"INSERT INTO t (n, b) VALUES ({count}, REPEAT('x', 9000))")
                cursor.execute("COMMIT")
                if count % 40 == 0:
                    cursor.execute("FLUSH LOGS")
                done.wait(pause_s)

    writer = threading.Thread(target=work)
    writer.start()
    try:
        yield lambda: count
    finally:
        done.set()
        writer.join()
