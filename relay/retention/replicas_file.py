"""`known-replicas.json` in the archive's directory: the replicas that retention keeps files for, across restarts."""

import json
from pathlib import Path
from typing import Final

from relay.archive.storage.files import KNOWN_REPLICAS_NAME, FileLayer, StoredFile, replace_file
from relay.retention.known_replicas import KnownReplicas

_LAYOUT: Final = 1


def read_known_replicas(layer: FileLayer, directory: Path) -> KnownReplicas | None:
    """What is kept; None: nothing yet. Blocking. Raises: OSError; ValueError for what cannot be understood."""
    path = directory / KNOWN_REPLICAS_NAME
    if not layer.exists(path):
        return None
    with StoredFile.open(layer, path) as stored:
        kept = json.loads(stored.read_all())
    if not isinstance(kept, dict) or kept.get("layout") != _LAYOUT:
        raise ValueError("another layout")
    return KnownReplicas.of_records(kept.get("replicas"))


def write_known_replicas(layer: FileLayer, directory: Path, records: list[dict[str, object]]) -> None:
    """Blocking. Raises: OSError."""
    content = json.dumps({"layout": _LAYOUT, "replicas": records}, indent=1)
    replace_file(layer, directory / KNOWN_REPLICAS_NAME, content.encode())
