"""The archive for an engine that others have read the rows of a stretch for."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from relay.feed.archive_reading import IMAGES, ROW_COLUMNS, ArchiveReading, RowParts
from relay.feed.rows.feed_place import FeedPlace
from relay.feed.rows.row_places import AT, rows_within, with_places


class GivenRows(ArchiveReading):
    """As ArchiveReading; the rows of [start, end) that were given are not read again."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._given: tuple[FeedPlace, FeedPlace, pa.Table] | None = None

    def give(self, start: FeedPlace, end: FeedPlace, rows: pa.Table) -> None:
        """All changed rows of [start, end), in any order."""
        self._given = (start, end, rows.select(list(ROW_COLUMNS)))

    def take_back(self) -> None:
        """Nothing is given any more."""
        self._given = None

    def rows(
        self, start: FeedPlace, end: FeedPlace, schemas: Sequence[str] | None, wanted: RowParts = IMAGES
    ) -> Iterator[pa.Table]:
        """The changed rows in [start, end)."""
        if self._given is None or start < self._given[0] or end > self._given[1]:
            return super().rows(start, end, schemas, wanted)
        rows = self._given[2]
        if not rows.num_rows:
            return iter([rows])
        if rows.column("sequence").null_count:
            return super().rows(start, end, schemas, wanted)  # what is wrong has no order
        rows = with_places(rows.sort_by([("sequence", "ascending"), ("row", "ascending")]))
        return iter([rows_within(rows, start.version, end.version, ()).drop_columns([AT])])

    def changed_rows(self, start: FeedPlace, end: FeedPlace) -> Iterator[pa.Table]:
        """What all changed rows in [start, end) are."""
        return self.rows(start, end, None)
