"""`binlog-relay archive claim`: the place in the bucket becomes this archive's, though another name is written there."""

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from protocol.position import is_binlog_name
from relay.archive.catalog.generation_directories import FIRST, generation_path
from relay.archive.storage.directory_lock import take_lock
from relay.archive.storage.files import UUID_NAME, FileLayer
from relay.archive.storage.storage_location import PLACE_SUFFIX
from relay.archive_inspection.listing import list_generations
from relay.bucket_copy.manifest_keeper import ManifestKeeper
from relay.commands.archive_command import archive_failures, time_text
from relay.commands.outcome import CommandFailed
from relay.config import Config
from relay.disk.file_calls import read_file
from relay.object_store.archive_object import STALE_S, ArchiveObject, Ownership, read_archive_object
from relay.object_store.object_store import ObjectStore
from relay.object_store.unknown_place import NOBODY
from relay.tiers.tier_setup import bucket_store, key_ring


@dataclass(frozen=True, slots=True)
class PlaceContent:
    """owner: None: nothing names it. binlogs: whole ones that are there, by key; unknown: those that this archive does not contain."""

    owner: ArchiveObject | None
    binlogs: Sequence[str]
    unknown: Sequence[str]


def claim(config: Config, owner: str | None, *, as_json: bool) -> None:
    """Print the owner of the place; owner: the uuid that is written there, or "nobody": the place becomes this archive's.

    Raises: CommandFailed; MirrorRefused; KeyUnreadable; ObjectStoreError.
    """
    root = config.archive_directory
    with archive_failures(root):
        lock = take_lock(root, FileLayer())
        try:
            uuid = read_file(root / UUID_NAME).decode("ascii").strip()
            store = bucket_store(config.archive)
            if store is None:
                raise CommandFailed("relay.toml has no [archive.bucket].")
            found = _content(store, root)
            if owner is not None:
                _may_take(store, uuid, found.owner, owner)
                ManifestKeeper(store, key_ring(config.archive), root, uuid).claim()
                is_whole = config.archive.mirror is not None or (found.owner is not None and found.owner.is_whole)
                Ownership.take_over(store, uuid, root, found.owner, is_whole=is_whole)
        except FileNotFoundError:
            raise CommandFailed(f"{root / UUID_NAME} is not there: start the relay once.") from None
        finally:
            os.close(lock)
    _tell(store, uuid, found, is_taken=owner is not None, as_json=as_json)


def _content(store: ObjectStore, root: Path) -> PlaceContent:
    owner = read_archive_object(store)
    held = {
        f"{'' if number == FIRST else generation_path(Path(), number).name + '/'}{file.name}"
        for number, files in list_generations(root)
        for file in files
    }
    there = [facts.key.removesuffix(PLACE_SUFFIX) for facts in store.list() if facts.key.endswith(PLACE_SUFFIX)]
    there = [key for key in there if is_binlog_name(key.rpartition("/")[2])]
    return PlaceContent(owner, there, [key for key in there if key not in held])


def _may_take(store: ObjectStore, uuid: str, found: ArchiveObject | None, owner: str) -> None:
    """Check that the place may be taken. Raises: CommandFailed."""
    written = NOBODY if found is None else found.archive
    if owner != written:
        raise CommandFailed(f"{store.url()} is of {written}, not of {owner}. Nothing was changed.")
    age = time.time() - (0.0 if found is None else found.time)
    if found is not None and found.archive != uuid and age < STALE_S:
        raise CommandFailed(
            f"A relay on {found.host} wrote to {store.url()} {max(0.0, age):.0f} s ago. Nothing was changed. Stop that relay, wait "
            f"{STALE_S:.0f} s, and claim it again; or give this archive another prefix in [archive.bucket] url."
        )


def _tell(store: ObjectStore, uuid: str, found: PlaceContent, *, is_taken: bool, as_json: bool) -> None:
    owner, unknown = found.owner, found.unknown
    if as_json:
        told = {
            "url": store.url(),
            "archive": uuid,
            "owner": NOBODY if owner is None else owner.archive,
            "written_by": None if owner is None else owner.host,
            "written_at": None if owner is None else time_text(owner.time),
            "binlogs": len(found.binlogs),
            "not_held": list(unknown),
            "taken": is_taken,
        }
        sys.stdout.write(json.dumps(told) + "\n")
        return
    whose = (
        "nothing there says whose it is"
        if owner is None
        else f"{owner.source!r} of the relay {owner.archive}, last written by {owner.host} at {time_text(owner.time)}"
    )
    text = f"{store.url()}: {whose}. It has {len(found.binlogs)} whole binlogs. This archive's relay is {uuid}.\n"
    if unknown:
        text += (
            f"{len(unknown)} of them are not in this archive, the first is {unknown[0]}. If they are wanted, do not claim this place: "
            "`binlog-relay archive restore` makes an archive of them in another [archive] dir. Once it is this archive's, "
            "`archive verify --cure` removes them.\n"
        )
    if is_taken:
        text += "It is this archive's now. Start the relay.\n"
    elif owner is not None and owner.archive == uuid:
        text += "It is this archive's.\n"
    else:
        who = NOBODY if owner is None else owner.archive
        text += f"Nothing was changed. To make it this archive's: binlog-relay archive claim --of {who}\n"
    sys.stdout.write(text)
