"""A substitute for the archive to which a stream is written."""

from relay.archive.storage.archive_errors import ArchiveWriteError
from relay.archive.write.run import Run


class HoldingArchive:
    """An archive that keeps what it is given; it refuses it while `failure` is set."""

    def __init__(self) -> None:
        self.queued_bytes = 0
        self.data = bytearray()
        self.events = 0
        self.ledger: list[tuple[str, int, str]] = []
        self.failure: ArchiveWriteError | None = None
        self.position = 4

    def start_file(self, name: str, *, previous_cut: bool = False) -> None:
        """Begin a file."""
        self.position = 4

    def append(self, run: Run) -> None:
        """Take the next run, and write it at once."""
        if self.failure is not None:
            raise self.failure
        assert self.position + len(run.data) == run.position
        self.position = run.position
        self.data += run.data
        self.events += run.events
        if run.on_written is not None:
            run.on_written()

    def append_ledger(self, kind: str, file: str, offset: int, text: str) -> None:
        """Keep a row."""
        self.ledger.append((kind, offset, text))
