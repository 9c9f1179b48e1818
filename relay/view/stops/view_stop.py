"""The place and reason of a view's stop: as it is raised, stored and shown."""

import json
from pathlib import Path
from typing import Final, NamedTuple

from protocol.errors import RelayError
from relay.archive.catalog.generation_directories import FIRST
from relay.archive.storage.files import VIEW_STOP_NAME, FileLayer, replace_file
from relay.disk.file_calls import read_file
from relay.disk.kept_json import kept_json
from relay.view.stops.stop_reason import StopReason

STOPPED: Final = "view_stopped"
"""The kind of the row in the ledger of the view's archive."""
ACCEPTS: Final = "view_accepts"
"""The kind of the row that says what a view passes on although the target may compute it otherwise."""


class ViewStop(NamedTuple):
    """A stop: a view cannot continue before what begins at `offset` of the source's file; "": there is no file.

    `group_stop` is where that ends; `offset`: unknown, and `view skip` does not help. `time` is when the view stopped, in Unix seconds;
    for a future stop, when the source wrote the transaction; 0: unknown. `generation` is that of the source's archive with the file.
    """

    file: str
    offset: int
    group_stop: int
    reason: StopReason
    time: float = 0
    generation: int = FIRST

    @property
    def message(self) -> str:
        """The place and the reason, and the ways to continue."""
        return f"{self.place}: {self.reason.message}" if self.file else self.reason.message

    @property
    def named_message(self) -> str:
        """The message after the reason's name."""
        return f"{self.reason.name}: {self.message}"

    @property
    def place(self) -> str:
        """The place as in mysql-bin.000042:4711."""
        return f"{self.file}:{self.offset}"


class ViewStopped(RelayError):
    """Raised where a view cannot continue. `stop` is without a time."""

    def __init__(self, file: str, offset: int, group_stop: int, reason: StopReason) -> None:
        super().__init__(reason.text, file=file, offset=offset)
        self.stop = ViewStop(file, offset, group_stop, reason)


class StopUnknown(RelayError):
    """Nothing is stored of it, or the stored text cannot be parsed."""


def keep_stop(view: Path, stop: ViewStop | None, layer: FileLayer) -> None:
    """Write the stop for commands beside the relay. `view` is its directory; None: the view continues. Blocking. Raises: OSError."""
    kept = None if stop is None else {**stop._asdict(), "reason": stop.reason._asdict()}
    replace_file(layer, view / VIEW_STOP_NAME, json.dumps({"stop": kept}).encode())


def kept_stop(view: Path) -> ViewStop | None:
    """Return what was written last. Blocking. Raises: StopUnknown; OSError."""
    try:
        kept = kept_json(read_file(view / VIEW_STOP_NAME))["stop"]
        return None if kept is None else ViewStop(**{**kept, "reason": StopReason(**kept["reason"])})
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        raise StopUnknown(str(error)) from error
