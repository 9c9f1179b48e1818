"""Checks an archive's records of GTIDs: NAME.gtx of each file, and the catalog's rows, against the files' bytes.

A wrong record sends a replica to a wrong place, so every transaction is compared. A NAME.gtx may be cut into other blocks than a
fresh reading would produce (after a restart, or a transaction that was taken back): the bytes are read in the blocks that it has.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import Malformed
from protocol.gtid.block_index import BlockIndex
from protocol.gtid.file_gtids import FileGtidCollector, IndexBlock
from protocol.gtid.gtid_set import GtidSet
from relay.archive.gtids.gtid_recorder import gtx_path
from relay.archive.storage.archive_finding import ArchiveFinding
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import CATALOG_NAME, FileLayer, StoredFile
from relay.archive.storage.gtid_facts import GtidChain, GtidFacts, GtidValue

_MAKE_ANEW: Final = "Stop the relay and run `archive rebuild`."
# The blocks of the index are followed, none is created here.
_ONE_BLOCK: Final = 1 << 62
_SHOWN_CHARACTERS: Final = 200


class GtidCheck:
    """Goes over the files, oldest first: `index` and `row` of each, or in a deep check `reading` of each."""

    def __init__(self, layer: FileLayer, stored: dict[int, GtidFacts | None]) -> None:
        """stored: the catalog's rows, None for one that cannot be decoded."""
        self._layer = layer
        self._stored = stored
        self._chain = GtidChain()

    def quick(self, path: Path, file: ArchivedFile) -> Iterator[ArchiveFinding]:
        """Check what can be checked without the file's bytes. Raises: OSError."""
        yield from self._row(file)
        try:
            index, data = _read(self._layer, path)
        except FileNotFoundError:
            text = f"is missing: replicas that ask by GTID wait until {file.name} was searched. {_MAKE_ANEW}"
            yield ArchiveFinding(gtx_path(path).name, None, text)
            return
        except Malformed as error:
            yield ArchiveFinding(gtx_path(path).name, None, f"{error}. {_MAKE_ANEW}")
            return
        if not file.sealed:
            return
        if index.whole_size != len(data):
            text = f"its last {len(data) - index.whole_size} of {len(data)} bytes are no whole stretch. {_MAKE_ANEW}"
            yield ArchiveFinding(gtx_path(path).name, None, text)
        elif len(index) and index.stop > file.end:
            text = f"reaches to {index.stop}, behind the end {file.end} of {file.name}. {_MAKE_ANEW}"
            yield ArchiveFinding(gtx_path(path).name, None, text)

    def _row(self, file: ArchivedFile) -> Iterator[ArchiveFinding]:
        if file.sealed and self._stored.get(file.number) is None:
            kind = "that can be read " if file.number in self._stored else ""
            text = f"has no GTIDs {kind}of {file.name}. They are read from the file again at the next start."
            yield ArchiveFinding(CATALOG_NAME, None, text)

    def reading(self, path: Path, file: ArchivedFile) -> "GtidReading":
        """Return a reading for a deep check, in addition to `quick`: it must get all bytes of the file from its first event on.
        Raises: OSError."""
        stored = self._stored.get(file.number) if file.sealed else None
        reading = GtidReading(file, stored, GtidChain(self._chain.number, self._chain.state))
        with contextlib.suppress(FileNotFoundError, Malformed):  # `quick` reported it
            reading.follow(gtx_path(path).name, _read(self._layer, path)[0])
        return reading

    def passed(self, file: ArchivedFile) -> None:
        """Note that the file was checked: the next one is checked against what its row says."""
        facts = self._stored.get(file.number)
        if facts is None:
            self._chain = GtidChain(file.number)
        else:
            self._chain.add(file.number, facts)


