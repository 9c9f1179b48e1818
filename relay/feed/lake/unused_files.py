"""Files of an Iceberg table that no snapshot names: those of expired snapshots, and of commits that were never completed.

A file is removed only if no existing snapshot names it. One that a snapshot named that has just expired was committed once, and is removed at once.
For any other it is unknown whether a commit that will name it is under way: it is removed when it is old.
"""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pyarrow.fs import FileSelector, FileType
from pyiceberg.io import load_file_io
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from relay.feed.lake.lake_names import remove_local

_KINDS: Final = (".parquet", ".avro", ".metadata.json")


def files_named(table: Table, snapshots: Iterable[Snapshot]) -> set[str]:
    """Return the files that the snapshots need: their lists of manifests, the manifests, and the files of live rows in them."""
    found: set[str] = set()
    for snapshot in snapshots:
        found.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path in found:
                continue
            found.add(manifest.manifest_path)
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                if entry.status != ManifestEntryStatus.DELETED:
                    found.add(entry.data_file.file_path)
    return found


def remove_files(table: Table, files: Iterable[str]) -> int:
    """Remove files and return how many existed."""
    count = 0
    for one in sorted(files):
        try:
            table.io.delete(one)
        except FileNotFoundError:
            continue
        count += 1
    return count


def remove_below(properties: dict[str, str], location: str) -> None:
    """Remove all files below a location."""
    io: Any = load_file_io(properties, location)
    parts = urlsplit(location)
    system = io.fs_by_scheme(parts.scheme or "file", parts.netloc)
    selector = FileSelector(_path(location), allow_not_found=True, recursive=True)
    for one in system.get_file_info(selector):
        if one.type == FileType.File:
            system.delete_file(one.path)
    if not parts.scheme:
        remove_local(Path(location))


def stray_files(table: Table, older_than: datetime) -> list[str]:
    """Return files below the table that nothing names and that were written before `older_than`."""
    metadata = table.metadata
    kept = files_named(table, table.snapshots())
    kept |= {table.metadata_location, *(one.metadata_file for one in metadata.metadata_log)}
    kept |= {one.statistics_path for one in (*metadata.statistics, *metadata.partition_statistics)}
    known = {_path(one) for one in kept}
    location = table.location().rstrip("/")
    parts = urlsplit(location)
    io: Any = table.io
    system = io.fs_by_scheme(parts.scheme or "file", parts.netloc)
    found = []
    for folder in ("data", "metadata"):
        for one in system.get_file_info(
            FileSelector(f"{_path(location)}/{folder}", allow_not_found=True, recursive=True)
        ):
            if one.type != FileType.File or not one.path.endswith(_KINDS) or one.mtime is None:
                continue
            if one.mtime < older_than and _path(one.path) not in known:
                found.append(f"{parts.scheme}://{one.path}" if parts.scheme not in ("", "file") else one.path)
    return found


def _path(place: str) -> str:
    """Return the same place for all its spellings: bucket and key, or the path of a file."""
    parts = urlsplit(place)
    return f"{parts.netloc}{parts.path}" if parts.scheme else place
