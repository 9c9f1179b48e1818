"""Every kind of finding that the audits' code can make is expected by name in some test of its job."""

import ast
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")

from relay.audit.jobs import JOBS
from relay.audit.readiness.checks import ALL, STATEMENTS
from relay.audit.runner.audit import READING_TITLES
from relay.audit.runner.row_findings import ROW_FINDINGS
from relay.binlog_tables.plan.read_finding import TEXTS
from tests.audit.test_splits import found_in, write
from tests.support.binlog_builder import INSIDE, BinlogBuilder

TESTS: Final = Path(__file__).parent
CODE: Final = TESTS.parents[1] / "relay" / "audit" / "jobs"
# Modules that are no job themselves: whose findings they make.
PARTS: Final = {
    "file_chain": "continuity", "gtid_ranges": "continuity", "times_back": "continuity", "transaction_waits": "transactions",
    "row_history": "history", "hot_keys": "hot-keys",
}  # fmt: skip
TOO_LARGE: Final = {"row_too_large"}  # needs a row of a gigabyte
MAKERS: Final = {"AuditFinding", "found_at"}


def kinds_in(module: Path) -> Iterator[str]:
    """Names that are written out where a module makes findings."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant):
                yield str(first.value)


def kinds() -> set[tuple[str, str]]:
    """(job, name) of every finding. Kinds of the ledger, and checks of statements, have tests that go over all of them."""
    found = {
        (job, name)
        for module in CODE.glob("*.py")
        if (job := PARTS.get(module.stem, module.stem)) in JOBS
        for name in kinds_in(module)
    }
    found |= {(job, name) for job in ("changes", "tables") for name in ROW_FINDINGS if name not in TOO_LARGE}
    found -= {("tables", "value_malformed"), ("tables", "value_uncertain")}  # it does not read values
    found |= {("tables", name) for name in ("no_primary_key", "primary_key_unknown")}
    found |= {("changes", "file_purged")}  # of every job
    found |= {("readiness", check.name) for check in ALL} - {("readiness", one.name) for one in STATEMENTS}
    return found


def asserted(node: ast.AST) -> Iterator[str]:
    """Texts in what a test expects: not in what it says is not there."""
    if isinstance(node, ast.Compare) and any(isinstance(one, ast.NotIn | ast.NotEq) for one in node.ops):
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for child in ast.iter_child_nodes(node):
        yield from asserted(child)


def expected(module: Path) -> Iterator[tuple[set[str], set[str]]]:
    """Of each test: the jobs that it runs, and the texts in its assertions and parameters."""
    for node in ast.parse(module.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            inside = [one for one in ast.walk(node) if isinstance(one, ast.Assert)]
            texts = {text for one in [*inside, *node.decorator_list] for text in asserted(one)}
            said = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and one.value in JOBS}
            yield said, texts


def test_every_finding_of_every_job_is_provoked() -> None:
    provoked: set[tuple[str, str]] = set()
    for module in TESTS.glob("test_job*.py"):
        for jobs, texts in expected(module):
            provoked |= {(job, text) for job in jobs for text in texts}
    assert sorted(kinds() - provoked) == []


def test_everything_that_may_be_wrong_with_a_file_is_provoked() -> None:
    provoked = {text for module in TESTS.glob("test_*.py") for _, texts in expected(module) for text in texts}
    assert sorted((set(TEXTS) | set(READING_TITLES)) - TOO_LARGE - provoked) == []
    assert set(TEXTS) - set(ROW_FINDINGS) <= set(READING_TITLES)


def whole(**options: bool) -> BinlogBuilder:
    return BinlogBuilder(**options).transaction()  # type: ignore[arg-type]


def with_wrong_end() -> bytes:
    binlog = whole(checksum=False)
    end = binlog.events[1].start + 13
    return bytes(binlog.data[:end] + b"\x07\0\0\0" + binlog.data[end + 4 :])


def with_lying_lengths() -> bytes:
    binlog = BinlogBuilder(checksum=False).begin()
    return bytes(binlog.event(2, b"\x07\0\0\0\0\0\0\0\xff\0\0\xff\xfftest", INSIDE).xid().data)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (with_wrong_end(), ("position_chain_broken", 120)),
        (with_lying_lengths(), ("event_malformed", 162)),
        (whole(header=False).data, ("format_description_missing", 4)),
        (whole().data[:23] + b"\x09" + whole().data[24:], ("format_description_unsupported", 4)),
        (None, ("file_unreadable", 0)),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_damage_is_called_by_its_name(tmp_path: Path, data: bytes | None, found: tuple[str, int]) -> None:
    if data is None:
        os.mkfifo(tmp_path / "bin.000001")
    else:
        write(tmp_path, "bin.000001", data)
    assert found_in(tmp_path) == [("bin.000001", *found)]


def test_the_documentation_names_every_finding() -> None:
    text = (TESTS.parents[1] / "docs" / "AUDITS.md").read_text()
    assert sorted(name for _, name in kinds() if f"`{name}`" not in text) == []
