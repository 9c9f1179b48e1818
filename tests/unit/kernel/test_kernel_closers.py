"""The column `closed_by`: what ends a group, as the servers' own listings have it."""

import re
from collections import Counter
from pathlib import Path

import pytest

from protocol.binlog.event_type import EventType
from tests.corpus.expected import WITH_PAYLOADS
from tests.support.binlog_builder import INSIDE, OPENS, BinlogBuilder
from tests.support.kernel_builds import KernelBuild
from tests.support.kernel_columns import transaction_rows

RECORDED = sorted((Path(__file__).resolve().parents[2] / "corpus" / "recorded").glob("*.binlog"))


def test_what_closes_a_group_is_told(build: KernelBuild) -> None:
    binlog = BinlogBuilder()
    binlog.transaction()
    binlog.ddl()
    for text in ("COMMIT", "ROLLBACK"):
        binlog.begin().query("SAVEPOINT a", INSIDE).query("ROLLBACK TO a", INSIDE).query(text, "closes")
    binlog.query("XA START 'a'", OPENS).query("XA END 'a'", INSIDE)
    binlog.event(EventType.XA_PREPARE, b"\0" + bytes(12) + b"a", "closes")
    binlog.query("XA COMMIT 'a'")
    binlog.query("XA ROLLBACK 'b'")
    binlog.begin().table_map()
    closers = build.transaction_columns.CLOSERS
    told = [closers[row["closed_by"]] for row in transaction_rows(build, bytes(binlog.data)).rows]
    assert told == ["xid", "statement", "commit", "rollback", "xa_prepare", "xa_commit", "xa_rollback", "none"]


@pytest.mark.parametrize(
    "path", [path for path in RECORDED if path.stem not in WITH_PAYLOADS], ids=lambda path: path.stem
)
def test_groups_close_as_the_server_lists_it(build: KernelBuild, path: Path) -> None:
    closers = build.transaction_columns.CLOSERS
    told = Counter(closers[row["closed_by"]] for row in transaction_rows(build, path.read_bytes()).rows)
    lines = [line.split("\t") for line in path.with_suffix(".listing").read_text().splitlines() if "\t" in line]
    listed = Counter(re.sub(r"\s.*", "", line[-1]) for line in lines if line[1] == "Query")
    assert told["xid"] == sum(line[1] == "Xid" for line in lines)
    assert told["commit"] == listed["COMMIT"]
    assert told["none"] == 0
