"""Disk errors at a view's own files, distinguished from those at the archive that the view is built from."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protocol.errors import RelayError
from relay.archive.storage.disk_advice import disk_advice
from relay.archive.storage.files import FileLayer


class ViewDiskFailed(RelayError):
    """A file of the view could not be written or read. `what` is a sentence."""

    def __init__(self, what: str, advice: str, *, is_written: bool) -> None:
        super().__init__(what, advice)
        self.is_written = is_written


@contextmanager
def own_file(path: Path, layer: FileLayer, *, is_written: bool = False) -> Iterator[None]:
    """Raise ViewDiskFailed for an OSError of the block, which works on this file of a view, or on those beside it. Blocking."""
    try:
        yield
    except OSError as error:
        verb = "written" if is_written else "read"
        what = f"{error.filename or path} of the view cannot be {verb}: {error.strerror or error}"
        advice = disk_advice(layer, path.parent, error.errno or 0)
        raise ViewDiskFailed(what, advice, is_written=is_written) from error
