"""Makes the recorded binlogs of this directory again, from real servers.

    python -m tests.corpus.record [name ...]

Writes recorded/NAME.binlog and recorded/NAME.listing, the server's own SHOW BINLOG EVENTS of it: what the expected
boundaries in expected.py were written down from. Offsets and times differ from one recording to the next; the types and
their order do not. What is encrypted at rest goes to encrypted/, without a listing.
"""

import secrets
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from deploy.servers import SERVERS, Server

RECORDED = Path(__file__).resolve().parent / "recorded"
ENCRYPTED = RECORDED.parent / "encrypted"

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
# Statements on JSON whose update is logged as what changed in the value, beside transactions with and without compression.
PARTIAL_JSON = [
    "CREATE TABLE crate (id INT PRIMARY KEY, label VARCHAR(800)) ENGINE=InnoDB",
    "INSERT INTO crate VALUES (1, 'oak')",
    "BEGIN",
    "INSERT INTO crate VALUES (2, 'elm')",
    "INSERT INTO crate VALUES (3, 'ash')",
    "COMMIT",
    "INSERT INTO crate VALUES (4, 'fir')",
    "SET SESSION binlog_transaction_compression = ON",
    "BEGIN",
    *(f"INSERT INTO crate VALUES ({number}, REPEAT('board ', 100))" for number in range(10, 30)),
    "COMMIT",
    "SET SESSION binlog_transaction_compression = OFF",
    "INSERT INTO crate VALUES (5, 'yew')",
    "CREATE TABLE parcel (id INT PRIMARY KEY, facts JSON) ENGINE=InnoDB",
    "SET SESSION binlog_format = STATEMENT",
    """INSERT INTO parcel VALUES (1, CONCAT('{"to": "", "from": "here", "text": "', REPEAT('words ', 60), '"}'))""",
    "SET SESSION binlog_format = ROW",
    "SET SESSION binlog_row_value_options = PARTIAL_JSON",
    "UPDATE parcel SET facts = JSON_SET(facts, '$.from', 'away')",
]
SEQUENCE = [
    "CREATE SEQUENCE numbers",
    "SET SESSION gtid_seq_no = 200",
    "SELECT NEXT VALUE FOR numbers",
    "INSERT INTO numbers VALUES (5, 1, 50, 1, 5, 1, 1, 0)",
    "DROP SEQUENCE numbers",
]
TIMES = [
    "CREATE TABLE arrivals (due TIMESTAMP, seen TIMESTAMP NULL) ENGINE=MyISAM",
    "INSERT INTO arrivals VALUES (NULL, NULL)",
    "INSERT INTO arrivals () VALUES ()",
]
SMALL_IN_STATEMENTS = ["SET SESSION binlog_format = STATEMENT", *SMALL, "SET SESSION binlog_format = ROW"]


@dataclass(frozen=True)
class Recording:
    """A server, its options, what is run in schema `test` while the file is written, and how that ends.

    together: run after the others, all at once, each on a connection of its own, and committed as one group. first: the file
    is the first one, as after RESET MASTER, and not the one behind FLUSH BINARY LOGS. ending: with a Rotate; with the Stop
    of a shutdown; or not at all, as the file is copied while the server writes it.
    """

    server: str
    statements: Sequence[str]
    options: Sequence[str] = field(default_factory=list)
    together: Sequence[str] = ()
    first: bool = False
    ending: Literal["rotated", "stopped", "open"] = "rotated"


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
    "mysql97-partial-json": Recording("mysql97", PARTIAL_JSON, ["--gtid-mode=OFF"]),
    "mariadb-sequence": Recording(
        "mariadb", SEQUENCE, ["--binlog-format=ROW", "--default-storage-engine=MyISAM"], first=True, ending="open"
    ),
    "mariadb-group-commit": Recording(
        "mariadb",
        ["CREATE TABLE crate (id INT PRIMARY KEY) ENGINE=InnoDB"],
        ["--binlog-format=ROW"],
        together=["INSERT INTO crate VALUES (1)", "INSERT INTO crate VALUES (2)"],
    ),
    "mariadb-stopped": Recording("mariadb", TIMES, ["--binlog-format=STATEMENT"], first=True, ending="stopped"),
}


def commit_together(server: Server, statements: Sequence[str]) -> None:
    """MariaDB: a commit waits until there are as many as there are statements."""
    waits = [
        "SET GLOBAL binlog_commit_wait_usec = 20000000",
        f"SET GLOBAL binlog_commit_wait_count = {len(statements)}",
    ]
    server.execute_many(waits)
    with ThreadPoolExecutor(len(statements)) as sessions:
        list(sessions.map(lambda statement: server.sql(statement, "test"), statements))
    server.execute_many(["SET GLOBAL binlog_commit_wait_count = 0"])


def record(name: str) -> None:
    """Makes NAME.binlog and NAME.listing."""
    recording = RECORDINGS[name]
    with SERVERS[recording.server]() as server:
        server.start(server_id=7, options=list(recording.options))
        begin = "RESET MASTER" if recording.first else "FLUSH BINARY LOGS"
        server.execute_many(["CREATE DATABASE IF NOT EXISTS test", begin])
        server.execute_many(recording.statements, "test")
        if recording.together:
            commit_together(server, recording.together)
        if recording.ending == "rotated":
            server.sql("FLUSH BINARY LOGS")
        path = server.binlogs()[-2 if recording.ending == "rotated" else -1]
        if recording.ending == "stopped":
            server.restart()
        shutil.copyfile(path, RECORDED / f"{name}.binlog")
        listing = [
            f"{position}\t{kind}\t{info}".replace("\n", " ")
            for _file, position, kind, _server, _end, info in server.sql(f"SHOW BINLOG EVENTS IN '{path.name}'")
        ]
        (RECORDED / f"{name}.listing").write_text("\n".join([f"# {server.read_version()}", *listing, ""]))


def record_encrypted() -> None:
    """Makes encrypted/mariadb.binlog: behind Start_encryption nothing can be read without the key, which was thrown away."""
    ENCRYPTED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="binlog-relay-keys-") as made:
        keys = Path(made) / "keys"
        keys.write_text(f"1;{secrets.token_hex(16)}\n")
        keys.chmod(0o644)
        Path(made).chmod(0o755)
        with SERVERS["mariadb"]() as server:
            options = [
                "--plugin-load-add=file_key_management",
                f"--file-key-management-filename={keys}",
                "--encrypt-binlog=ON",
            ]
            server.start(server_id=7, options=options)
            server.execute_many(["CREATE DATABASE IF NOT EXISTS test", "RESET MASTER"])
            server.execute_many(SMALL, "test")
            shutil.copyfile(server.binlogs()[-1], ENCRYPTED / "mariadb.binlog")


def main() -> None:
    """Records what is named, or all."""
    RECORDED.mkdir(exist_ok=True)
    for name in sys.argv[1:] or [*RECORDINGS, ENCRYPTED.name]:
        if name == ENCRYPTED.name:
            record_encrypted()
        else:
            record(name)
        print(name)


if __name__ == "__main__":
    main()
