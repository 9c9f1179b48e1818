"""The command `binlog-relay archive mirror`: the state of the bucket's copy of the archive, as read from the bucket itself."""

import json
import sys
from pathlib import Path

from relay.archive.catalog.generation_directories import FIRST
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import FileLayer
from relay.archive_inspection.listing import list_generations
from relay.bucket_copy.bucket_content import BucketContent, bucket_content
from relay.bucket_copy.bucket_manifest import BucketManifest, read_manifest
from relay.bucket_copy.mirror_parts import covered_to
from relay.bucket_copy.signed_object import Signer
from relay.commands.archive_command import archive_failures, time_text
from relay.commands.outcome import CommandFailed
from relay.config import Config
from relay.object_store.object_store import ObjectStore
from relay.tiers.tier_setup import key_ring


def show_mirror(config: Config, *, as_json: bool) -> bool:
    """Print what the bucket has and what is missing in it; return whether binlogs are missing. The relay may be running.

    Raises: CommandFailed; MirrorRefused; KeyUnreadable; PackedError; ObjectStoreError.
    """
    bucket = config.archive.bucket
    if bucket is None or config.archive.mirror is None:
        raise CommandFailed("relay.toml has no [archive.mirror]: no bucket is kept as a copy.")
    directory = config.archive_directory
    with archive_failures(directory):
        held = list_generations(directory)
        store = ObjectStore(bucket.options())
        content = bucket_content(store)
        manifest = read_manifest(store, Signer(key_ring(config.archive)))
        lacking, lag = _lacking(directory, held, content)
    count = sum(len(files) for _number, files in held)
    about = content.about
    if as_json:
        told = {
            "url": bucket.url,
            "archive": about.archive,
            "written_by": about.host,
            "written_at": time_text(about.time),
            "manifest": 0 if manifest is None else manifest.sequence,
            "authenticated": manifest is not None and manifest.key_id is not None,
            "files": count,
            "lacking_files": lacking,
            "lag_bytes": lag,
        }
        sys.stdout.write(json.dumps(told) + "\n")
    else:
        lacks = (
            f"{len(lacking)} whole binlogs are not there, the first is {lacking[0]}"
            if lacking
            else "no whole binlog is lacking"
        )
        sys.stdout.write(
            f"{bucket.url}: the copy of {about.source}, last written by {about.host} at {time_text(about.time)}. Of {count} binlogs "
            f"{lacks}; {lag} bytes are not in the bucket. {_manifest_text(manifest)}\n"
        )
    return bool(lacking)


def _manifest_text(manifest: BucketManifest | None) -> str:
    if manifest is None:
        return "No manifest was written yet."
    key = "" if manifest.key_id is None else f", made with the key {manifest.key_id!r}"
    return (
        f"Its manifest has the number {manifest.sequence}{key}: noted elsewhere, `archive restore --at-least {manifest.sequence}` "
        "refuses an older state of the bucket."
    )


def _lacking(
    directory: Path, held: list[tuple[int, list[ArchivedFile]]], content: BucketContent
) -> tuple[list[str], int]:
    """Return the names of sealed binlogs that are not there as a whole, and the bytes that are in no form there."""
    there = {generation.folder: generation for generation in content.generations}
    layer = FileLayer()
    lacking = []
    lag = 0
    for number, files in held:
        folder = "" if number == FIRST else f"g{number:04d}/"
        generation = there.get(folder)
        for file in files:
            parts = generation.parts.get(file.name, []) if generation is not None else []
            path = directory / folder / file.name
            end = file.end if file.sealed or not path.exists() else max(file.end, layer.size_of(path))
            if generation is None or file.name not in generation.files:
                lag += max(0, end - covered_to(parts))
                if file.sealed:
                    lacking.append(folder + file.name)
    return lacking, lag
