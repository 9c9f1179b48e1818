"""Everything dies at random under load; at the end nothing is missing and nothing is there twice."""

import random
import time
from pathlib import Path

import pytest

from tests.conftest import ServerFactory
from tests.support.crash_run import CrashRun
from tests.support.free_port import free_port

KILLS = 8


@pytest.mark.interop
@pytest.mark.slow
def test_kills_restarts_and_cuts_leave_every_replica_equal_to_the_source(
    servers: ServerFactory, tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # pytest shows it when the test fails
    source, replicas = servers("mysql56"), [servers("mysql56"), servers("mariadb")]
    started = time.monotonic()
    with CrashRun(tmp_path, source, replicas, relay_port=free_port(), seed=seed) as run:
        run.befall(KILLS)
        run.settle()
        findings = run.findings()
    print(f"{time.monotonic() - started:.1f} s, {run.counts}")
    assert findings == []
