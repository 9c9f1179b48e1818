"""Binlogs of all servers get the boundaries that were written down for them by hand."""

from array import array
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from protocol.kernel import codes
from tests.corpus.build import LARGE_BLOCK, LARGE_BLOCKS, STORED, mariadb100_long
from tests.corpus.expected import BROKEN, BUILT, JUMPS, MARIADB_100_LONG, RECORDED, VIOLATIONS
from tests.support.event_stream import packetise, walk
from tests.support.kernel_builds import BUILD_NAMES, KernelBuild, build_named

HERE = Path(__file__).resolve().parent
LETTERS = "?icsne"
MAGIC = b"\xfebin"


@pytest.fixture(params=BUILD_NAMES)
def build(request: pytest.FixtureRequest) -> KernelBuild:
    return build_named(request.param)


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


def look_at(build: KernelBuild, file: Path | bytes, *, tolerant: bool = True) -> Seen:
    data = bytearray(file if isinstance(file, bytes) else file.read_bytes())
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


def built(name: str) -> Path:
    return HERE / "built" / f"{name}.binlog"


def recorded(name: str) -> Path:
    return HERE / "recorded" / f"{name}.binlog"


@pytest.mark.parametrize("name", STORED)
def test_a_built_file_is_what_building_it_gives(name: str) -> None:
    assert built(name).read_bytes() == STORED[name]()


def test_each_built_file_is_expected_to_show_something() -> None:
    broken = {name.removeprefix("built/") for name in BROKEN if name.startswith("built/")}
    assert (
        set(STORED) == BUILT.keys() | VIOLATIONS.keys() | broken == {path.stem for path in built("*").parent.iterdir()}
    )


@pytest.mark.parametrize("name", BUILT)
def test_a_built_file_has_the_boundaries_that_were_written_down(build: KernelBuild, name: str) -> None:
    seen = look_at(build, built(name))
    assert (seen.letters, seen.violations, seen.error, seen.left, seen.wrong_checksums) == (
        BUILT[name].replace(" ", ""),
        [],
        "",
        0,
        0,
    )


@pytest.mark.parametrize("name", sorted(BUILT.keys() - JUMPS.keys()))
def test_a_healthy_built_file_passes_strict_reading(build: KernelBuild, name: str) -> None:
    seen = look_at(build, built(name), tolerant=False)
    assert (seen.letters, seen.error) == (BUILT[name].replace(" ", ""), "")


@pytest.mark.parametrize("name", JUMPS)
def test_a_relay_log_fails_strict_reading_where_its_positions_jump(build: KernelBuild, name: str) -> None:
    seen = look_at(build, built(name), tolerant=False)
    assert (seen.error, seen.position) == ("position_chain_broken", JUMPS[name])


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_has_its_named_error_at_the_right_offset(build: KernelBuild, name: str) -> None:
    seen = look_at(build, HERE / f"{name}.binlog")
    assert (seen.letters, seen.error, seen.position) == BROKEN[name]


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_file_with_a_wrong_order_has_its_violations(build: KernelBuild, name: str) -> None:
    letters, violations = VIOLATIONS[name]
    seen = look_at(build, built(name))
    assert (seen.letters, seen.violations) == (letters.replace(" ", ""), violations)


@pytest.mark.parametrize("name", LARGE_BLOCKS)
def test_large_blocks_of_load_data_have_the_boundaries_of_small_ones(build: KernelBuild, name: str) -> None:
    seen = look_at(build, LARGE_BLOCKS[name](LARGE_BLOCK))
    assert (seen.letters, seen.violations, seen.left) == (BUILT[name].replace(" ", ""), [], 0)


def test_a_long_file_has_the_counts_that_its_types_give(build: KernelBuild) -> None:
    seen = look_at(build, mariadb100_long())
    assert (Counter(seen.letters), seen.violations, seen.left) == (MARIADB_100_LONG, [], 0)


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_file_read_tolerantly_has_the_boundaries_that_were_written_down(
    build: KernelBuild, name: str
) -> None:
    seen = look_at(build, recorded(name))
    assert (seen.letters, seen.violations, seen.error, seen.left, seen.wrong_checksums) == (
        RECORDED[name].replace(" ", ""),
        [],
        "",
        0,
        0,
    )


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_file_has_the_boundaries_that_were_written_down(build: KernelBuild, name: str) -> None:
    seen = look_at(build, recorded(name), tolerant=False)
    assert (seen.letters, seen.violations, seen.error, seen.left) == (RECORDED[name].replace(" ", ""), [], "", 0)


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_file_has_its_events_where_the_server_lists_them(build: KernelBuild, name: str) -> None:
    lines = (HERE / "recorded" / f"{name}.listing").read_text().splitlines()[1:]
    # the events inside a Transaction_payload are all listed at its end, before the next event there
    listed = sorted({int(line.split("\t")[0]) for line in lines})
    assert look_at(build, recorded(name)).offsets == listed


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
    events = events_of(recorded(name))
    stamped: Any = walk(build, packetise(events), range(0, 20000, 97))
    framer = build.frame.Framer(codes.STRIP)
    framer.begin_file(stamped.checksum)
    target = bytearray(build.frame.required_size(len(stamped.produced)))
    size = framer.frame(stamped.produced, 0, len(stamped.produced), target)
    # a file that is being written says so in its first event, which no source passes on
    first = bytearray(events[0])
    first[17] &= ~1 & 0xFF
    assert bytes(target[:size]) == packetise([bytes(first), *events[1:]])
