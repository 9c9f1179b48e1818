"""Of 10,000 files a request by GTID looks at one or two: their snapshots are made when they are looked at."""

from pathlib import Path

from relay.archive.read.file_snapshot import FileSnapshot, FileSnapshots
from tests.corpus.record import RECORDED
from tests.corpus.test_corpus_boundaries import events_of

NAMES = tuple(f"mysql-bin.{number:06d}" for number in range(1, 10_001))


def made_of(asked: list[str]) -> FileSnapshots:
    def snapshot(name: str) -> FileSnapshot:
        asked.append(name)
        return FileSnapshot(name, Path(name), 99, True)

    return FileSnapshots(NAMES, snapshot, FileSnapshot(NAMES[-1], Path(NAMES[-1]), 7, True))


def test_nothing_is_made_of_files_that_nobody_looks_at() -> None:
    asked: list[str] = []
    snapshots = made_of(asked)
    assert (len(snapshots), snapshots.names, bool(snapshots)) == (10_000, NAMES, True)
    assert (snapshots[5000].name, [snapshot.name for snapshot in snapshots[3:5]]) == (NAMES[5000], list(NAMES[3:5]))
    assert asked == [NAMES[5000], *NAMES[3:5]]


def test_the_newest_file_ends_where_it_ended_when_the_request_came() -> None:
    asked: list[str] = []
    snapshots = made_of(asked)
    assert [snapshots[-1].end, snapshots[9_999].end, snapshots[0].end] == [7, 7, 99]
    assert asked == [NAMES[0]]


def test_there_may_be_no_files() -> None:
    assert not FileSnapshots((), lambda name: FileSnapshot(name, Path(name), 4, True), None)


def test_a_transaction_without_a_gtid_is_found_in_a_file_without_an_index(tmp_path: Path) -> None:
    """A file with GTIDs, and after them the transactions of one without."""
    with_gtids, without = (events_of(RECORDED / f"mysql97-{name}.binlog") for name in ("gtid", "anonymous"))
    path = tmp_path / "mysql-bin.000001"
    path.write_bytes(b"\xfebin" + b"".join([*with_gtids[:-1], *without[2:]]))
    place = 4 + sum(map(len, with_gtids[:-1]))
    assert FileSnapshot(path.name, path, path.stat().st_size, True).first_anonymous() == (place, True)
