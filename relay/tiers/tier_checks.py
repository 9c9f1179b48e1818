"""The checks of `binlog-relay archive verify` for packed binlogs, in all generations."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from relay.archive.catalog.generation_directories import begun_generations
from relay.archive.storage.archive_errors import ArchiveError, ArchiveLocked
from relay.archive.storage.archive_finding import ArchiveFinding
from relay.archive.storage.directory_lock import take_lock
from relay.archive.storage.files import UUID_NAME, FileLayer
from relay.config.sections import Config
from relay.disk.file_calls import read_file
from relay.object_store.archive_object import Ownership
from relay.object_store.object_errors import MirrorRefused, ObjectStoreError
from relay.object_store.object_store import ObjectStore
from relay.packed.packed_errors import KeyUnreadable
from relay.tiers.tier_check import Progress, TierCheck
from relay.tiers.tier_setup import bucket_store, key_ring

TierFindings = Iterator[tuple[int, ArchiveFinding]]


@dataclass(frozen=True, slots=True)
class TierChecks:
    """run: the checks of all generations. alone: no relay has the archive open."""

    run: Callable[[Progress | None], TierFindings]
    alone: bool


@contextmanager
def tier_checks(config: Config, *, deep: bool, cure: bool) -> Iterator[TierChecks]:
    """Return the checks. With `cure` no other process opens the archive during the block.

    Raises: ArchiveError: keys or credentials cannot be read; cure, and a relay runs, or the bucket is another archive's.
    """
    root, layer = config.archive_directory, FileLayer()
    try:
        keys, store = key_ring(config.archive), bucket_store(config.archive)
    except (KeyUnreadable, ObjectStoreError) as error:
        raise ArchiveError(str(error).rstrip(".")) from error
    lock = -1
    if root.is_dir():
        try:
            lock = take_lock(root, layer)
        except (ArchiveLocked, OSError) as error:
            if cure:
                raise ArchiveError(f"{error} A running relay cures by itself") from error
    alone = lock >= 0
    if alone and not cure:
        os.close(lock)  # a relay may start during a check that only reads
        lock = -1
    if cure and store is not None:
        try:
            _hold_place(root, store, is_whole=config.archive.mirror is not None)
        except (ArchiveError, ObjectStoreError, MirrorRefused) as error:
            os.close(lock)
            raise ArchiveError(f"nothing was cured: {str(error).rstrip('.')}") from error

    def checks(on_progress: Progress | None) -> TierFindings:
        for number, directory in begun_generations(root, layer):
            check = TierCheck(root, directory, store=store, keys=keys, deep=deep, alone=alone, cure=cure)
            for finding in check.run(on_progress):
                yield number, finding

    try:
        yield TierChecks(checks, alone)
    finally:
        if lock >= 0:
            os.close(lock)


def _hold_place(root: Path, store: ObjectStore, *, is_whole: bool) -> None:
    """Ensure that no other archive is in the bucket. Raises: ArchiveError; MirrorRefused; ObjectStoreError."""
    try:
        uuid = read_file(root / UUID_NAME).decode("ascii").strip()
    except OSError as error:
        raise ArchiveError(
            f"{UUID_NAME} cannot be read: {error.strerror}. The relay makes it when it starts"
        ) from error
    Ownership(store, uuid, root, is_whole=is_whole).hold()
