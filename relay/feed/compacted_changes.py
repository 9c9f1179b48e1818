"""The net changes of one table in a part of a batch: computed at once if it fits into memory, else piece by piece."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from relay.feed.lake.lake_table import LakeTable
from relay.feed.rows.equal_rows import OWN_NAME, equal_row_changes, equal_rows_in_pieces
from relay.feed.rows.minimal_row_images import CurrentRows, RowKey, completed_changes
from relay.feed.rows.net_changes import CHANGES, ImagesNotWhole, TableRows, net_changes
from relay.feed.rows.value_changes import SHAPE, value_changes
from relay.feed.spool.changes_spilled import SpooledNet
from relay.feed.spool.part_rows import PartRows
from relay.feed.spool.spool_directory import SpoolDirectory


class NetOfPart:
    """Net changes for one table of the lake. `told` says how its rows are kept; `unknown` is that of `completed_changes`, `lenient` that of
    `equal_row_changes`.

    `with_images` returns the same rows with their images. `told_apart` returns partial changes in which updates that were a REPLACE are split.
    `directory` is for what does not fit into memory; None if everything does.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        current: LakeTable,
        told: TableRows,
        with_images: Callable[[PartRows], PartRows],
        told_apart: Callable[[pa.Table], pa.Table],
        unknown: list[RowKey] | None,
        directory: SpoolDirectory | None,
        *,
        lenient: bool,
    ) -> None:
        self._connection = connection
        self._current = current
        self._told = told
        self._with_images = with_images
        self._told_apart = told_apart
        self._unknown = unknown
        self._directory = directory
        self._lenient = lenient

    @contextmanager
    def of(self, rows: PartRows) -> Iterator[pa.Table | SpooledNet]:
        """Yield net changes, by key or by the names of rows, which are valid until the next one is taken. Raises: FeedStop."""
        if rows.is_small and rows.has(SHAPE) and self._told.key:
            plain = value_changes(self._connection, rows.table(), self._told)
            if plain is not None:
                yield plain
                return
        if self._directory is None or rows.is_small:
            images = self._with_images(rows)
            if self._directory is None or images.is_small:
                yield self._at_once(images)
                return
        key = self._told.key
        net = SpooledNet(self._connection, self._directory, key or OWN_NAME, replaces=bool(key))
        try:
            if rows.is_small or not key or not self._add_values(net, rows):
                net.clear()
                if self._told.null_dates is not None:
                    self._told.null_dates.count = 0  # those of the values are counted again
                self._add_images(net, self._with_images(rows))
            # It is in memory if possible: a million changes of one row are one.
            yield net.table() if net.num_rows and net.nbytes <= rows.piece_bytes else net
        finally:
            net.close()

    def _add_values(self, net: SpooledNet, rows: PartRows) -> bool:
        """Add the values of rows and return whether all rows are plain."""
        if not rows.has(SHAPE):
            return False
        for piece in rows.pieces():
            some = value_changes(self._connection, piece, self._told)
            if some is None:
                return False
            net.add(some)
        return True

    def _add_images(self, net: SpooledNet, rows: PartRows) -> None:
        """Add net changes by the images of rows."""
        pieces = (piece.select(CHANGES.names) for piece in rows.pieces())
        if self._told.key:
            for piece in pieces:
                net.add(self._by_key(piece, net.above(self._current.rows_of)))
            return
        lenient = self._lenient
        for some in equal_rows_in_pieces(self._connection, pieces, self._told, self._current.scan, lenient=lenient):
            net.add(some)

    def _at_once(self, images: PartRows) -> pa.Table:
        changes = images.table().select(CHANGES.names)
        if self._told.key:
            return self._by_key(changes, self._current.rows_of)
        return equal_row_changes(self._connection, changes, self._told, self._current.scan, lenient=self._lenient)

    def _by_key(self, changes: pa.Table, current: CurrentRows) -> pa.Table:
        try:
            return net_changes(self._connection, changes, self._told)
        except ImagesNotWhole:
            changes = self._told_apart(changes)
            return completed_changes(self._connection, changes, self._told, current, unknown=self._unknown)
