"""Where and why a view is stopped: as it is raised, kept and shown."""

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


class ViewStop(NamedTuple):
    """A view cannot go on before what begins at `offset` of the source's file; "": of no file.

    group_stop: where that ends; `offset`: unknown, and `view skip` does not help. time: Unix seconds, when the view stopped; of a stop
    ahead when the source wrote the transaction; 0: unknown. generation: of the source's archive, whose file it is.
    """

    file: str
    offset: int
    group_stop: int
    reason: StopReason
    time: float = 0
    generation: int = FIRST

    @property
    def message(self) -> str:
        """Where and why, and the ways on."""
        return f"{self.place}: {self.reason.message}" if self.file else self.reason.message

    @property
    def named_message(self) -> str:
        """The same after the reason's name."""
        return f"{self.reason.name}: {self.message}"

    @property
    def place(self) -> str:
        """As in mysql-bin.000042:4711."""
        return f"{self.file}:{self.offset}"


class ViewStopped(RelayError):
    """Raised where a view cannot go on. `stop`: see ViewStop, without a time."""

    def __init__(self, file: str, offset: int, group_stop: int, reason: StopReason) -> None:
        super().__init__(reason.text, file=file, offset=offset)
        self.stop = ViewStop(file, offset, group_stop, reason)


class StopUnknown(RelayError):
    """Nothing is kept of it, or what is kept cannot be parsed."""


def keep_stop(view: Path, stop: ViewStop | None, layer: FileLayer) -> None:
    """Write the stop for commands that run beside the relay. view: its directory; None: the view goes on. Blocking. Raises: OSError."""
    kept = None if stop is None else {**stop._asdict(), "reason": stop.reason._asdict()}
    replace_file(layer, view / VIEW_STOP_NAME, json.dumps({"stop": kept}).encode())


def kept_stop(view: Path) -> ViewStop | None:
    """Return what was written last. Blocking. Raises: StopUnknown; OSError."""
    try:
        kept = kept_json(read_file(view / VIEW_STOP_NAME))["stop"]
        return None if kept is None else ViewStop(**{**kept, "reason": StopReason(**kept["reason"])})
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        raise StopUnknown(str(error)) from error
