"""Accidents of a source and the way on behind each, with real servers: the short form of `python -m tests.accidents`."""

from pathlib import Path

import pytest

from tests.conftest import ServerFactory
from tests.support.source_accidents import AccidentRun, Case

pytestmark = pytest.mark.interop
SHORT = (
    Case("mysql56", "tail_lost", "position"),
    Case("mysql97", "purged", "gtid"),
    Case("mariadb", "newest_lost", "gtid"),
    Case("mysql56", "reset", "position"),
)


@pytest.mark.parametrize("case", SHORT, ids=str)
def test_after_an_accident_replicas_get_to_equal_tables_or_to_a_named_stop(
    servers: ServerFactory, tmp_path: Path, case: Case
) -> None:
    AccidentRun(servers, case, tmp_path).run()
