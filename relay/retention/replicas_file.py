"""`known-replicas.json` in the archive's directory: the replicas that retention keeps files for, across restarts."""

import json
from pathlib import Path
from typing import Final

from relay.archive.storage.files import KNOWN_REPLICAS_NAME, FileLayer, StoredFile, replace_file
from relay.disk.kept_json import kept_json
from relay.retention.known_replicas import KnownReplicas, RecordValues

_LAYOUT: Final = 1


def read_known_replicas(layer: FileLayer, directory: Path) -> KnownReplicas | None:
    """Return the stored replicas; None: nothing yet. Blocking. Raises: OSError; ValueError for what cannot be understood."""
    path = directory / KNOWN_REPLICAS_NAME
    if not layer.exists(path):
        return None
    with StoredFile.open(layer, path) as stored:
        kept = kept_json(stored.read_all())
    if not isinstance(kept, dict) or kept.get("layout") != _LAYOUT:
        raise ValueError("another layout")
    return KnownReplicas.of_records(kept.get("replicas"))


def write_known_replicas(layer: FileLayer, directory: Path, values: RecordValues) -> None:
    """Store the replicas. Blocking. Raises: OSError."""
    # One replica a line: encoding all of them at once would hold the interpreter, and with it the event loop, meanwhile.
    lines = ",\n  ".join(json.dumps(record) for record in KnownReplicas.records(values))
    content = f'{{\n "layout": {_LAYOUT},\n "replicas": [\n  {lines}\n ]\n}}\n'
    replace_file(layer, directory / KNOWN_REPLICAS_NAME, content.encode())
