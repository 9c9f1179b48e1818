"""The command `binlog-relay archive restore`: an archive from a bucket, for a relay whose disk is lost."""

import json
import sys
from dataclasses import replace
from typing import Final

from relay.bucket_copy.bucket_gaps import HolesWanted, holes_text
from relay.bucket_copy.checked_copy import AS_WRITTEN, WantedCopy
from relay.commands.outcome import CommandFailed
from relay.config import Config
from relay.mirror.restoring import RestoredArchive, restore_archive
from relay.object_store.object_errors import ObjectStoreError
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from relay.packed.packed_errors import PackedError
from relay.tiers.tier_setup import key_ring

_SHOWN: Final = 20


def restore(
    config: Config, url: str | None, *, download: bool, holes: str, as_json: bool, wanted: WantedCopy = AS_WRITTEN
) -> None:
    """Create the archive's directory and print its contents. `url` is that of the bucket, instead of relay.toml's. `holes` is as in
    `HolesWanted`.

    Raises: CommandFailed.
    """
    options = _options(config, url)
    bucket = config.archive.bucket
    if not download and (bucket is None or options.url.rstrip("/") != bucket.url.rstrip("/")):
        raise CommandFailed(
            f"The binlogs can only stay in {options.url} if relay.toml has [archive.bucket] with that url: the relay reads them there. "
            "Write it, or bring all binlogs back with --download."
        )
    try:
        keys = key_ring(config.archive)
        progress = sys.stderr.isatty()

        def on_progress(name: str) -> None:
            if progress:
                sys.stderr.write(f"{name}\n")

        store = ObjectStore(options)
        done = restore_archive(
            store,
            config.archive_directory,
            keys,
            download=download,
            holes=HolesWanted(holes),
            wanted=wanted,
            on_progress=on_progress,
        )
    except (PackedError, ObjectStoreError) as error:
        raise CommandFailed(f"{error} Nothing was restored.", error.exit_code) from error
    if as_json:
        told = {
            "directory": str(config.archive_directory),
            "generations": done.generations,
            "files": done.files,
            "first": done.first,
            "end_file": done.end.file,
            "end_position": done.end.offset,
            "downloaded": done.downloaded,
            "bytes_read": done.bytes_read,
            "dropped_bytes": done.dropped,
            "manifest": done.manifest,
            "authenticated": done.is_signed,
            "not_as_listed": list(done.doubts),
            "removed": list(done.removed),
            "holes": [{"file": hole.folder + hole.file, "bytes": hole.size, "why": hole.why} for hole in done.holes],
        }
        sys.stdout.write(json.dumps(told) + "\n")
        return
    where = "as plain files" if done.downloaded else f"which stay in {options.url}"
    dropped = f" {done.dropped} bytes of a transaction that was not complete were left out." if done.dropped else ""
    if done.holes:
        dropped += f" In the bucket there are holes: {holes_text(list(done.holes))}; restored was: {holes}."
    sys.stdout.write(
        f"{config.archive_directory} was made from {options.url}: {done.files} whole binlogs from {done.first} on, {where}, and the "
        f"newest one's beginning. The archive ends at {done.end}.{dropped} {_manifest_text(done)} Start the relay: it asks "
        "its source for what comes next.\n"
    )


def _manifest_text(done: RestoredArchive) -> str:
    text = f"The manifest has the number {done.manifest}"
    text += (
        "." if done.is_signed else ", and was made without a key: that nobody else changed the bucket is not certain."
    )
    if done.removed:
        text += f" It lists {len(done.removed)} older binlogs that are not there any more, from {done.removed[0]} on."
    if done.doubts:
        more = f" and {len(done.doubts) - _SHOWN} more" if len(done.doubts) > _SHOWN else ""
        text += f" Not as it says, and taken all the same: {'; '.join(done.doubts[:_SHOWN])}{more}."
    return text


def _options(config: Config, url: str | None) -> StoreOptions:
    bucket = config.archive.bucket
    if url is None:
        if bucket is None:
            raise CommandFailed("Say with --from where the copy is, or write [archive.bucket] into relay.toml.")
        return bucket.options()
    try:
        return StoreOptions(url) if bucket is None else replace(bucket.options(), url=url)
    except ValueError as error:
        raise CommandFailed(f"--from: {error}.") from None  # the url may have a secret
