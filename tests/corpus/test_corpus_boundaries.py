"""Binlogs that real servers wrote get the boundaries that were written down for them by hand."""

import os
from array import array
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from protocol.kernel import codes
from tests.corpus.expected import (
    FOREIGN,
    FOREIGN_BROKEN,
    FOREIGN_JUMPS,
    FOREIGN_VIOLATIONS,
    MDEV6020,
    RECORDED,
)
from tests.support.event_stream import packetise, walk
from tests.support.kernel_builds import KernelBuild, imported_kernel, is_extension, uncompiled_kernel

HERE = Path(__file__).resolve().parent
FOREIGN_FILES = Path(os.environ.get("BINLOG_RELAY_CORPUS") or HERE.parents[2] / "shared" / "corpus")
LETTERS = "?icsne"
MAGIC = b"\xfebin"


@pytest.fixture(params=["compiled", "uncompiled"])
def build(request: pytest.FixtureRequest) -> KernelBuild:
    if request.param == "uncompiled":
        return uncompiled_kernel()
    if not is_extension(imported_kernel().ingest):
        pytest.skip("the kernel is not compiled here")
    return imported_kernel()


@dataclass
class Seen:
    """A file as the kernel shows it."""

    letters: str
    offsets: list[int]
    status: int
    error: str
    position: int
    violations: list[tuple[int, int, int]]
    wrong_checksums: int
    left: int


def look_at(build: KernelBuild, path: Path, *, tolerant: bool = True) -> Seen:
    data = bytearray(path.read_bytes())
    assert data[:4] == MAGIC
    ingest = build.ingest.Ingest()
    table = array("q", bytes(8 * 8 * 500))
    ingest.set_table(table, tolerant)
    ingest.old_format = True
    rows: list[tuple[int, int]] = []
    used = 4
    wrong = 0
    while True:
        status = ingest.feed(data, used, len(data))
        used = ingest.consumed
        ingest.take_entries()
        rows += [(table[i * 8], table[i * 8 + 7]) for i in range(ingest.table_rows)]
        if status not in (codes.TABLE_FULL, codes.STORED_ROTATE):
            break
    wrong = sum(bool(info & 32) for _offset, info in rows)
    return Seen(
        "".join(LETTERS[info & 7] for _offset, info in rows),
        [offset for offset, _info in rows],
        status,
        build.ingest.STATUS_NAMES.get(status, ""),
        ingest.position,
        [row[:3] for row in ingest.take_violations()],
        wrong,
        len(data) - used,
    )


def foreign(name: str) -> Path:
    path = FOREIGN_FILES / name
    if not path.exists():
        pytest.skip(f"{path} is not here: the foreign files come from Debian's mariadb-test-data")
    return path


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_has_the_boundaries_that_were_written_down(build: KernelBuild, name: str) -> None:
    seen = look_at(build, foreign(name))
    assert (seen.letters, seen.violations, seen.error, seen.left, seen.wrong_checksums) == (
        FOREIGN[name].replace(" ", ""),
        [],
        "",
        0,
        0,
    )


@pytest.mark.parametrize("name", sorted(FOREIGN.keys() - FOREIGN_JUMPS.keys()))
def test_a_healthy_foreign_file_passes_strict_reading(build: KernelBuild, name: str) -> None:
    seen = look_at(build, foreign(name), tolerant=False)
    assert (seen.letters, seen.error) == (FOREIGN[name].replace(" ", ""), "")


@pytest.mark.parametrize("name", FOREIGN_JUMPS)
def test_a_foreign_relay_log_fails_strict_reading_where_its_positions_jump(build: KernelBuild, name: str) -> None:
    seen = look_at(build, foreign(name), tolerant=False)
    assert (seen.error, seen.position) == ("position_chain_broken", FOREIGN_JUMPS[name])


@pytest.mark.parametrize("name", FOREIGN_BROKEN)
def test_a_broken_foreign_file_has_its_named_error_at_the_right_offset(build: KernelBuild, name: str) -> None:
    seen = look_at(build, foreign(name))
    assert (seen.letters, seen.error, seen.position) == FOREIGN_BROKEN[name]


@pytest.mark.parametrize("name", FOREIGN_VIOLATIONS)
def test_a_foreign_file_with_a_wrong_order_has_its_violations(build: KernelBuild, name: str) -> None:
    letters, violations = FOREIGN_VIOLATIONS[name]
    seen = look_at(build, foreign(name))
    assert (seen.letters, seen.violations) == (letters.replace(" ", ""), violations)


def test_the_largest_foreign_file_has_the_counts_that_its_types_give(build: KernelBuild) -> None:
    seen = look_at(build, foreign("mdev6020-mysql-bin.000001"))
    assert (Counter(seen.letters), seen.violations, seen.left) == (MDEV6020, [], 0)


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_file_has_the_boundaries_that_were_written_down(build: KernelBuild, name: str) -> None:
    seen = look_at(build, HERE / "recorded" / f"{name}.binlog", tolerant=False)
    assert (seen.letters, seen.violations, seen.error, seen.left) == (RECORDED[name].replace(" ", ""), [], "", 0)


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_file_has_its_events_where_the_server_lists_them(build: KernelBuild, name: str) -> None:
    lines = (HERE / "recorded" / f"{name}.listing").read_text().splitlines()[1:]
    # the events inside a Transaction_payload are all listed at its end, before the next event there
    listed = sorted({int(line.split("\t")[0]) for line in lines})
    assert look_at(build, HERE / "recorded" / f"{name}.binlog").offsets == listed


@pytest.mark.parametrize("name", RECORDED)
def test_each_group_of_a_recorded_file_has_one_start_and_one_end(name: str) -> None:
    groups = [part for part in RECORDED[name].split() if part[0] == "s"]
    assert [g for g in groups if g[-1] != "e" or set(g[1:-1]) - {"n"}] == []


def events_of(path: Path) -> list[bytes]:
    data = path.read_bytes()
    at = 4
    events = []
    while at < len(data):
        length = int.from_bytes(data[at + 9 : at + 13], "little")
        events.append(data[at : at + length])
        at += length
    return events


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_file_comes_through_stamping_and_stripping_as_it_was(build: KernelBuild, name: str) -> None:
    events = events_of(HERE / "recorded" / f"{name}.binlog")
    stamped: Any = walk(build, packetise(events), range(0, 20000, 97))
    framer = build.frame.Framer(codes.STRIP)
    framer.begin_file(stamped.checksum)
    target = bytearray(build.frame.required_size(len(stamped.produced)))
    size = framer.frame(stamped.produced, 0, len(stamped.produced), target)
    assert bytes(target[:size]) == packetise(events)
