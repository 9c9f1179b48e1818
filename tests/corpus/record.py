"""Makes the recorded binlogs of this directory again, from real servers.

    python -m tests.corpus.record [name ...]

Writes recorded/NAME.binlog and recorded/NAME.listing, the server's own SHOW BINLOG EVENTS of it: what the expected
boundaries in expected.py were written down from. Offsets and times differ from one recording to the next; the types and
their order do not.
"""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deploy.servers import SERVERS

RECORDED = Path(__file__).resolve().parent / "recorded"

STATEMENTS = [
    "SET SESSION binlog_format = STATEMENT",
    "CREATE TABLE trx (a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(20)) ENGINE=InnoDB",
    "CREATE TABLE nontrx (a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(20)) ENGINE=MyISAM",
    "INSERT INTO trx (b) VALUES ('one')",
    "INSERT INTO nontrx (b) VALUES ('two')",
    "SET @v = 'three'",
    "INSERT INTO trx (b) VALUES (@v)",
    "SET SESSION binlog_format = ROW",
    "INSERT INTO trx (b) VALUES ('four'), ('five')",
    "UPDATE nontrx SET b = 'six'",
    "BEGIN",
    "INSERT INTO trx (b) VALUES ('seven')",
    "SAVEPOINT s",
    "DELETE FROM trx WHERE a = 1",
    "ROLLBACK TO SAVEPOINT s",
    "INSERT INTO trx (b) VALUES ('eight')",
    "COMMIT",
    "SET SESSION binlog_format = STATEMENT",
    "BEGIN",
    "INSERT INTO trx (b) VALUES ('nine')",
    "SAVEPOINT s",
    "INSERT INTO nontrx (b) VALUES ('ten')",
    "ROLLBACK TO SAVEPOINT s",
    "COMMIT",
    "BEGIN",
    "INSERT INTO trx (b) VALUES ('eleven')",
    "INSERT INTO nontrx (b) VALUES ('twelve')",
    "ROLLBACK",
    "SET SESSION binlog_format = ROW",
    "CREATE TABLE copied ENGINE=InnoDB SELECT * FROM trx",
    "DROP TABLE copied",
]
XA = [
    "XA START 'one', 'phase'",
    "INSERT INTO trx (b) VALUES ('xa1')",
    "XA END 'one', 'phase'",
    "XA COMMIT 'one', 'phase' ONE PHASE",
    "XA START 'two'",
    "INSERT INTO trx (b) VALUES ('xa2')",
    "XA END 'two'",
    "XA PREPARE 'two'",
    "XA COMMIT 'two'",
    "XA START 'back'",
    "INSERT INTO trx (b) VALUES ('xa3')",
    "XA END 'back'",
    "XA PREPARE 'back'",
    "XA ROLLBACK 'back'",
]
SMALL = [
    "CREATE TABLE trx (a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(2000)) ENGINE=InnoDB",
    "INSERT INTO trx (b) VALUES (REPEAT('x', 1500))",
    "BEGIN",
    "INSERT INTO trx (b) VALUES ('a'), ('b')",
    "UPDATE trx SET b = 'c'",
    "COMMIT",
    "DROP TABLE trx",
]
SMALL_IN_STATEMENTS = ["SET SESSION binlog_format = STATEMENT", *SMALL, "SET SESSION binlog_format = ROW"]


@dataclass(frozen=True)
class Recording:
    """A server, its options, and what is run in schema `test` while the file is written."""

    server: str
    statements: Sequence[str]
    options: Sequence[str] = field(default_factory=list)


GTID = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"]
RECORDINGS = {
    "mysql56": Recording("mysql56", [*STATEMENTS, *XA], ["--binlog-rows-query-log-events=ON"]),
    "mysql56-gtid": Recording("mysql56", SMALL, [*GTID, "--log-slave-updates"]),
    "mysql56-no-checksum": Recording("mysql56", SMALL, ["--binlog-checksum=NONE"]),
    "mysql97-anonymous": Recording(
        "mysql97", [*STATEMENTS, *XA], ["--gtid-mode=OFF", "--binlog-rows-query-log-events=ON"]
    ),
    "mysql97-gtid": Recording(
        "mysql97",
        [*SMALL[:-1], *XA, "SET gtid_next = 'AUTOMATIC:tag'", "DROP TABLE trx", "SET gtid_next = 'AUTOMATIC'"],
        GTID,
    ),
    "mysql97-compressed": Recording("mysql97", SMALL, ["--binlog-transaction-compression=ON", "--gtid-mode=OFF"]),
    "mariadb": Recording("mariadb", [*STATEMENTS, *XA], ["--binlog-annotate-row-events=ON"]),
    "mariadb-compressed": Recording(
        "mariadb",
        ["SET SESSION binlog_format = ROW", *SMALL, *SMALL_IN_STATEMENTS],
        ["--log-bin-compress=ON", "--log-bin-compress-min-len=10"],
    ),
}


def record(name: str) -> None:
    """Makes NAME.binlog and NAME.listing."""
    recording = RECORDINGS[name]
    with SERVERS[recording.server]() as server:
        server.start(server_id=7, options=list(recording.options))
        server.execute_many(["CREATE DATABASE IF NOT EXISTS test", "FLUSH BINARY LOGS"])
        server.execute_many(recording.statements, "test")
        server.sql("FLUSH BINARY LOGS")
        path = server.binlogs()[-2]
        shutil.copyfile(path, RECORDED / f"{name}.binlog")
        listing = [
            f"{position}\t{kind}\t{info}".replace("\n", " ")
            for _file, position, kind, _server, _end, info in server.sql(f"SHOW BINLOG EVENTS IN '{path.name}'")
        ]
        (RECORDED / f"{name}.listing").write_text("\n".join([f"# {server.read_version()}", *listing, ""]))


def main() -> None:
    """Records what is named, or all."""
    RECORDED.mkdir(exist_ok=True)
    for name in sys.argv[1:] or RECORDINGS:
        record(name)
        print(name, (RECORDED / f"{name}.binlog").stat().st_size, "bytes")


if __name__ == "__main__":
    main()
