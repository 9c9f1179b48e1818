"""The writer of an export: each piece of the plan becomes a binlog, read through the kernel, which checks what is written."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relay.archive.storage.files import FileLayer, StoredFile, write_all
from relay.archive.sums.block_check import check_blocks
from relay.archive.sums.block_sum import BLOCK_BYTES, sum_paths
from relay.binlog_file.broken import Broken
from relay.export.export_errors import ExportDamaged
from relay.export.export_plan import ExportPiece, ExportPlan
from relay.export.export_tally import ExportTally
from relay.export.filtered_copy import FilteredCopy, TableFilter
from relay.export.moved_events import MovedEvents
from relay.export.piece_head import piece_head
from relay.export.whole_copy import WholeCopy

_BUFFER_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A binlog of the export. `shift` is what to add to a position of the source to get the file's, for those of its first range; None
    if it differs from place to place. `executed` is what its head says was executed before, if the head was rewritten."""

    piece: ExportPiece
    size: int
    shift: int | None
    transactions: int
    executed: str | None


def write_export(
    plan: ExportPlan,
    directory: Path,
    tally: ExportTally,
    filter: TableFilter | None,
    layer: FileLayer,
    on_progress: Callable[[int], None] | None = None,
) -> Sequence[WrittenFile]:
    """Write the pieces into `directory`, synced. Blocking; it uses a few megabytes of memory, with a filter also the places of one
    transaction's events. Raises: ExportDamaged; OSError."""
    written = []
    for piece in plan.pieces:
        try:
            written.append(_write_piece(piece, directory, tally, filter, layer))
        except FileNotFoundError as error:
            if str(error.filename) != str(piece.source.path):
                raise
            raise ExportDamaged(
                f"{piece.source.path} is not there any more: it was purged meanwhile, or it is lost ('archive verify' tells)."
            ) from error
        if on_progress is not None:
            on_progress(piece.stop - piece.start)
    return written


def _write_piece(
    piece: ExportPiece, directory: Path, tally: ExportTally, filter: TableFilter | None, layer: FileLayer
) -> WrittenFile:
    source = piece.source
    if not source.file.checksum:
        _compare_blocks(piece, layer)
    before = tally.transactions
    with StoredFile.open(layer, source.path) as stored, _Output(directory / piece.name) as output:
        head = piece_head(piece, stored, layer)
        output.write(memoryview(head.data))
        moved = MovedEvents(len(head.data), checksum=bool(head.format.checksum_bytes), write=output.write)
        copy: WholeCopy | FilteredCopy
        if filter is None:
            copy = WholeCopy(source, stored, head.format_event, moved, tally)
        else:
            copy = FilteredCopy(source, stored, head.format_event, head.format, moved, tally, filter)
        shift: int | None = moved.position - head.start
        try:
            for number, (start, stop) in enumerate(piece.ranges):
                start = head.start if start == piece.start else start
                if number:
                    shift = None
                if start < stop:
                    copy.copy(start, stop)
        except Broken as broken:
            raise ExportDamaged(
                f"{source.name} cannot be read at {broken.offset}: {broken.text} Nothing was written. 'archive repair' fetches the "
                "file again, then export once more."
            ) from broken
        output.finish()
    executed = None if head.executed is None else str(head.executed)
    return WrittenFile(
        piece, moved.position, None if filter is not None else shift, tally.transactions - before, executed
    )


def _compare_blocks(piece: ExportPiece, layer: FileLayer) -> None:
    """Compare the blocks of a file whose events have no checksums. Raises: ExportDamaged; OSError."""
    path = piece.source.path
    if not any(place.exists() for place in sum_paths(path)):
        return
    try:
        check = check_blocks(layer, path, piece.stop)
    except EOFError as error:
        raise ExportDamaged(f"{path.name}: {error}. 'archive repair' fetches it again.") from error
    wrong = [at for at in check.differing if at < piece.stop and at + BLOCK_BYTES > piece.start] if check else []
    if wrong:
        raise ExportDamaged(
            f"{path.name} is damaged: the block at {wrong[0]} is not what was received. Nothing was written. 'archive repair' "
            "fetches the file again, then export once more."
        )


class _Output:
    """A new file, written in large pieces."""

    def __init__(self, path: Path) -> None:
        self._layer = FileLayer()
        self._fd = self._layer.create(path)
        self._buffer = bytearray()
        self._size = 0

    def write(self, data: memoryview) -> None:
        """Add `data`."""
        self._buffer += data
        if len(self._buffer) >= _BUFFER_BYTES:
            self._flush()

    def _flush(self) -> None:
        write_all(self._layer, self._fd, [self._buffer], self._size, len(self._buffer))
        self._size += len(self._buffer)
        self._buffer.clear()

    def finish(self) -> None:
        """Write the rest; all of it is on the disk when this returns."""
        if self._buffer:
            self._flush()
        self._layer.sync_data(self._fd)

    def __enter__(self) -> "_Output":
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self._fd)
