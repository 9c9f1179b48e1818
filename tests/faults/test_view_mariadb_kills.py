"""A relay with a view of a MariaDB and its replicas die at random under load; the view is byte for byte what it would have been."""

import random
from pathlib import Path

import pytest

from tests.conftest import ServerFactory
from tests.support.mariadb_kill_run import Mariadb118KillRun, MariadbKillRun

pytestmark = [pytest.mark.interop, pytest.mark.slow]
KILLS = 5


@pytest.mark.parametrize("kind", [MariadbKillRun, Mariadb118KillRun])
def test_kills_and_cuts_of_relay_and_replicas_leave_the_bytes_of_the_source(
    kind: type[MariadbKillRun], servers: ServerFactory, tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # pytest shows it when the test fails
    with kind(servers, tmp_path, seed=seed, replicas=1) as run:
        run.befall(KILLS)
        run.settle()
        assert run.findings() == []
        assert run.cut_inside
