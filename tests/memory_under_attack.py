"""Clients that want a relay's memory, of all kinds at once, against a relay with the default budget: what it holds stays bounded.

    python -m tests.memory_under_attack [--seconds N] [--seed S] [--connections N]

Beside them a replica and another account ask all the time: neither is ended, and both are answered. Afterwards everybody leaves, and
the memory goes back to the system.
"""

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

from tests.support.binlog_builder import BinlogBuilder
from tests.support.free_port import free_port
from tests.support.memory_attack import Attacker, random_attack, resident_mib
from tests.support.relay_process import REPLICA_PASSWORD, RelayProcess
from tests.support.replica_client import ReplicaClient

FIRST: Final = "mysql-bin.000001"
MOST_MIB: Final = 1024
BACK_WITHIN_S: Final = 5.0
BACK_MIB: Final = 64
_ADMIN: Final = "dba"


class Bystander(threading.Thread):
    """An account of its own that asks something all the time, with prepared statements and variables, as applications do."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._client = ReplicaClient(port, user=_ADMIN, password=REPLICA_PASSWORD, timeout_s=60)
        self._client.query(f"SET @kept = '{'k' * 10000}'")
        self.goes_on = True
        self.longest_s = 0.0
        self.asked = 0
        self.error: Exception | None = None

    def run(self) -> None:
        """Asks."""
        try:
            while self.goes_on:
                started = time.monotonic()
                assert self._client.query("SELECT LENGTH(@kept)") == ((10000,),)
                self.longest_s = max(self.longest_s, time.monotonic() - started)
                self.asked += 1
                time.sleep(0.02)
        except Exception as error:
            self.error = error


def attack(directory: Path, *, seconds: float, seed: int, connections: int) -> dict[str, object]:
    """What was measured. Raises: AssertionError."""
    binlogs = directory / "binlogs"
    binlogs.mkdir()
    built = BinlogBuilder().ddl()
    for _ in range(40):
        built.transaction(20, 60000)
    (binlogs / FIRST).write_bytes(built.data)
    (binlogs / "mysql-bin.index").write_text(f"./{FIRST}\n")
    draw = random.Random(seed)
    with RelayProcess(directory / "relay", binlogs, port=free_port()) as relay:
        relay.stop()
        relay.add_account(user=_ADMIN, password=REPLICA_PASSWORD, admin=True)
        relay.start()
        relay.wait_archived(FIRST, built.size)
        before = resident_mib(relay.pid)
        bystander = Bystander(relay.port)
        bystander.start()
        counts: dict[str, int] = {}
        most = before
        attackers: list[Attacker] = []
        lock = threading.Lock()
        until = time.monotonic() + seconds

        def go_on(own: random.Random) -> None:
            while time.monotonic() < until:
                try:
                    attacker = Attacker(relay.port)
                except Exception:
                    time.sleep(0.05)
                    continue
                with lock:
                    attackers.append(attacker)
                    leaves = attackers.pop(own.randrange(len(attackers))) if len(attackers) > connections else None
                name = random_attack(attacker, own, FIRST)
                counts[name] = counts.get(name, 0) + 1
                if leaves is not None:
                    leaves.close()

        threads = [threading.Thread(target=go_on, args=(random.Random(draw.random()),), daemon=True) for _ in range(8)]
        for thread in threads:
            thread.start()
        while time.monotonic() < until:
            most = max(most, resident_mib(relay.pid))
            time.sleep(0.05)
        patience = time.monotonic() + 5
        for thread in threads:
            thread.join(max(0.0, patience - time.monotonic()))
        most = max(most, resident_mib(relay.pid, "VmHWM"))
        bystander.goes_on = False
        bystander.join(30)
        for attacker in attackers:
            attacker.close()
        left = time.monotonic()
        while (now := resident_mib(relay.pid)) - before > BACK_MIB and time.monotonic() - left < BACK_WITHIN_S:
            time.sleep(0.05)
        found = {
            "seed": seed,
            "attacks": counts,
            "ended": len(relay.logged("memory_budget_exceeded")),
            "before_mib": round(before),
            "most_mib": round(most),
            "after_mib": round(now),
            "back_after_s": round(time.monotonic() - left, 2),
            "bystander": {"asked": bystander.asked, "longest_s": round(bystander.longest_s, 3)},
        }
        assert most < MOST_MIB, found
        assert now - before <= BACK_MIB, found
        assert bystander.error is None, (found, bystander.error)
        assert not [one for one in relay.logged("memory_budget_exceeded") if one["user"] == _ADMIN], found
        assert relay.stop() == 0
        faults = [line for line in relay.log_lines() if "exception" in line or "a fault of" in str(line)]
        assert not faults, faults[:2]
        return found


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--connections", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memory-attack-") as directory:
        found = attack(Path(directory), seconds=options.seconds, seed=options.seed, connections=options.connections)
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
