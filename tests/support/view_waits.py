"""The dependencies of transactions, as a view's GTID events say them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from protocol.binlog.gtid_event import Gtid, decode_gtid
from protocol.binlog.gtid_tagged import decode_gtid_tagged
from tests.support.view_files import binlogs_in
from tests.support.view_oracle import events_of

_TRAILER = 4


@dataclass
class Waits:
    """The dependencies by file: for each transaction the last one that must be done before it, and its own number."""

    files: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def check_numbers(self) -> None:
        """Check that they count from 1 in each file, without a gap, and that only a file's first waits for none."""
        for file, pairs in self.files.items():
            assert [number for _last, number in pairs] == list(range(1, len(pairs) + 1)), file
            assert all(1 <= last < number for last, number in pairs[1:]), file
            assert not pairs or pairs[0][0] == 0, file

    @property
    def width(self) -> float:
        """Return how many can run together, on average: batches are taken in order, each as large as it may be."""
        groups = batches = 0
        for pairs in self.files.values():
            first = 0
            for last, number in pairs:
                groups += 1
                if first == 0 or last >= first:
                    batches += 1
                    first = number
        return groups / max(1, batches)


def gtids_of(data: bytes) -> Iterable[Gtid]:
    """Yield the GTIDs of a binlog whose events have checksums."""
    for event in events_of(data[4:]):
        if event[4] in (33, 34):
            yield decode_gtid(event[19:-_TRAILER])
        elif event[4] == 42:
            yield decode_gtid_tagged(event[19:-_TRAILER])


def waits_in(directory: Path) -> Waits:
    """Return the dependencies of all binlogs of a view."""
    found = Waits()
    for path in binlogs_in(directory):
        found.files[path.name] = [
            (gtid.last_committed or 0, gtid.sequence_number or 0) for gtid in gtids_of(path.read_bytes())
        ]
    return found
