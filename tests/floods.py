"""Strangers in floods, and whether replicas and an admin get in, and are answered in time, meanwhile.

    python -m tests.floods [--rate R ...] [--kind K ...] [--addresses N ...] [--round-trip MS ...] [--logins N] [--no-commands]

For each rate (strangers a second: 30, 100, 1000), kind (silent, talking, mixed) and number of addresses that they come from (1, 50),
and once for idle connections to the HTTP port: of twenty logins from each distance (0, 20, 50, 150 ms of round trip), from one of the
strangers' own addresses, how many are right at the first try; the longest login of an admin; the 99th percentile of an admin's
SELECT 1; the longest time without a heartbeat of a replica that asked for one each 0.2 s; and how many of 100 requests are answered
by /healthz and over health.sock. Then the same of an admin and a replica while fifty connections of another account send one command
again and again. A line each. Exit status 1: not all came in, or not in time.
"""

import argparse
import contextlib
import itertools
import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pymysql

from tests.support.binlog_builder import BinlogBuilder
from tests.support.command_flood import command_flood
from tests.support.far_client import logins
from tests.support.free_port import free_port
from tests.support.http_relay import get, http_section
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess
from tests.support.replica_client import ReplicaClient
from tests.support.stranger_flood import stranger_flood

FIRST: Final = "mysql-bin.000001"
ADMIN: Final = {"user": "dba", "password": "dba-password"}
REPLICA: Final = {"user": REPLICA_USER, "password": REPLICA_PASSWORD}
COMMANDS: Final = ("SHOW VARIABLES", "SHOW STATUS", "SHOW PROCESSLIST", "SHOW REPLICAS", "SHOW BINARY LOGS", "SELECT 1")
_COMMANDS_S: Final = 5.0
_PAUSE_S: Final = 0.01
_HEARTBEAT_S: Final = 0.2
_LONGEST_ANSWER_S: Final = 0.1
_LONGEST_LOGIN_S: Final = 1.0


@contextlib.contextmanager
def attacked_relay(directory: Path, **listen: Any) -> Iterator[RelayProcess]:
    """A relay with an admin and HTTP, on an archive of one file. listen: of its section of that name."""
    source = directory / "binlogs"
    source.mkdir(parents=True)
    data = bytes(BinlogBuilder().ddl().transaction(20).data)
    (source / FIRST).write_bytes(data)
    sections = {"listen": listen, **http_section(free_port())}
    relay = RelayProcess(directory / "relay", source, port=free_port(), sections=sections)
    with relay.config.open("a", encoding="utf-8") as config:
        config.write(f'[[account]]\nuser = "{ADMIN["user"]}"\npassword = "{ADMIN["password"]}"\nadmin = true\n')
    with relay:
        relay.wait_archived(FIRST, len(data))
        yield relay


def http_port(relay: RelayProcess) -> int:
    """Where it answers HTTP."""
    lines = relay.config.read_text(encoding="utf-8").partition("[http]")[2].splitlines()
    return next(int(line.partition("=")[2]) for line in lines if line.startswith("port"))


class AdminWatch:
    """An admin who is connected and asks SELECT 1 again and again, and a replica that is sent heartbeats."""

    def __init__(self, port: int) -> None:
        self._admin = pymysql.connect(host="127.0.0.1", port=port, **ADMIN)
        self._replica = ReplicaClient(port, user=REPLICA_USER, password=REPLICA_PASSWORD, timeout_s=20)
        self._replica.set_up(heartbeat_s=_HEARTBEAT_S)
        self._replica.ask_dump(FIRST, 4)
        self._ended = threading.Event()
        self._answers: list[float] = []
        self._gaps: list[float] = []
        self._threads = [threading.Thread(target=work) for work in (self._ask, self._listen)]
        for thread in self._threads:
            thread.start()

    def _ask(self) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            self._admin.query("SELECT 1")
            self._answers.append(time.monotonic() - began)
            time.sleep(_PAUSE_S)

    def _listen(self) -> None:
        last = time.monotonic()
        while not self._ended.is_set():
            self._replica.event()
            now = time.monotonic()
            self._gaps.append(now - last)
            last = now

    def end(self) -> tuple[float, float]:
        """The 99th percentile of an answer, and the longest time without an event, in seconds."""
        self._ended.set()
        for thread in self._threads:
            thread.join(30)
        self._admin.close()
        self._replica.cut()
        return sorted(self._answers)[int(len(self._answers) * 0.99)], max(self._gaps)


