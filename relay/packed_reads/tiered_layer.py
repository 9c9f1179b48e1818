"""The archive's disk, with binlogs that are packed on it or in a bucket: they are read by their own names."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from zlib import crc32

from relay.archive.read.open_file import OpenFile, PackedLayer
from relay.archive.storage.archive_errors import ArchiveUnavailable
from relay.archive.storage.archive_finding import ArchiveFinding
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import StoredFile
from relay.archive.storage.storage_location import Tier
from relay.archive.sums.file_sums import FileSums
from relay.object_store.object_errors import ObjectDamaged, ObjectMissing, ObjectStoreError
from relay.packed_reads.packed_check import check_stored
from relay.packed_reads.packed_files import PackedFiles, boundary_before
from relay.packed_reads.packed_open_file import PackedOpenFile
from relay.packed_reads.packed_stored_file import PackedStoredFile


class TieredLayer(PackedLayer):
    """Plain files are as with any layer, and cost as much: only a binlog that has no file at its path is looked for elsewhere."""

    def __init__(self, packed: PackedFiles) -> None:
        self.packed = packed

    def stored(self, path: Path) -> StoredFile:
        """Implement `FileLayer.stored`. Raises also: ArchiveUnavailable."""
        try:
            return super().stored(path)
        except FileNotFoundError:
            if self.packed.place_of(path) is None:
                raise
        return PackedStoredFile(self, self.packed.open(path), self.packed.shared)

    def open_packed(self, path: Path, sums: FileSums | None) -> OpenFile:
        """Implement `PackedLayer.open_packed`. It contacts no bucket."""
        frames = self.packed.open(path)
        try:
            return PackedOpenFile(path, self.inode_of(path), sums, frames, self.packed.shared, self.size_of(path))
        except BaseException:
            frames.release()
            raise

    def check_packed(
        self, path: Path, file: ArchivedFile, on_progress: Callable[[int], None]
    ) -> Iterator[ArchiveFinding]:
        """Implement `PackedLayer.check_packed`."""
        place = file.place
        assert place is not None
        boundary = partial(boundary_before, path)
        if place.tier is Tier.COLD:
            with StoredFile.open(self, path.with_name(place.stored_name)) as stored:
                yield from check_stored(stored, file, place, self.packed.keys, boundary, on_progress)
            return
        try:
            source, where = self.packed.stored_object(path, place)
            yield from check_stored(source, file, place, self.packed.keys, boundary, on_progress, where)
        except (ObjectMissing, ObjectDamaged) as error:
            yield ArchiveFinding(file.name, 0, error.text, 0)
        except ObjectStoreError as error:
            raise ArchiveUnavailable(error.text, file=file.name, advice=error.advice) from error

    def inode_of(self, path: Path) -> int:
        """Implement `FileLayer.inode_of`: for a packed one a number that changes when it is repacked or moved."""
        try:
            return super().inode_of(path)
        except FileNotFoundError:
            place = self.packed.place_of(path)
            if place is None:
                raise
        return -1 - crc32(f"{place.tier}:{place.stored_name}:{place.digest}".encode())

    def size_of(self, path: Path) -> int:
        """Implement `FileLayer.size_of`: for a packed one the size of its plain binlog."""
        try:
            return super().size_of(path)
        except FileNotFoundError:
            return self._plain_size(path)

    def _plain_size(self, path: Path) -> int:
        place = self.packed.place_of(path)
        if place is None:
            raise FileNotFoundError(2, "No such file or directory", str(path))
        if place.plain_bytes >= 0:
            return place.plain_bytes
        frames = self.packed.open(path)
        try:
            return frames.open().plain_size
        finally:
            frames.release()

    def sizes(self, directory: Path, names: Iterable[str]) -> dict[str, int]:
        """Implement `FileLayer.sizes`."""
        wanted = list(names)
        try:
            return super().sizes(directory, wanted)
        except FileNotFoundError:
            return {name: self.size_of(directory / name) for name in wanted}
