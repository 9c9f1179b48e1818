"""Where and why a view stands stopped, as it is kept and shown."""

import json
from pathlib import Path
from typing import Final, NamedTuple

from protocol.errors import RelayError
from relay.archive.catalog.generation_directories import FIRST
from relay.archive.storage.files import VIEW_STOP_NAME, FileLayer, replace_file
from relay.disk.file_calls import read_file
from relay.disk.kept_json import kept_json
from relay.view.rules.group import StopReason

STOPPED: Final = "view_stopped"
"""The ledger's kind, in the view's archive, of a group that could not be translated."""


class ViewStop(NamedTuple):
    """Where a view stands stopped, in the source's file, and why. group_stop: where what cannot be kept ends; `offset`: unknown.
    generation: of the source's archive, whose file it is."""

    file: str
    offset: int
    group_stop: int
    reason: StopReason
    time: float
    generation: int = FIRST


class StopUnknown(RelayError):
    """Nothing is kept of it, or what is kept cannot be understood."""


def keep_stop(view: Path, stop: ViewStop | None, layer: FileLayer) -> None:
    """For those who ask beside the process that makes the view. view: its directory; None: it goes on. Blocking. Raises: OSError."""
    kept = None if stop is None else {**stop._asdict(), "reason": stop.reason._asdict()}
    replace_file(layer, view / VIEW_STOP_NAME, json.dumps({"stop": kept}).encode())


def kept_stop(view: Path) -> ViewStop | None:
    """What was kept last. Blocking. Raises: StopUnknown; OSError."""
    try:
        kept = kept_json(read_file(view / VIEW_STOP_NAME))["stop"]
        return None if kept is None else ViewStop(**{**kept, "reason": StopReason(**kept["reason"])})
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        raise StopUnknown(str(error)) from error
