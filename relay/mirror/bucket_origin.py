"""The source of a damaged binlog in the bucket of [archive.mirror], which has it packed."""

import asyncio
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from relay.archive.storage.archive_errors import ArchiveError
from relay.bucket_copy.bucket_content import bucket_content
from relay.bucket_copy.checked_copy import open_copy
from relay.object_store.object_errors import MirrorRefused, ObjectStoreError
from relay.object_store.object_store import ObjectStore
from relay.object_store.stored_object import StoredObject
from relay.packed.key_ring import KeyRing
from relay.packed.packed_errors import PackedError
from relay.packed.packed_facts import is_encrypted_name
from relay.packed.packed_reader import PackedReader
from relay.repair.file_origin import RemadeFile, remade_of_copy


@dataclass(frozen=True, slots=True)
class BucketOrigin:
    """A source of damaged files in the bucket. `folder` is that of the generation's objects, with a slash at its end, or empty. `keys`
    are for encrypted ones. `root` is the archive's directory, which knows the number of the bucket's manifest; None if it does not
    exist."""

    store: ObjectStore
    folder: str
    keys: KeyRing | None
    root: Path | None = None

    @property
    def where(self) -> str:
        """The bucket."""
        return self.store.url(self.folder)

    async def fetch(self, name: str, directory: Path) -> RemadeFile:
        """Implement `FileOrigin.fetch`."""
        with tempfile.TemporaryFile(dir=directory.parent) as plain:
            await asyncio.to_thread(self._unpack, name, plain)
            return await remade_of_copy(plain.fileno(), self.store.url(self.folder + name), name, directory)

    def _unpack(self, name: str, plain: BinaryIO) -> None:
        try:
            copy = open_copy(self.store, self.keys, bucket_content(self.store, to_restore=False), root=self.root)
            generation = next((one for one in copy.content.generations if one.folder == self.folder), None)
            if generation is None or name not in generation.files:
                raise ArchiveError(f"{self.where} does not have it as a whole", file=name)
            place = copy.note(generation, name).note.place
            source = StoredObject(self.store, self.folder + place.stored_name)
            must = is_encrypted_name(place.stored_name)
            if self.keys is not None and self.keys.active is not None and not must:
                raise ArchiveError(
                    f"{self.store.url(self.folder + place.stored_name)} is not encrypted, and [archive.encryption] has an active key: "
                    "whoever writes to the bucket could have made it",
                    file=name,
                    advice="If it is from before encryption was switched on: `archive restore --download --accept-unencrypted` into "
                    "another [archive] dir, then `archive repair --from` that directory.",
                )
            end_digest = place.end_digest
            reader = PackedReader.open(source, name, self.keys, must_be_encrypted=must, end_digest=end_digest)
            copy.check_facts(generation, self.folder + place.stored_name, reader.packed.facts)
            for frame in range(len(reader.packed.frames)):
                start, stop = reader.packed.stored_range(frame)
                plain.write(reader.packed.decode(frame, source.read(start, stop - start)))
        except MirrorRefused as error:
            raise ArchiveError(f"{self.where} does not give it: {str(error).rstrip('.')}", file=name) from error
        except (ObjectStoreError, PackedError) as error:
            raise ArchiveError(
                f"{self.where} does not give it: {error.text}", file=name, advice=error.advice
            ) from error
        plain.flush()
        os.lseek(plain.fileno(), 0, os.SEEK_SET)
