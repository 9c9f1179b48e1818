"""The source changes under load, with replicas attached: the short form of `python -m tests.source_changes`."""

from pathlib import Path

import pytest

from tests.conftest import ServerFactory
from tests.support.source_changes import OPTIONS, Changes

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("name", OPTIONS)
def test_no_transaction_is_missing_or_comes_twice_when_the_source_changes_under_load(
    servers: ServerFactory, tmp_path: Path, name: str
) -> None:
    outcome = Changes(servers, name, tmp_path / "relay", load_s=0.5, seed=len(name)).run(3)
    assert outcome.changes == len(outcome.told) == 3
