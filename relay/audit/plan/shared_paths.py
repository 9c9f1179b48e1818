"""Paths that the driver planned with, and that another machine must have too."""

import platform

from protocol.errors import RelayError
from relay.archive.catalog.generation_directories import generation_numbers
from relay.audit.plan.store import LocalStore, Store


class NotShared(RelayError):
    """This machine has not the directory that was planned with. `str()` says which machine, and what to do."""


def stop_where_nothing_is_shared(store: Store, path: str) -> None:
    """A file that is gone was purged; a directory that is gone was never on this machine. Raises: NotShared."""
    directory = path.rpartition("/")[0]
    if len(generation_numbers([directory.rpartition("/")[2]])) > 1:
        directory = directory.rpartition("/")[0]  # a later source's own, which goes with its last file
    if isinstance(store, LocalStore) and directory and not store.is_directory(directory):
        raise NotShared(
            f"{platform.node()} has no directory {directory}, where the driver found the archive. Driver and executors must see "
            "it at the same path (a file system that all mount), or read it by a URL: docs/SPARK.md, 'On a cluster'."
        )
