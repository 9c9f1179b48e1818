"""Of 10,000 files a request by GTID looks at one or two: their extents are made when they are looked at."""

from pathlib import Path

from relay.archive.read.file_snapshot import Extents, FileExtent

NAMES = tuple(f"mysql-bin.{number:06d}" for number in range(1, 10_001))


def made_of(asked: list[str]) -> Extents:
    def extent(name: str) -> FileExtent:
        asked.append(name)
        return FileExtent(name, Path(name), 99, True)

    return Extents(NAMES, extent, FileExtent(NAMES[-1], Path(NAMES[-1]), 7, True))


def test_nothing_is_made_of_files_that_nobody_looks_at() -> None:
    asked: list[str] = []
    extents = made_of(asked)
    assert (len(extents), extents.names, bool(extents)) == (10_000, NAMES, True)
    assert (extents[5000].name, [extent.name for extent in extents[3:5]]) == (NAMES[5000], list(NAMES[3:5]))
    assert asked == [NAMES[5000], *NAMES[3:5]]


def test_the_newest_file_ends_where_it_ended_when_the_request_came() -> None:
    asked: list[str] = []
    extents = made_of(asked)
    assert [extents[-1].end, extents[9_999].end, extents[0].end] == [7, 7, 99]
    assert asked == [NAMES[0]]


def test_there_may_be_no_files() -> None:
    assert not Extents((), lambda name: FileExtent(name, Path(name), 4, True), None)
