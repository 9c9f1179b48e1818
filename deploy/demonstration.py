"""The relay's main job, shown on real servers: `deploy/demo` runs this.

It starts an old source, the relay and a replica of it, and a workload with mixed engines; then it shows what a DBA would check: equal
tables, the boundaries of the last events, a start position that is refused and why, throughput. If no server is available, recorded
binlogs replace the source (the directory source) and a small client the replica.
"""

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pymysql

from deploy.servers import OWN, SERVERS, BinlogPosition, CatchUpError, Server, available
from tests.support import workload
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.replica_client import ReplicaClient

RECORDED = Path(__file__).resolve().parent / "recorded"
# The first is the old source; the values are, for each source, the replicas that can read it, the newest first.
# Servers of one's own come last: they are taken where they are named.
SOURCES = ("mysql56", "mariadb", *(name for name in OWN if name not in ("mysql56", "mariadb")))
REPLICAS = {name: (name,) if kind.flavour == "mariadb" else ("mysql97", name) for name, kind in OWN.items()} | {
    "mysql56": ("mysql97", "mariadb", "mysql56"),
    "mariadb": ("mariadb",),
}
BULK_TRANSACTIONS = 20_000
SPEED_TRANSACTIONS = 300_000


class DemoFailed(Exception):
    """The error that the demonstration did not show what it should."""


def say(text: str = "") -> None:
    """Print a line for the person in front of it."""
    print(text, flush=True)


def title(text: str) -> None:
    """Print a heading."""
    say(f"\n== {text}")


def free_port() -> int:
    """Return a free loopback port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def tool(*arguments: str) -> str:
    """Return the output of `binlog-relay ARGUMENTS`."""
    done = subprocess.run([sys.executable, "-m", "relay", *arguments], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def last_events(file: Path, count: int = 9) -> None:
    """Show the end of an archived binlog with its boundaries."""
    title(f"The last events of {file.name} in the archive, with the boundary that the relay wrote into each")
    lines = tool("events", str(file)).splitlines()
    say(f"$ binlog-relay events {file} | tail -{count}")
    for line in lines[-count:]:
        say("  " + (line if len(line) < 170 else line[:167] + "..."))


def middle_of_a_transaction(file: Path) -> int:
    """Return an offset at an event inside the file's largest transaction."""
    import json

    start, best, best_size, inside = 0, 0, 0, 0
    for line in tool("events", "--json", str(file)).splitlines():
        event = json.loads(line)
        boundary = str(event.get("boundary", "")).lower()
        if boundary.startswith("start"):
            start, inside = event["position"], 0
        elif boundary.startswith("inside"):
            inside = event["position"]
        elif boundary.startswith("end") and inside and event["position"] - start > best_size:
            best, best_size = inside, event["position"] - start
    if not best:
        raise DemoFailed(f"no transaction of three events in {file}")
    return best


def receive_speed(work: Path, source: Server, status: BinlogPosition) -> None:
    """Start a second relay with an empty archive, which receives all of the source's binlogs."""
    size = sum(path.stat().st_size for path in source.binlogs())
    with RelayProcess(work / "second", source, port=free_port(), server_id=4243) as second:
        second.wait_archived(status.file, status.position, 120)
        lines = second.log_lines()
        begun = next(line["timestamp"] for line in lines if line.get("event") == "source_attached")
        ended = max(path.stat().st_mtime for path in second.archive.glob("mysql-bin.[0-9]*[0-9]"))
        second.stop()
    from datetime import datetime

    seconds = max(ended - datetime.fromisoformat(begun).timestamp(), 0.001)
    say(
        f"  the relay received, checked, marked and stored {size / 1e6:.0f} MB in {seconds:.2f} s: {size / 1e6 / seconds:.0f} MB/s"
    )


def serve_speed(who: str, port: int, user: str, password: str, files: dict[str, int]) -> None:
    """Read all of these files with a client that discards the bytes."""
    client = ReplicaClient(port, user=user, password=password)
    client.query("SET @mariadb_slave_capability= 4")
    client.set_up(server_id=9999)
    client.ask_dump(min(files), 4, server_id=9999)
    wire = client.connection._sock
    wire.settimeout(60)
    expected = sum(files.values())
    buffer = bytearray(1 << 18)
    count, begun = 0, time.monotonic()
    while count < expected:
        got = wire.recv_into(buffer)
        if not got:
            break
        count += got
    seconds = time.monotonic() - begun
    client.cut()
    say(f"  {who} served {count / 1e6:.0f} MB to one client in {seconds:.2f} s: {count / 1e6 / seconds:.0f} MB/s")


