"""The parts that a view left out, stored beside its files."""

import json
from pathlib import Path

from relay.archive.storage.files import VIEW_LEFT_OUT_NAME, FileLayer, replace_file
from relay.disk.file_calls import read_file
from relay.disk.kept_json import kept_json
from relay.view.rules.mariadb.left_out import LeftOut


def keep_left_out(view: Path, left_out: LeftOut, layer: FileLayer) -> None:
    """Store it for commands beside the process that builds the view. `view` is its directory. Blocking. Raises: OSError."""
    replace_file(layer, view / VIEW_LEFT_OUT_NAME, json.dumps(left_out.record(), ensure_ascii=False).encode())


def kept_left_out(view: Path) -> LeftOut | None:
    """Return what was stored last; None: nothing, or content that cannot be understood. Blocking. Raises: OSError."""
    try:
        return LeftOut.of_record(kept_json(read_file(view / VIEW_LEFT_OUT_NAME)))
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None
