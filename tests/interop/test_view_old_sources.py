"""Binlogs of MySQL 5.1, whose transactions have no BEGIN where a table has none of them: what a MySQL 9.7 makes of a view."""

import struct
from pathlib import Path

import pytest

from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.event_stream import EventStream, format_body, query_body, raw_event
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, RelayProcess

pytestmark = pytest.mark.interop

# Of MySQL 5.1.30, by type code from 1 on.
LENGTHS_OF_51 = bytes((56, 13, 0, 8, 0, 18, 0, 4, 4, 4, 4, 18, 0, 0, 84, 0, 4, 26, 8, 0, 0, 0, 8, 8, 8, 2, 0))
UUID = "5a3c1b9e-7d20-5c44-8f61-0d2e4b6a8c10"
REPLICA = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--replica-parallel-workers=4")


def table_map(table: str) -> bytes:
    """Of a table of schema d with one INT column."""
    name = table.encode()
    head = struct.pack("<IHH", 7, 0, 1) + b"\x01d\0" + bytes((len(name),)) + name + b"\0"
    return head + b"\x01\x03\x00\x01"


def inserted(value: int) -> bytes:
    """A Write_rows of version 1, the statement's last event."""
    return struct.pack("<IHH", 7, 0, 1) + b"\x01\xff" + b"\xfe" + struct.pack("<i", value)


def binlog_of_51() -> bytes:
    made = EventStream(checksum=False, with_format=False)
    made.add_raw(raw_event(15, format_body("5.1.30-log", LENGTHS_OF_51, None), offset=4, checksum=False))
    made.query("CREATE DATABASE d")
    made.add(2, query_body("CREATE TABLE t (a INT) ENGINE=MyISAM", b"d"))
    made.add(2, query_body("CREATE TABLE s (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, b INT) ENGINE=MyISAM", b"d"))
    for value in range(1, 6):
        made.add(19, table_map("t")).add(23, inserted(value))
    # An Intvar and a statement, and no BEGIN either: id 100 + n.
    for number in range(3):
        made.add(5, struct.pack("<BQ", 2, 100 + number))
        made.add(2, query_body(f"INSERT INTO s (b) VALUES ({number})", b"d"))
    made.add(19, table_map("t")).add(23, inserted(6))
    return b"\xfebin" + made.data


@pytest.mark.parametrize("engines", ["keep", "innodb"])
def test_what_came_without_begin_is_committed_each_with_its_gtid(
    servers: ServerFactory, tmp_path: Path, engines: str
) -> None:
    source = tmp_path / "binlogs"
    source.mkdir()
    (source / "mysql-bin.000001").write_bytes(binlog_of_51())
    replica = servers("mysql97")
    replica.start(server_id=2, options=REPLICA)
    with RelayProcess(tmp_path / "relay", source, port=free_port()) as relay:
        with relay.config.open("a", encoding="utf-8") as config:
            config.write(f'\n[[view]]\nname = "gtid"\nuuid = "{UUID}"\nengines = "{engines}"\n')
        relay.add_account(user="viewer", password=REPLICA_PASSWORD, view="gtid")
        relay.stop()
        relay.start()
        replica.attach("127.0.0.1", relay.port, "viewer", REPLICA_PASSWORD, auto_position=1)

        def applied() -> bool:
            status = replica.replica_status()
            assert not status["sql_errno"] and status["io_errno"] not in (1236, 13114), status
            return replica.sql("SELECT @@GLOBAL.gtid_executed") == [(f"{UUID}:1-12",)]

        wait_until(applied, "the replica has all twelve")
        assert replica.sql("SELECT a FROM d.t ORDER BY a") == [(value,) for value in range(1, 7)]
        assert replica.sql("SELECT id, b FROM d.s ORDER BY id") == [(100, 0), (101, 1), (102, 2)]