def with_servers(work: Path, source_name: str, replica_name: str, keep: bool) -> None:
    """Run the demonstration with a real source and a real replica."""
    with contextlib.ExitStack() as stack:
        title("A source, the relay, a replica")
        source = stack.enter_context(SERVERS[source_name]())
        source.start(server_id=1, options=["--binlog-format=MIXED"])
        say(f"  source   {source_name} {source.version} on 127.0.0.1:{source.port}")
        relay = stack.enter_context(RelayProcess(work / "relay", source, port=free_port()))
        say(f"  relay    on 127.0.0.1:{relay.port}, archive in {relay.archive}")
        replica = stack.enter_context(SERVERS[replica_name]())
        replica.start(server_id=2)
        first = source.binlogs()[0].name
        replica.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, first, 4)
        say(
            f"  replica  {replica_name} {replica.version} on 127.0.0.1:{replica.port}, attached to the relay at {first}:4"
        )

        title("A workload: InnoDB and MyISAM in one transaction, savepoints, rollbacks, LOAD DATA, DDL, big rows …")
        begun = time.monotonic()
        for binlog_format in workload.FORMATS:
            workload.light_workload(source, binlog_format, database=f"demo_{binlog_format.lower()}")
        source.sql("CREATE DATABASE bulk")
        with workload.session(source, "ROW", "bulk") as execute:
            execute("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT, s VARCHAR(200)) ENGINE=InnoDB")
            execute(
                "CREATE PROCEDURE fill(n INT) BEGIN DECLARE i INT DEFAULT 0; WHILE i < n DO "
                "INSERT INTO t (v, s) VALUES (i, REPEAT('x', 90)); SET i = i + 1; END WHILE; END"
            )
            execute(f"CALL fill({BULK_TRANSACTIONS})")
        status = source.master_status()
        say(f"  written in {time.monotonic() - begun:.1f} s; the source stands at {status.file}:{status.position}")
        replica.wait_caught_up(status.file, status.position, 180)
        say(f"  the replica has applied all of it after {time.monotonic() - begun:.1f} s")

        databases = [f"demo_{binlog_format.lower()}" for binlog_format in workload.FORMATS] + ["bulk"]
        title("CHECKSUM TABLE on both")
        ours, theirs = source.checksum_tables(databases), replica.checksum_tables(databases)
        for name in sorted(ours):
            same = "equal" if ours[name] == theirs.get(name) else "DIFFERENT"
            say(f"  {name:40} {ours[name]:>12} {theirs.get(name, '-'):>12}  {same}")
        if ours != theirs:
            raise DemoFailed("the replica's tables differ from the source's")

        last_events(relay.archive / status.file)
        title("A start position inside a transaction is refused")
        middle = middle_of_a_transaction(relay.archive / status.file)
        replica.stop_replica()
        fresh = stack.enter_context(SERVERS[replica_name]())
        fresh.start(server_id=3)
        fresh.attach("127.0.0.1", relay.port, REPLICA_USER, REPLICA_PASSWORD, status.file, middle)
        number, text = fresh.wait_io_error()
        say(f"  a new replica asked for {status.file}:{middle}; its Last_IO_Error {number}:\n  {text}")
        if "transaction" not in text:
            raise DemoFailed("the position was not refused for the right reason")
        fresh.close()
        replica.start_replica()

        title("Throughput on this machine, which source, relay and client share")
        replica.stop_replica()
        with workload.session(source, "ROW", "bulk") as execute:
            execute(f"CALL fill({SPEED_TRANSACTIONS})")
        status = source.master_status()
        relay.wait_archived(status.file, status.position, 120)
        receive_speed(work, source, status)
        sizes = relay.archived()
        serve_speed("the source", source.port, source.replication_user, source.replication_password, sizes)
        serve_speed("the relay", relay.port, REPLICA_USER, REPLICA_PASSWORD, sizes)
        if keep:
            replica.start_replica()
            stay(relay, source, replica)