class GtidReading:
    """One file's bytes against what is recorded of them."""

    def __init__(self, file: ArchivedFile, stored: GtidFacts | None, chain: GtidChain) -> None:
        """stored: its row in the catalog, None: there is none to compare. chain: the state before the file."""
        self._file = file
        self._gtx_name = ""
        self._stored = stored
        self._chain = chain
        checksum = file.checksum == 1
        self._collector = FileGtidCollector(file.flavour, checksum=checksum)
        self._followed = FileGtidCollector(file.flavour, checksum=checksum, gap_bytes=_ONE_BLOCK)
        self._follows = False
        self._blocks: Iterator[IndexBlock] = iter(())
        self._awaited: IndexBlock | None = None
        self._at = FIRST_EVENT
        self._anonymous = 0
        self._forgotten = 0
        self._index_finding: ArchiveFinding | None = None
        self._unreadable: Malformed | None = None

    def follow(self, name: str, index: BlockIndex) -> None:
        """Compare the file's NAME.gtx, called `name`, too. Before the first `take`."""
        self._follows = True
        self._gtx_name = name
        self._blocks = iter(index)
        self._awaited = next(self._blocks, None)

    def take(self, data: memoryview) -> None:
        """Take the next bytes."""
        if self._unreadable is not None:
            return
        try:
            self._collector.take(data)
            if self._follows:
                self._follow(data)
        except Malformed as error:
            self._unreadable = error

    def findings(self) -> Iterator[ArchiveFinding]:
        """Yield what is wrong, after all bytes were taken."""
        file = self._file
        facts = self.facts
        if facts is None:
            text = f"its GTIDs cannot be read, replicas that ask by GTID do not get it: {self._unreadable}"
            yield ArchiveFinding(file.name, None, text)
            return
        if self._follows and self._index_finding is None and file.sealed:
            self._followed.finish()
            if self._awaited is not None or self._followed.take_blocks():
                self._index_finding = self._differs(self._followed.position, "does not end where the file does")
        if self._index_finding is not None:
            yield self._index_finding
        if self._stored is not None:
            yield from self._compare_row(self._stored, facts)

    @property
    def facts(self) -> GtidFacts | None:
        """The GTID facts by the bytes; None: they cannot be read."""
        if self._unreadable is not None:
            return None
        self._collector.finish()
        try:
            return GtidFacts(self._collector.before, self._collector.inside(), self._collector.anonymous)
        except Malformed as error:
            self._unreadable = error
            return None

    def _follow(self, data: memoryview) -> None:
        """Read in the blocks of the index, as far as they agree with the bytes."""
        done = 0
        while self._index_finding is None and self._awaited is not None and self._awaited.stop <= self._file.end:
            awaited = self._awaited
            if not max(self._at, awaited.start) < awaited.stop:
                self._index_finding = self._differs(awaited.start, f"has a stretch that ends at {awaited.stop}")
                return
            if awaited.stop > self._at + len(data) - done:
                break
            size = awaited.stop - self._at
            self._followed.take(data[done : done + size])
            self._followed.finish()
            found = self._followed.take_blocks()
            done += size
            self._at = awaited.stop
            if len(found) != 1 or not self._followed.between_events or not self._is_same(awaited, found[0]):
                self._index_finding = self._differs(awaited.start, f"has {_shown(awaited)} up to {awaited.stop}")
                return
            self._awaited = next(self._blocks, None)
        if self._index_finding is None:
            self._followed.take(data[done:])
            self._at += len(data) - done

    def _is_same(self, kept: IndexBlock, found: IndexBlock) -> bool:
        """Compare two blocks. A serial may be lower by what restarts forgot: the last transactions before them, if those had no
        GTID."""
        for ours, theirs in zip(kept.runs, found.runs, strict=False):
            if not self._forgotten <= theirs.serial - ours.serial <= self._anonymous:
                return False
            self._forgotten = theirs.serial - ours.serial
        self._anonymous += found.anonymous
        return _without_serials(kept) == _without_serials(found)

    def _differs(self, offset: int, what: str) -> ArchiveFinding:
        return ArchiveFinding(self._gtx_name, None, f"from {self._file.name}:{offset} on it {what}. {_MAKE_ANEW}")

    def _compare_row(self, stored: GtidFacts, facts: GtidFacts) -> Iterator[ArchiveFinding]:
        name = self._file.name
        if stored.inside != facts.inside:
            text = f"says that {name} holds {_text(stored.inside)}; it holds {_text(facts.inside)}"
            yield ArchiveFinding(CATALOG_NAME, None, f"{text}. {_MAKE_ANEW}")
        if stored.anonymous != facts.anonymous:
            text = f"counts {stored.anonymous} transactions without a GTID in {name}; there are {facts.anonymous}"
            yield ArchiveFinding(CATALOG_NAME, None, f"{text}. {_MAKE_ANEW}")
        before = self._chain.before(stored)
        if facts.before is not None and before != facts.before:
            text = f"says that before {name} there was {_text(before)}; its head says {_text(facts.before)}"
            yield ArchiveFinding(CATALOG_NAME, None, f"{text}. {_MAKE_ANEW}")


def _read(layer: FileLayer, path: Path) -> tuple[BlockIndex, bytes]:
    """Return NAME.gtx and its bytes. Raises: FileNotFoundError; Malformed; OSError."""
    with StoredFile.open(layer, gtx_path(path)) as stored:
        data = stored.read_all()
    return BlockIndex(data), data


def _without_serials(block: IndexBlock) -> tuple[object, ...]:
    runs = [(run.key, run.first, run.last) for run in block.runs]
    return block.start, block.stop, block.timestamp, block.anonymous, runs


def _shown(block: IndexBlock) -> str:
    count = sum(run.last - run.first + 1 for run in block.runs)
    return f"{count} transactions with a GTID and {block.anonymous} without"


def _text(value: GtidValue | None) -> str:
    if value is None:
        return "what is not known"
    text = value.line if isinstance(value, GtidSet) else str(value)
    return (text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "...") or "nothing"
