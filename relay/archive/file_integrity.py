"""The integrity of a generation's files: digests and sums, what was found to be damaged, and the times of checks."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from relay.archive.catalog.catalog_rows import DamagedPlace, LedgerRow
from relay.archive.catalog.catalog_thread import CatalogThread
from relay.archive.read.damaged_files import DamagedFiles
from relay.archive.read.held_files import HeldFiles
from relay.archive.recovery.digest import DigestThread
from relay.archive.recovery.recovery import Recovered
from relay.archive.storage.archive_errors import ArchiveDamaged
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import FileLayer
from relay.archive.storage.ledger_kinds import DAMAGED, SOUND_AGAIN
from relay.archive.sums.summed_files import SummedFiles

log = structlog.get_logger(__name__)


class FileIntegrity:
    """The integrity of one generation. All on the event loop, except for the digests' thread.

    held: its files. note: adds (kind, file, offset, text) to the ledger. damage_advice: the advice for files that are not what was
    archived.
    """

    def __init__(
        self,
        directory: Path,
        layer: FileLayer,
        held: HeldFiles,
        recovered: Recovered,
        catalog: CatalogThread,
        note: Callable[[str, str, int, str], None],
        damage_advice: str,
    ) -> None:
        self._directory = directory
        self._held = held
        self._catalog = catalog
        self._note = note
        self._damage_advice = damage_advice
        self._loop = asyncio.get_running_loop()
        self.damaged_files = DamagedFiles(recovered.damaged_places, self._damage_found)
        """The damage that readers or the scrub have met."""
        self.checks = recovered.checks
        """By a sealed file's number, the time when all of it was last found to be what was archived, in seconds since 1970."""
        self.summed = SummedFiles(directory, layer, note, self.make_sums)
        """The sums that are compared when files are read whose events have no checksums."""
        self._digests = DigestThread(layer, self._digest_made, self._digest_failed)

    def start(self) -> None:
        """Start with the digests that are missing."""
        self._digests.start()
        for file in self._held.all:
            if file.sealed and file.place is None and not file.damaged and (file.digest is None or not file.checksum):
                self.file_sealed(file)

    def stop(self) -> None:
        """End the digests' thread. Blocking."""
        self._digests.stop()

    # --- findings ----------------------------------------------------------------------------------------------------

    def file_sealed(self, file: ArchivedFile) -> None:
        """Note that nothing is added to the file any more: its digest is due."""
        self._digests.add(self._directory / file.name, file)

    def make_sums(self, name: str) -> None:
        """Create the missing sums of a sealed file's blocks, if its digest agrees."""
        file = self._held.get(name)
        if file is not None and file.sealed and file.place is None and not file.checksum:
            self._digests.add(self._directory / name, file, sums_lack=True)

    def file_was_checked(self, file: ArchivedFile) -> None:
        """Note that all bytes of a sealed file were found to be what was archived, just now."""
        now, number, name = time.time(), file.number, file.name
        self.checks[number] = now
        self._catalog.submit(lambda catalog: catalog.note_check(number, now))
        if self.damaged_files.forget(name):
            self._catalog.submit(lambda catalog: catalog.forget_damage(name))
            self._note(SOUND_AGAIN, name, -1, f"All of {name} was read and is what was archived.")
            self._held.moved()

    def file_was_repaired(self, file: ArchivedFile, row: LedgerRow) -> None:
        """Note that the archived bytes are in place again, as `row`, which goes into the ledger, says."""
        name = file.name
        log.warning("archive_ledger", kind=row.kind, file=name, offset=row.offset, text=row.text)
        self._catalog.submit(lambda catalog: catalog.add_ledger(row))
        if self.damaged_files.forget(name):
            self._catalog.submit(lambda catalog: catalog.forget_damage(name))
        self.checks[file.number] = row.time
        if file.place is not None:
            # It is on the disk as it was received again; the packed one is removed at the next start, or when this one is packed.
            number, file.place = file.number, None
            self._catalog.submit(lambda catalog: catalog.put_place(number, None))
        self.summed.forget(name)
        self._held.moved()

    # --- reports -----------------------------------------------------------------------------------------------------

    def _damage_found(self, place: DamagedPlace, _: ArchiveDamaged) -> None:
        self._catalog.submit(lambda catalog: catalog.add_damage(place))
        ends = f"; streams end at {place.boundary}" if place.boundary else "; nothing of it is served"
        self._note(DAMAGED, place.file, place.offset, f"{place.text}{ends}. {self._damage_advice}")
        self._held.moved()

    def _digest_made(self, name: str, digest: str) -> None:
        self._catalog.submit(lambda catalog: catalog.set_digest(name, digest))
        self._loop.call_soon_threadsafe(self._note_digest, name, digest)

    def _note_digest(self, name: str, digest: str) -> None:
        file = self._held.get(name)
        if file is not None:
            file.digest = digest

    def _digest_failed(self, name: str, error: Exception) -> None:
        self._loop.call_soon_threadsafe(self._note_failed_digest, name, error)

    def _note_failed_digest(self, name: str, error: Exception) -> None:
        if self._held.get(name) is None:
            return  # it was purged before its turn came
        if isinstance(error, ArchiveDamaged):
            self.damaged_files.report(error)
            return
        log.error("archive_digest_failed", file=name, error=str(error))
        self._catalog.add_ledger("digest_failed", name, -1, str(error))