def with_recorded(work: Path, keep: bool) -> None:
    """Run the demonstration without any server."""
    title("No server can be had here: recorded binlogs of a MySQL 5.6.24 are the source")
    with RelayProcess(work / "relay", RECORDED, port=free_port()) as relay:
        names = sorted(path.name for path in RECORDED.glob("mysql-bin.[0-9]*"))
        size = (RECORDED / names[-1]).stat().st_size
        relay.wait_archived(names[-1], size)
        say(f"  the relay on 127.0.0.1:{relay.port} has taken in {', '.join(names)}")
        title("A client reads the stream as a replica does")
        client = ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD)
        client.set_up(server_id=2)
        client.ask_dump(names[0], 4, server_id=0, flags=1)
        events = client.events_to_eof()
        streamed = b"".join(event.data for event in events if event.data[17] & 0x20 == 0)
        archived = b"".join((relay.archive / name).read_bytes()[4:] for name in names)
        say(f"  {len(events)} events; equal to the archived files: {streamed == archived}")
        if streamed != archived:
            raise DemoFailed("the stream differs from the archive")
        client.close()
        last_events(relay.archive / names[-1])
        title("A start position inside a transaction is refused")
        biggest = max(names, key=lambda name: (RECORDED / name).stat().st_size)
        middle = middle_of_a_transaction(relay.archive / biggest)
        client = ReplicaClient(relay.port, user=REPLICA_USER, password=REPLICA_PASSWORD)
        client.set_up(server_id=2)
        client.ask_dump(biggest, middle)
        try:
            client.event()
        except pymysql.MySQLError as error:
            say(f"  asked for {biggest}:{middle}: error {error.args[0]}\n  {error.args[1]}")
        else:
            raise DemoFailed("the position was accepted")
        finally:
            client.cut()
        title("Throughput")
        serve_speed("the relay", relay.port, REPLICA_USER, REPLICA_PASSWORD, relay.archived())
        if keep:
            stay(relay)


def stay(relay: RelayProcess, source: Server | None = None, replica: Server | None = None) -> None:
    """Leave everything running until Ctrl-C."""
    title("Left running; Ctrl-C ends it")
    if source is not None:
        say(f"  source:  mysql -h127.0.0.1 -P{source.port} -uroot")
    if replica is not None:
        say(f"  replica: mysql -h127.0.0.1 -P{replica.port} -uroot")
    say(f"  relay:   user {REPLICA_USER!r}, password {REPLICA_PASSWORD!r} on 127.0.0.1:{relay.port}")
    say(f"           configuration {relay.config}, log {relay.log_path}")
    with contextlib.suppress(KeyboardInterrupt):
        signal.pause()


@contextlib.contextmanager
def work_directory() -> Iterator[Path]:
    """Yield a directory for everything, which is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="binlog-relay-demo-") as name:
        os.chmod(name, 0o755)  # Servers run as an account of their own
        yield Path(name)


def main() -> int:
    """Run the demonstration; return 0 if it showed what it should."""
    parser = argparse.ArgumentParser(
        prog="deploy/demo",
        description="The relay's main job, shown on real servers.",
        epilog="With --migrate: a migration from MySQL 5.6 or MariaDB to MySQL 9.7 by GTID in its place.",
    )
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C")
    parser.add_argument("--source", choices=(*SOURCES, "recorded"), help="default: the oldest that can be had")
    options = parser.parse_args()
    missing = available()
    usable = [name for name in SOURCES if missing[name] is None]
    source = options.source or (usable[0] if usable else "recorded")
    if source != "recorded" and missing[source] is not None:
        say(f"deploy/demo: {missing[source]}")
        return 2
    begun = time.monotonic()
    try:
        with work_directory() as work:
            if source == "recorded":
                with_recorded(work, options.keep)
            else:
                replica = next(name for name in REPLICAS[source] if missing[name] is None)
                with_servers(work, source, replica, options.keep)
    except (DemoFailed, CatchUpError) as error:
        say(f"\ndeploy/demo: {error}")
        return 1
    say(f"\nAll shown in {time.monotonic() - begun:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
