"""A source and a relay whose every binlog but the newest is in a bucket, encrypted, and real replicas that follow it in all ways."""

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

from deploy.servers import Server
from tests.support.chain import Chain, wait_until
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, wait_for_line
from tests.support.s3_server import S3Server
from tests.support.view_chain import REPLICA_DEFAULTS, VIEW, add_views, follow, listen_with_tls, view_keys

GTIDS: Final = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON")
POSITION: Final = "position"
GTID: Final = "GTID"
OF_VIEW: Final = "GTID, of a view"
_FILES: Final = 5
_ROWS: Final = 40


class Follower(NamedTuple):
    """A kind of server, and how it follows."""

    kind: str
    way: str


class BucketChain(Chain):
    """A chain that has the source write when entered; then all but the newest binlog are in the bucket, and the relay has nothing of
    them in memory. A view is added only then: it is built from the bucket."""

    def __init__(
        self,
        servers: Callable[[str], Server],
        source_name: str,
        directory: Path,
        storage: S3Server,
        *,
        options: Sequence[str] = (),
        has_view: bool = False,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "key").write_text("ab" * 32)
        told = storage.options(directory.name)
        bucket = {
            name: getattr(told, name) for name in ("url", "endpoint", "region", "access_key_id", "secret_key_file")
        }
        sections: dict[str, dict[str, Any]] = {
            "archive.tiers": {"hot_bytes": "1KiB", "cold_bytes": "1KiB", "read_cache": "1MiB"},
            "archive.bucket": bucket,
            "archive.encryption": {"active": "first"},
            "[archive.encryption.key]": {"id": "first", "file": str(directory / "key")},
            "listen": listen_with_tls(directory),
        }
        super().__init__(servers, source_name, directory, options=options, sections=sections)
        self._has_view = has_view

    def __enter__(self) -> "BucketChain":
        super().__enter__()
        _fill(self.source)
        self._wait_moved()
        self.relay.stop()
        if self._has_view:
            add_views(self.relay, [view_keys()])
        self.relay.start()
        if self._has_view:
            wait_for_line(self.relay, "view_served")
        return self

    def start_anew(self) -> None:
        """Restart the relay, so that nothing is left in its memory."""
        self.relay.stop()
        self.relay.start()

    def followers(self, wanted: Iterable[Follower]) -> list[Server]:
        """Return followers from the oldest binlog on, started in parallel."""
        made = []
        for one in wanted:
            self._next_id += 1
            made.append((one, self._servers(one.kind), self._next_id))

        def start(item: tuple[Follower, Server, int]) -> Server:
            (kind, way), server, server_id = item
            options = () if way == POSITION or kind != "mysql97" else GTIDS if way == GTID else REPLICA_DEFAULTS
            return server.start(server_id=server_id, options=options)

        with ThreadPoolExecutor(len(made)) as pool:
            servers = list(pool.map(start, made))
        for (one, _server, _id), server in zip(made, servers, strict=True):
            self.begin_to_follow(server, one.way)
        return servers

    def begin_to_follow(self, server: Server, way: str) -> None:
        """Run CHANGE … TO and START; it reconnects a second after an error."""
        if way == OF_VIEW:
            follow(server, self.relay.port, VIEW, connect_retry=1)
        elif way == POSITION:
            self.attach(server, connect_retry=1)
        elif server.flavour == "mariadb":
            self.attach(server, use_gtid="slave_pos", connect_retry=1)
        else:
            login = "127.0.0.1", self.relay.port, REPLICA_USER, REPLICA_PASSWORD
            server.attach(*login, auto_position=1, connect_retry=1)

    def add_and_compare(self, replicas: Sequence[Server], number: int, timeout_s: float = 120.0) -> None:
        """Check that the bucket's content arrives, and what is written after it."""
        self.source.execute_many([*_names(self.source), f"INSERT INTO d.t VALUES ({number}, 'behind')"])
        wanted = self.source.checksum_tables(["d"])

        def has_all(replica: Server) -> bool:
            status = replica.replica_status()
            assert status["sql_running"] and status["io_running"] != "No", status
            return bool(replica.sql("SHOW DATABASES LIKE 'd'")) and replica.checksum_tables(["d"]) == wanted

        for replica in replicas:
            wait_until(lambda replica=replica: has_all(replica), f"{replica!r} has what the source has", timeout_s)  # type: ignore[misc]

    def _wait_moved(self) -> None:
        end = self.wait_archived()

        def moved() -> list[str]:
            places = sorted(self.relay.archive.glob("*.place"))
            return [path.stem for path in places if json.loads(path.read_text())["place"]["tier"] == "object"]

        wanted = len(self.source.binlogs()) - 1
        wait_until(lambda: len(moved()) == wanted, "all but the newest are in the bucket", timeout_s=60)
        wait_until(lambda: not list(self.relay.archive.glob("*.zst*")), "they are not here as well")
        assert not any((self.relay.archive / name).exists() for name in moved()) and end.file not in moved()


def _fill(source: Server) -> None:
    """Fill each file with rows that hardly compress."""
    names = _names(source)
    source.execute_many(
        [*names, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, a LONGTEXT) ENGINE=InnoDB"]
    )
    value = "HEX(RANDOM_BYTES(900))" if source.name == "mysql97" else "REPEAT(SHA2(RAND(), 256), 30)"
    for file in range(_FILES):
        rows = [f"INSERT INTO d.t VALUES ({file * _ROWS + row}, {value})" for row in range(_ROWS)]
        source.execute_many([*names, *rows, "FLUSH BINARY LOGS"])


def _names(source: Server) -> list[str]:
    # Clients of MySQL 9.7 send by default what no older server knows.
    return ["SET NAMES utf8mb4 COLLATE utf8mb4_general_ci"] if source.name == "mysql97" else []
