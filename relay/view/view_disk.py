"""What the disk refuses to a view's own files, told apart from what it refuses to the archive that the view is made of."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protocol.errors import RelayError
from relay.archive.storage.disk_advice import disk_advice
from relay.archive.storage.files import FileLayer


class ViewDiskFailed(RelayError):
    """A file of the view could not be written, or not be read. what: a sentence."""

    def __init__(self, what: str, advice: str, *, is_written: bool) -> None:
        super().__init__(what, advice)
        self.is_written = is_written


@contextmanager
def own_file(path: Path, layer: FileLayer, *, is_written: bool = False) -> Iterator[None]:
    """What is done there is done to this file of a view, or to those beside it. Blocking. Raises: ViewDiskFailed for OSError."""
    try:
        yield
    except OSError as error:
        verb = "written" if is_written else "read"
        what = f"{error.filename or path} of the view cannot be {verb}: {error.strerror or error}"
        advice = disk_advice(layer, path.parent, error.errno or 0)
        raise ViewDiskFailed(what, advice, is_written=is_written) from error