def asked_health(relay: RelayProcess, times: int) -> int:
    """How many of so many questions over the archive's socket are answered."""
    place, good = os.open(relay.archive.parent, os.O_PATH), 0
    for _ in range(times):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(2)
            asking.connect(f"/proc/self/fd/{place}/{relay.archive.name}.health.sock")
            asking.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            good += asking.recv(64).startswith(b"HTTP/1.0 200")
    os.close(place)
    return good


def asked_healthz(port: int, times: int) -> int:
    """The same by HTTP."""
    good = 0
    for _ in range(times):
        with contextlib.suppress(OSError, ValueError):
            good += get(port, "/healthz")[0] == 200
    return good


def trial(relay: RelayProcess, monitored: int, distances: list[float], count: int, times: int) -> dict[str, Any]:
    """What is to be seen while a flood goes on."""
    watch = AdminWatch(relay.port)
    came, met = {}, set[str]()
    try:
        for distance_ms in distances:
            came[f"{distance_ms:g} ms"], _longest_s, errors = logins(relay.port, count, distance_ms / 1000, **REPLICA)
            met |= errors
        admins, longest_login_s, errors = logins(relay.port, 10, 0.0, at_once=1, **ADMIN)
        met |= errors
        health = asked_health(relay, times), asked_healthz(monitored, times)
    finally:
        answer_s, gap_s = watch.end()
    return {
        "logins": came,
        "errors": sorted(met),
        "admins": admins,
        "admin_login_s": round(longest_login_s, 3),
        "select_1_p99_ms": round(answer_s * 1000, 1),
        "heartbeat_late_ms": round((gap_s - _HEARTBEAT_S) * 1000),
        "health.sock": health[0],
        "healthz": health[1],
        "is_right": set(came.values()) == {count}
        and admins == 10
        and longest_login_s < _LONGEST_LOGIN_S
        and answer_s < _LONGEST_ANSWER_S
        and health == (times, times),
    }


def beside_commands(relay: RelayProcess, statement: str, *, ahead: bool, duration_s: float) -> dict[str, Any]:
    """What an admin and a replica see while fifty connections send this statement."""
    with command_flood(relay.port, statement, ahead=ahead, **REPLICA):
        watch = AdminWatch(relay.port)
        time.sleep(duration_s)
        answer_s, gap_s = watch.end()
    return {
        "select_1_p99_ms": round(answer_s * 1000, 1),
        "heartbeat_late_ms": round((gap_s - _HEARTBEAT_S) * 1000),
        "is_right": answer_s < _LONGEST_ANSWER_S and gap_s - _HEARTBEAT_S < _LONGEST_ANSWER_S,
    }


def main() -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.floods", description=__doc__)
    parser.add_argument("--rate", type=float, action="append", help="strangers a second")
    parser.add_argument("--kind", choices=["silent", "talking", "mixed"], action="append")
    parser.add_argument("--addresses", type=int, action="append", help="how many they come from")
    parser.add_argument("--round-trip", type=float, action="append", help="milliseconds")
    parser.add_argument("--logins", type=int, default=20)
    parser.add_argument("--no-commands", action="store_true", help="strangers only")
    wanted = parser.parse_args()
    distances = wanted.round_trip or [0.0, 20.0, 50.0, 150.0]
    cases = itertools.product(
        wanted.rate or [30.0, 100.0, 1000.0], wanted.kind or ["silent", "talking", "mixed"], wanted.addresses or [1, 50]
    )
    is_right = True
    with tempfile.TemporaryDirectory(prefix="floods-") as directory, attacked_relay(Path(directory)) as relay:
        monitored = http_port(relay)
        for port, (rate, kind, addresses) in itertools.chain(
            (("mysql", case) for case in cases), [("http", (wanted.rate[-1] if wanted.rate else 1000.0, "silent", 1))]
        ):
            strangers = [f"127.0.0.{1 + number}" for number in range(addresses)]
            with stranger_flood(relay.port if port == "mysql" else monitored, rate, kind, strangers):
                found = trial(relay, monitored, distances, wanted.logins, 100)
            is_right &= found["is_right"]
            print(json.dumps({"port": port, "rate": rate, "kind": kind, "addresses": addresses, **found}), flush=True)
        for statement, ahead in itertools.product(() if wanted.no_commands else COMMANDS, (False, True)):
            found = beside_commands(relay, statement, ahead=ahead, duration_s=_COMMANDS_S)
            is_right &= found["is_right"]
            print(json.dumps({"statement": statement, "ahead": ahead, **found}), flush=True)
        is_right &= relay.stop() == 0
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
