"""The layer to read an archive by its directory alone, for commands and jobs that have no relay.toml.

The relay writes `tiers.json` into its archive: the bucket, and the origins of the keys of encrypted files. Neither contains a secret.
"""

import functools
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from relay.archive.storage.archive_errors import ArchiveCorrupt, ArchiveUnavailable
from relay.archive.storage.files import TIERS_NAME, FileLayer, replace_file
from relay.disk.file_calls import read_file
from relay.disk.kept_json import kept_json
from relay.object_store.object_errors import ObjectStoreError
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from relay.packed.key_ring import KeyRing, KeySource
from relay.packed.packed_errors import KeyUnreadable
from relay.packed_reads.packed_files import PackedFiles
from relay.packed_reads.shared_frames import SharedFrames
from relay.packed_reads.tiered_layer import TieredLayer
from relay.packed_reads.tool_keys import tool_keys

_TOOL_CACHE_BYTES: Final = 64 << 20
_layers: Final[dict[Path, TieredLayer]] = {}
"""The layers of archives that this process has open: other reads then share their frames."""


def note_tiers(root: Path, bucket: StoreOptions | None, keys: Sequence[KeySource]) -> None:
    """Store in the archive's directory how its packed files are read. Blocking. Raises: OSError."""
    path = root / TIERS_NAME
    if bucket is None and not keys and not path.exists():
        return
    told = {"bucket": None if bucket is None else asdict(bucket), "keys": [asdict(one) for one in keys]}
    content = (json.dumps(told, indent=1) + "\n").encode()
    if not path.exists() or read_file(path) != content:
        replace_file(FileLayer(), path, content)


def archive_layer(root: Path, shared: SharedFrames, bucket: ObjectStore | None, keys: KeyRing | None) -> TieredLayer:
    """Return the layer for the archive in `root`, also for `layer_of` in this process."""
    layer = _layers[root.absolute()] = TieredLayer(PackedFiles(root, shared, keys, bucket))
    return layer


def layer_of(directory: Path) -> TieredLayer:
    """Return the layer for binlogs in `directory`, of an archive, one of its later sources or a view, or of none. It contacts no
    bucket.

    Raises: ArchiveUnavailable if keys that the environment names, or credentials, cannot be read; ArchiveCorrupt if `tiers.json`
    cannot.
    """
    directory = directory.absolute()
    for root in (directory, *directory.parents[:3]):
        if root in _layers:
            return _layers[root]
        if (root / TIERS_NAME).is_file():
            return _layer_in(root, read_file(root / TIERS_NAME).decode())
    return _layer_in(directory, "")


@functools.lru_cache(maxsize=8)
def _layer_in(root: Path, told: str) -> TieredLayer:
    bucket: StoreOptions | None = None
    noted: list[KeySource] = []
    if told:
        try:
            found: dict[str, Any] = kept_json(told)
            bucket = StoreOptions(**found["bucket"]) if found["bucket"] else None
            noted = [KeySource(**one) for one in found["keys"]]
        except (ValueError, KeyError, TypeError) as error:
            advice = "Start the relay once: it writes the file again."
            raise ArchiveCorrupt(f"it cannot be understood: {error}", file=TIERS_NAME, advice=advice) from error
    try:
        return TieredLayer(PackedFiles(root, tool_frames(), tool_keys(noted), ObjectStore(bucket) if bucket else None))
    except ObjectStoreError as error:
        raise ArchiveUnavailable(error.text, advice=error.advice) from error
    except KeyUnreadable as error:
        raise ArchiveUnavailable(f"the keys of encrypted binlogs cannot be read: {error}") from error


@functools.cache
def tool_frames() -> SharedFrames:
    """Return the frames of the process."""
    return SharedFrames(_TOOL_CACHE_BYTES)
