"""A run of events on its way into an archived file."""

from collections.abc import Callable
from typing import NamedTuple

from relay.archive.storage.files import Buffer


class Run(NamedTuple):
    """Bytes of the current file that follow what was appended before them, and what the kernel found in them."""

    data: Buffer
    """The bytes, which are the writer's until `on_written` is called."""
    boundary: int
    """The offset of the newest transaction boundary, <= position."""
    position: int
    """The offset in the file where the run ends."""
    records: bytes
    """The records for NAME.idx: `Ingest.take_entries()`."""
    events: int
    """The number of events that this run adds; `groups` likewise."""
    groups: int
    timestamp: int
    """The newest event's, seconds."""
    on_written: Callable[[], None] | None = None
    """Called on the loop, also when the writer has failed and dropped the run."""
