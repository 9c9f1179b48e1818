"""The MariaDB that benchmarks read from, and what they have it write."""

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from deploy.servers import Server
from deploy.servers.mariadb import MariaDB
from tests.bench.streams import Server as Login

TRANSACTIONS = 400_000
DATABASE = "bench"

_PROCEDURES = (
    f"CREATE DATABASE {DATABASE}",
    f"CREATE TABLE {DATABASE}.small (id INT PRIMARY KEY AUTO_INCREMENT, amount INT, name VARCHAR(80)) ENGINE=InnoDB",
    # One transaction is Gtid, Annotate_rows, Table_map, Write_rows, Xid: 5 events, 430 bytes.
    f"""CREATE PROCEDURE {DATABASE}.write_small(IN transactions INT)
    BEGIN
      DECLARE done INT DEFAULT 0;
      WHILE done < transactions DO
        INSERT INTO small (amount, name) VALUES (done,
          CONCAT('a name that is as long as such names usually are, of customer ', LPAD(done, 8, '0')));
        SET done = done + 1;
      END WHILE;
    END""",
    f"""CREATE PROCEDURE {DATABASE}.write_paced(IN transactions INT, IN per_second INT)
    BEGIN
      DECLARE done INT DEFAULT 0;
      DECLARE begun DATETIME(6) DEFAULT SYSDATE(6);
      WHILE done < transactions DO
        INSERT INTO small (amount, name) VALUES (done,
          CONCAT('a name that is as long as such names usually are, of customer ', LPAD(done, 8, '0')));
        SET done = done + 1;
        WHILE done > per_second * TIMESTAMPDIFF(MICROSECOND, begun, SYSDATE(6)) / 1000000 DO
          DO SLEEP(0.0005);
        END WHILE;
      END WHILE;
    END""",
)


class BenchSource:
    """A MariaDB, or another `kind` of server, whose first binlog holds `transactions` small transactions.

    In ROW format, with checksums or without, or as `options` of the server say. Made again unless `directory` holds one from before.
    """

    def __init__(
        self,
        transactions: int = TRANSACTIONS,
        directory: Path | None = None,
        *,
        checksum: str = "CRC32",
        kind: type[Server] = MariaDB,
        options: Sequence[str] = (),
    ) -> None:
        self.transactions = transactions
        ready = directory is not None and (directory / f"ready-{transactions}").exists()
        self.server: Server = kind(directory)
        common = ["--binlog-format=ROW", "--max-binlog-size=1G", "--max-connections=400"]
        self.server.start(server_id=1, options=[*common, f"--binlog-checksum={checksum}", *options])
        self.file = "mysql-bin.000001"
        if not ready:
            self._write()
            if directory is not None:
                (directory / f"ready-{transactions}").touch()
        self.size = (self.server.datadir / self.file).stat().st_size

    def _write(self) -> None:
        server = self.server
        server.execute_many(_PROCEDURES)
        server.sql(f"CALL write_small({self.transactions})", DATABASE)

    def write_files(self, count: int, transactions: int, directory: Path) -> None:
        """Copies of `count` more binlogs, with so many small transactions each, into `directory`."""
        names = []
        for _ in range(count):
            self.server.sql("FLUSH BINARY LOGS")
            self.server.sql(f"CALL write_small({transactions})", DATABASE)
            names.append(self.newest()[0])
        self.server.sql("FLUSH BINARY LOGS")  # the last one has its end, too
        for name in names:
            shutil.copyfile(self.server.datadir / name, directory / name)

    @property
    def login(self) -> Login:
        """For dump streams."""
        return Login(self.server.port, self.server.replication_user, self.server.replication_password)

    @property
    def path(self) -> Path:
        """The first binlog."""
        return self.server.datadir / self.file

    @property
    def pid(self) -> int:
        """The server's process."""
        pid = self.server.pid
        assert pid is not None
        return pid

    def newest(self) -> tuple[str, int]:
        """The newest binlog and its size."""
        return self.server.master_status()

    def close(self) -> None:
        """Ends the server."""
        self.server.stop()
        self.server.close()


@contextlib.contextmanager
def bench_source(
    transactions: int,
    directory: Path | None,
    *,
    checksum: str = "CRC32",
    kind: type[Server] = MariaDB,
    options: Sequence[str] = (),
) -> Iterator[BenchSource]:
    """A source that is ended afterwards."""
    source = BenchSource(transactions, directory, checksum=checksum, kind=kind, options=options)
    try:
        yield source
    finally:
        source.close()


@contextlib.contextmanager
def working_directory() -> Iterator[Path]:
    """A directory for archives and output, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="binlog-relay-bench-") as name:
        yield Path(name)


def wait_until_size(path: Path, size: int, timeout_s: float = 300.0) -> float:
    """The moment (`time.monotonic`) at which the file has `size` bytes; looks every millisecond.

    Raises: TimeoutError.
    """
    deadline = time.monotonic() + timeout_s
    while (now := time.monotonic()) < deadline:
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_size >= size:
                return now
        time.sleep(0.001)
    raise TimeoutError(f"{path} did not reach {size} bytes within {timeout_s:g} s")
