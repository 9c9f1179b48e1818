"""The removal from the bucket of what was purged on the disk: NAME.gone names it until that is done.

If the bucket is the mirror's, it is the archive's second copy, and what was purged stays there: only NAME.gone is removed.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from relay.archive.catalog.generation_directories import generation_numbers, generation_path
from relay.archive.storage.files import BESIDE_SUFFIXES, FileLayer, StoredFile
from relay.archive.storage.storage_location import GONE_SUFFIX, LocationNote, Tier
from relay.object_store.object_store import ObjectStore
from relay.packed.packed_facts import PACKED_SUFFIXES

OBJECT_SUFFIXES: Final = (*PACKED_SUFFIXES, *BESIDE_SUFFIXES)
"""The suffixes of the objects that a binlog has."""


def gone_names(layer: FileLayer, directory: Path) -> list[str]:
    """Return the purged binlogs that a bucket may still have. Raises: OSError."""
    return sorted(name.removesuffix(GONE_SUFFIX) for name in layer.names(directory) if name.endswith(GONE_SUFFIX))


def all_gone(layer: FileLayer, root: Path) -> list[tuple[Path, str]]:
    """Return those of all generations, also of such as were purged as a whole, with their directories. Blocking. Raises: OSError."""
    directories = [generation_path(root, number) for number in generation_numbers(layer.listed(root).directories)]
    return [(directory, name) for directory in directories for name in gone_names(layer, directory)]


def remove_gone(
    layer: FileLayer, directory: Path, key_of: Callable[[Path], str], store: ObjectStore | None, name: str
) -> bool:
    """Remove the objects of one, then NAME.gone; return whether that is done. Blocking. Raises: OSError, ObjectStoreError.

    Without a bucket it is done only for a binlog that was never there.
    """
    path = directory / (name + GONE_SUFFIX)
    if store is not None:
        store.delete([key_of(directory / (name + suffix)) for suffix in OBJECT_SUFFIXES])
    elif _was_in_bucket(layer, path):
        return False
    return forget_gone(layer, directory, name)


def forget_gone(layer: FileLayer, directory: Path, name: str) -> bool:
    """Remove NAME.gone alone, as the mirror's bucket keeps what is purged. Blocking. Raises: OSError."""
    layer.unlink(directory / (name + GONE_SUFFIX))
    layer.sync_directory(directory)
    return True


def _was_in_bucket(layer: FileLayer, path: Path) -> bool:
    try:
        with StoredFile.open(layer, path) as stored:
            return LocationNote.decode(stored.read_all()).place.tier is Tier.OBJECT
    except FileNotFoundError:
        return False
    except ValueError:
        return True
