"""Histories on real servers, fed while relay and feed are killed; many of them: `python -m tests.support.feed_run`."""

from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from tests.conftest import ServerFactory
from tests.support.feed_run import OPTIONS, run_histories

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "format", "seed"), [("mysql56", "delta", 3), ("mysql97", "delta", 11), ("mariadb", "iceberg", 10)]
)
def test_the_lakes_tables_are_the_sources_at_the_end_and_in_between_whoever_was_killed(
    name: str, format: str, seed: int, tmp_path: Path, servers: ServerFactory
) -> None:
    server = servers(name)
    server.start(server_id=1, options=OPTIONS)
    outcome = run_histories(server, tmp_path, range(seed, seed + 1), 30, format, marks=1)
    assert outcome.wrong == []
    assert outcome.tables >= 3
