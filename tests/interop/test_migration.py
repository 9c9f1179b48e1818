"""`deploy/demo --migrate`: from an old source to promoted new servers, as a user would do it."""

from pathlib import Path

import pytest

from deploy.migration import REPLICA, migrate
from deploy.servers import available

pytestmark = pytest.mark.interop


@pytest.mark.parametrize(
    ("source", "binlog_format"), [("mysql56", "MIXED"), ("mysql56", "STATEMENT"), ("mariadb", "ROW")]
)
def test_a_migration_ends_with_equal_tables_and_a_promoted_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str, binlog_format: str
) -> None:
    missing = [reason for name in (source, REPLICA) if (reason := available()[name]) is not None]
    if missing:
        pytest.skip(missing[0])
    migrate(tmp_path, keep=False, source_name=source, binlog_format=binlog_format)
    out = capsys.readouterr().out
    assert out.count("compared value by value: equal") == 3 and "is inside a transaction" in out
