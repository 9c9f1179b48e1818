"""Recorded rows of every column type: read without a server as they were read when SQL said the same."""

import json
from pathlib import Path

import pytest

from tests.support.kernel_builds import KernelBuild, builds
from tests.support.kernel_columns import changed_rows

ROWS = Path(__file__).resolve().parent / "rows"
BUILDS = pytest.mark.parametrize("build", builds(), ids=lambda build: str(build.name))


@BUILDS
@pytest.mark.parametrize("path", sorted(ROWS.glob("*.binlog")), ids=lambda path: path.stem)
def test_recorded_rows_have_the_values_that_sql_told(build: KernelBuild, path: Path) -> None:
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    descriptions = {table: bytes.fromhex(packed) for table, packed in expected["descriptions"].items()}
    result = changed_rows(
        build,
        path.read_bytes(),
        describe=(lambda schema, table, types: descriptions[table.decode()]) if descriptions else None,
    )
    assert result.findings == 0
    found = [[row["operation"], row["table"], row["before"], row["after"]] for row in result.rows]
    assert len(found) > 100
    assert [row for row, told in zip(found, expected["rows"], strict=True) if row != told] == []
