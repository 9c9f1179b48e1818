"""Damage to any file of an archive: the short version of `python -m tests.support.damage_run`."""

from pathlib import Path

import pytest

from tests.conftest import need_server
from tests.support.damage_run import SOURCES, campaign

FAULTS = 15
SEED = 1


@pytest.mark.parametrize("name", SOURCES)
def test_nothing_wrong_reaches_a_replica_and_all_is_brought_back(name: str, tmp_path: Path) -> None:
    need_server(SOURCES[name][0])
    run = campaign(name, FAULTS, SEED, tmp_path)
    assert run.findings == []
    assert run.outcomes["ended by name"], "no fault was met: the run shows nothing"
