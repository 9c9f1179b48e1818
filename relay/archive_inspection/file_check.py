"""All bytes of an archived file against what is recorded of it: its own checksums, its digest, its indexes, the catalog."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import Malformed
from relay.archive.recovery.digest import FileDigest
from relay.archive.storage.archive_errors import PUT_BACK
from relay.archive.storage.archive_finding import ArchiveFinding
from relay.archive.storage.archived_file import ArchivedFile, describe_archived_file
from relay.archive.storage.boundary_index import RECORD, BoundaryIndex, index_path
from relay.archive.storage.files import CATALOG_NAME, FileLayer, StoredFile
from relay.archive.storage.scan import scan
from relay.archive.sums.block_check import BlockCheck, block_damage
from relay.archive.sums.block_sum import sum_paths
from relay.archive.sums.sum_files import are_equal, read_sums
from relay.archive_inspection.verify_gtids import GtidCheck, GtidReading
from relay.binlog_file.broken import wrong_magic
from relay.binlog_file.event_places import event_around
from relay.binlog_file.head import read_start

_MOST_BLOCKS: Final = 16
"""The most blocks of a file that are named."""


def check_head(stored: StoredFile, file: ArchivedFile) -> Iterator[ArchiveFinding]:
    """Check the size of an archived file, its magic and its format description. Raises: OSError."""
    size = stored.size
    if size < file.end:
        yield ArchiveFinding(file.name, size, f"has {size} bytes; {file.end} were archived", size)
        return
    if file.sealed and size > file.end:
        what = f"has {size} bytes; {file.end} were archived. Nothing is served of those behind. {PUT_BACK}"
        yield ArchiveFinding(file.name, file.end, what)
    try:
        start = read_start(stored)
        wrong = wrong_magic(start.magic)
        if wrong is not None:
            raise Malformed(f"it {wrong[1]}")
        head = describe_archived_file(file.name, start.event)
        if (head.created, head.server_id, head.checksum) != (file.created, file.server_id, file.checksum):
            raise Malformed("its format description is not the one that was archived")
    except Malformed as error:
        yield ArchiveFinding(file.name, FIRST_EVENT, str(error), FIRST_EVENT)
        return


def check_index(layer: FileLayer, path: Path, file: ArchivedFile) -> Iterator[ArchiveFinding]:
    """Check NAME.idx of the file at `path`, without the file's bytes. Raises: OSError."""
    idx = index_path(path)
    try:
        fd = layer.open_read(idx)
    except FileNotFoundError:
        yield ArchiveFinding(idx.name, None, "is missing; it is made again when it is needed")
        return
    try:
        fault = BoundaryIndex(layer, fd).first_fault(growing=not file.sealed)
        index = BoundaryIndex(layer, fd)
        if fault is not None:
            yield ArchiveFinding(idx.name, None, f"{fault}; it is made again when it is needed")
        elif not index.count and file.sealed:
            yield ArchiveFinding(idx.name, None, "is empty; it is made again when it is needed")
        elif file.sealed and index.record(index.count - 1).offset > file.end:
            yield ArchiveFinding(idx.name, None, f"has a record behind the file's end {file.end}")
    finally:
        layer.close(fd)


