"""Fuzzes a running relay with commands of one account, and measures how long each holds the event loop.

    python -m tests.fuzz_commands [--seed S] [--commands N]

Random commands, and those that were made to cost as much as they can, go to a relay of its own, some of them many at once. What must
hold: no callback takes more than 20 ms of processor time, an admin's `SELECT 1` beside them is answered within 100 ms (of 99 in a
hundred), and the relay has no fault of its own.
"""

import argparse
import contextlib
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pymysql

from tests.support.costly_commands import costly_commands, random_command, settings
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess

RECORDED: Final = Path(__file__).resolve().parent.parent / "deploy" / "recorded"
ADMIN: Final = "admin"
_WITHOUT_ANSWER: Final = (0x18, 0x19)
_ENDS: Final = (0x01, 0x11, 0x12, 0x1E)
_PAUSE_S: Final = 0.01


def watched_relay(directory: Path) -> RelayProcess:
    """A relay with recorded binlogs, an account and an admin, whose loop is watched."""
    relay = RelayProcess(directory, RECORDED, port=free_port(), watch_loop=True)
    relay.add_account(user=ADMIN, password=REPLICA_PASSWORD, admin=True)
    return relay


def connected(relay: RelayProcess, user: str = REPLICA_USER) -> Any:
    """A connection."""
    return pymysql.connect(
        host="127.0.0.1", port=relay.port, user=user, password=REPLICA_PASSWORD, read_timeout=60, charset="utf8mb4"
    )


@dataclass
class Client:
    """Sends commands, and reads whatever comes. It comes again when it is sent away."""

    relay: RelayProcess
    connection: Any = None

    def send(self, command: bytes, times: int = 1) -> None:
        """Sends the command so often at once, and waits for the last answer by a ping that the others are before."""
        if self.connection is None:
            self.connection = connected(self.relay)
            for text in settings():
                self._exchange(text)
        if command[0] in _ENDS:
            return
        self._exchange(command, times)

    def _exchange(self, command: bytes, times: int = 1) -> None:
        framed = len(command).to_bytes(3, "little") + b"\0" + command
        link = self.connection._sock
        try:
            link.settimeout(60)
            link.sendall(framed * times)
            link.settimeout(None if command[0] in _WITHOUT_ANSWER else 60)
            if command[0] not in _WITHOUT_ANSWER and not link.recv(1 << 20):
                raise ConnectionError
            link.settimeout(0.01 if times == 1 else 0.5)
            while link.recv(1 << 20):
                pass
            raise ConnectionError
        except TimeoutError:
            pass
        except OSError:
            self.connection._force_close()
            self.connection = None


@dataclass
class Admin:
    """Asks `SELECT 1` all the while."""

    relay: RelayProcess
    waits_s: list[float] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Admin":
        self._connection = connected(self.relay, ADMIN)
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._connection.close()

    @property
    def p99_s(self) -> float:
        """Of its waits."""
        return sorted(self.waits_s)[len(self.waits_s) * 99 // 100]

    def _ask(self) -> None:
        cursor = self._connection.cursor()
        while not self._ended.wait(_PAUSE_S):
            begin = time.monotonic()
            cursor.execute("SELECT 1")
            self.waits_s.append(time.monotonic() - begin)


def fuzz(relay: RelayProcess, seed: int, commands: int) -> Admin:
    """Sends so many random commands, and each costly one alone and eight times at once, as far as they are not random."""
    dice = random.Random(seed)
    client = Client(relay)
    with Admin(relay) as admin:
        for command in costly_commands().values():
            client.send(command)
        for number in range(commands):
            client.send(random_command(dice))
            if number % 100 == 50:
                client.send(dice.choice(list(costly_commands().values()))[:3000], 8)
    with contextlib.suppress(Exception):
        client.connection.close()
    return admin


def main() -> int:
    """1 where something did not hold."""
    parser = argparse.ArgumentParser(description="Fuzz a running relay with commands, and watch its event loop.")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--commands", type=int, default=20_000)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    with tempfile.TemporaryDirectory() as directory, watched_relay(Path(directory)) as relay:
        admin = fuzz(relay, arguments.seed, arguments.commands)
        holds = relay.loop_holds()
        faults = [line for line in relay.log_lines() if line.get("level") == "error"]
        print(
            f"longest hold {holds.longest}; p99 of an admin's SELECT 1: {admin.p99_s * 1000:.1f} ms; faults: {faults[:3]}"
        )
        holds.check()
        return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