def check_bytes(
    layer: FileLayer,
    stored: StoredFile,
    path: Path,
    file: ArchivedFile,
    reading: GtidReading,
    on_progress: Callable[[int], None] | None,
) -> Iterator[ArchiveFinding]:
    """Read all bytes of an archived file up to its end, once, and compare them with all that is recorded of it.

    reading: of this file, for its recorded GTIDs. on_progress: gets the bytes read since its last call. Findings about the file
    itself have a `boundary`. Raises: OSError.
    """
    digest = FileDigest()
    digest.take(memoryview(stored.read(0, FIRST_EVENT)))

    blocks = None if file.checksum else BlockCheck(read_sums(layer, path))
    if blocks is not None:
        blocks.take(memoryview(stored.read(0, FIRST_EVENT)))

    def take(data: memoryview) -> None:
        reading.take(data)
        digest.take(data)
        if blocks is not None:
            blocks.take(data)

    result = scan(stored, FIRST_EVENT, file.end, on_progress=on_progress, on_bytes=take)
    if blocks is not None:
        if result.stop == file.end:
            blocks.finish(stored)
        yield from _compared_blocks(layer, path, file, blocks)
    if result.broken is not None:
        yield ArchiveFinding(file.name, result.position, result.broken.detail, result.boundary)
        return
    if result.incomplete:
        yield ArchiveFinding(file.name, result.position, "the last event is incomplete", result.boundary)
        return
    if result.in_group and not file.cut:
        yield ArchiveFinding(file.name, result.boundary, "the last transaction has no end")
    for offset in result.violations:
        yield ArchiveFinding(file.name, offset, "an event stands where its transaction boundary cannot be")
    if file.sealed and (result.events, result.groups) != (file.events, file.groups) and not file.cut:
        yield ArchiveFinding(
            CATALOG_NAME,
            None,
            f"counts {file.events} events and {file.groups} transactions in {file.name}; "
            f"there are {result.events} and {result.groups}. Run `archive rebuild`.",
        )
    yield from _compare_index(layer, stored, path, file, result.records)
    yield from reading.findings()
    if file.sealed and file.digest is not None and digest.text != file.digest:
        what = f"its digest is {digest.text}; {file.digest} was noted when it was sealed"
        yield ArchiveFinding(file.name, 0, what, 0)


def _compared_blocks(layer: FileLayer, path: Path, file: ArchivedFile, blocks: BlockCheck) -> Iterator[ArchiveFinding]:
    """Yield blocks that are not what was received, and whether there are some that cannot be compared."""
    for offset in blocks.differing[:_MOST_BLOCKS]:
        damage = block_damage(layer, path, offset)
        yield ArchiveFinding(file.name, offset, damage.what, damage.boundary)
    name, copy = (place.name for place in sum_paths(path))
    if blocks.lacking:
        what = f"neither it nor {copy} has a sound record of the block at {blocks.lacking[0]}: it cannot be compared"
        yield ArchiveFinding(name, None, f"{what}. A running relay makes it again where the file's digest agrees")
    elif file.sealed and not are_equal(layer, path):
        yield ArchiveFinding(
            name, None, f"it and its copy {copy} differ: one is damaged. A running relay puts that right"
        )


def _compare_index(
    layer: FileLayer, stored: StoredFile, path: Path, file: ArchivedFile, records: bytes
) -> Iterator[ArchiveFinding]:
    """Check that every record leads to an event's start. Records may be at other places than in a fresh scan (after a resume)."""
    try:
        with StoredFile.open(layer, index_path(path)) as index:
            content = index.read_all()
    except FileNotFoundError:
        return
    if content == records:
        return
    fresh = [entry[0] for entry in RECORD.iter_unpack(records)]
    place = 0
    for offset, _, _, _ in RECORD.iter_unpack(content[: len(content) // RECORD.size * RECORD.size]):
        if offset >= file.end:
            return
        while place + 1 < len(fresh) and fresh[place + 1] <= offset:
            place += 1
        try:
            start, _ = event_around(stored, fresh[place], offset, file.end)
        except (ValueError, IndexError):
            start = -1
        if start != offset:
            yield ArchiveFinding(index_path(path).name, None, f"a record is for {offset}, where no event starts")
            return


def check_file(
    layer: FileLayer, directory: Path, file: ArchivedFile, on_progress: Callable[[int], None]
) -> list[ArchiveFinding]:
    """Check all of one sealed file and its indexes, without the catalog's rows. Blocking.

    on_progress: gets the bytes read since its last call, and may raise to end the check. Raises: OSError, also for a missing file;
    what `on_progress` raises.
    """
    path = directory / file.name
    with StoredFile.open(layer, path) as stored:
        findings = list(check_head(stored, file))
        if any(finding.boundary is not None for finding in findings):
            return findings
        findings += check_index(layer, path, file)
        reading = GtidCheck(layer, {}).reading(path, file)
        findings += check_bytes(layer, stored, path, file, reading, on_progress)
    return findings
