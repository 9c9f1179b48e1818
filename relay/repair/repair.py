"""Repairing an archive: the files that need it are fetched, compared and put in place, with a row in the ledger for each.

With the relay stopped all can be repaired. In a running one, only damage that was found since it started: files that recovery took
out, or has shortened, are read again at the next start only.
"""

import asyncio
import json
import os
import sqlite3
import stat
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog

from protocol.errors import ExitCode, RelayError
from protocol.position import binlog_number
from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.generation import Generation
from relay.archive.recovery.recovery import Recovery
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.directory_lock import take_lock
from relay.archive.storage.files import CATALOG_NAME, FileLayer
from relay.archive.storage.ledger_kinds import FILE_MISSING, PURGED
from relay.archive.storage.storage_location import Tier
from relay.repair.file_origin import FileOrigin, following_name
from relay.repair.repaired_file import WantedFile, empty_scratch, put_in_place
from relay.upstream.source.source_errors import UpstreamError

log = structlog.get_logger(__name__)

REPAIRED: Final = "repaired"
"""The ledger's kind of a file that was fetched again and put in place."""
_MOST_MISSING: Final = 10_000


@dataclass(frozen=True, slots=True)
class RepairOutcome:
    """The result for one file. `kept`: the name under which the damaged bytes are, None: there were none, or it failed."""

    file: str
    is_repaired: bool
    text: str
    kept: str | None = None


class RepairRefused(RelayError):
    """Nothing was begun; `str()` gives the reason and the next step."""

    exit_code = ExitCode.WRONG_USE
    full_stop = "."


# --- the wanted files -----------------------------------------------------------------------------------------------------


def damaged_in(directory: Path) -> list[WantedFile]:
    """Return the files of one generation that are known to be damaged or missing, by number. Blocking.

    Raises: CatalogUnreadable; sqlite3.Error; OSError.
    """
    catalog = Catalog.open_read_only(directory / CATALOG_NAME)
    try:
        files = catalog.files()
        places = {place.file for place in catalog.damaged_places()}
        lost = _lost(catalog.ledger()) - {file.name for file in files}
    finally:
        catalog.close()
    # Those before the oldest one that is left; all others are holes in the numbers.
    wanted = [
        WantedFile(name, None)
        for name in sorted(lost, key=binlog_number)
        if not files or binlog_number(name) < files[0].number
    ]
    expected: str | None = None
    for file in files:
        while expected is not None and expected != file.name and len(wanted) < _MOST_MISSING:
            wanted.append(WantedFile(expected, None))
            expected = following_name(expected)
        if file.sealed and (file.damaged or file.name in places or _is_lost(directory, file)):
            wanted.append(WantedFile.of(file))
        expected = following_name(file.name)
    return wanted


def _lost(ledger: Sequence[LedgerRow]) -> set[str]:
    """Return what was found missing, and neither purged nor put back since."""
    lost: set[str] = set()
    for row in ledger:
        if row.kind == FILE_MISSING:
            lost.add(row.file)
        elif row.kind in (PURGED, REPAIRED):
            lost.discard(row.file)
    return lost


def _is_lost(directory: Path, file: ArchivedFile) -> bool:
    """Return whether bytes are missing on the disk. No bucket is contacted here."""
    if file.tier is Tier.OBJECT:
        return False
    try:
        facts = (directory / (file.name if file.place is None else file.place.stored_name)).stat()
    except FileNotFoundError:
        return True
    return not stat.S_ISREG(facts.st_mode) or facts.st_size < file.stored_bytes


def chosen(directory: Path, names: Sequence[str]) -> list[WantedFile]:
    """Return these files of one generation. Blocking. Raises: RepairRefused for one that grows, or is none; as `damaged_in`."""
    catalog = Catalog.open_read_only(directory / CATALOG_NAME)
    try:
        held = {file.name: file for file in catalog.files()}
    finally:
        catalog.close()
    missing = {file.name: file for file in damaged_in(directory)}
    wanted = []
    for name in names:
        file = held.get(name)
        if file is None and name not in missing:
            raise RepairRefused(
                f"{name} is no file of the archive in {directory}. 'binlog-relay archive list' shows them"
            )
        if file is not None and not file.sealed:
            raise RepairRefused(
                f"{name} still grows: it is repaired when it is complete. Is it damaged, stop the relay, run "
                "'binlog-relay archive rebuild' and start it: the source sends again what is cut off"
            )
        wanted.append(WantedFile.of(file) if file is not None else missing[name])
    return wanted


# --- one file -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Replaced:
    file: ArchivedFile
    kept: str | None
    row: LedgerRow


async def _replace(directory: Path, wanted: WantedFile, origins: Sequence[FileOrigin], layer: FileLayer) -> _Replaced:
    """Replace the file from the first of `origins` that has it. Raises: UpstreamError; ArchiveError; OSError; RepairRefused if
    another file came."""
    for number, origin in enumerate(origins, 1):
        try:
            return await _replace_from(directory, wanted, origin, layer)
        except _EXPECTED as error:
            if number == len(origins):
                raise
            log.info("repair_looks_elsewhere", file=wanted.name, origin=origin.where, why=str(error))
    raise RepairRefused(f"nobody is known who has {wanted.name}. Name a copy of the archived one with --from")


async def _replace_from(directory: Path, wanted: WantedFile, origin: FileOrigin, layer: FileLayer) -> _Replaced:
    """Replace the file from one origin. Raises: as `_replace`."""
    scratch = await asyncio.to_thread(empty_scratch, directory, layer)
    remade = await origin.fetch(wanted.name, scratch)
    difference = wanted.difference(remade)
    if difference is not None:
        raise RepairRefused(
            f"{origin.where} has another {wanted.name}: {difference}. Nothing was changed. Name a copy of the archived one with --from"
        )
    kept = await asyncio.to_thread(put_in_place, directory, remade, layer)
    before = f"; the bytes that were there are kept in {kept}" if kept is not None else ""
    proof = "the digest is the archived one's" if wanted.digest is not None else f"digest {remade.digest}"
    text = f"{wanted.name} was fetched again from {origin.where}, {remade.facts.end} bytes, {proof}{before}."
    details = {"from": origin.where, "bytes": remade.facts.end, "digest": remade.digest, "kept": kept}
    return _Replaced(remade.facts, kept, LedgerRow(time.time(), REPAIRED, wanted.name, -1, text, json.dumps(details)))


def _failed(name: str, error: Exception) -> RepairOutcome:
    if isinstance(error, UpstreamError):
        advice = f" {error.advice}" if error.advice else ""
        return RepairOutcome(name, False, f"{error.what}.{advice}")
    if isinstance(error, OSError):
        return RepairOutcome(name, False, f"{error.filename or name}: {error.strerror}.")
    return RepairOutcome(name, False, f"{str(error).removesuffix('.')}.")


_EXPECTED: Final = (UpstreamError, ArchiveError, OSError, RepairRefused)


# --- with the relay stopped -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class StoppedRepair:
    """The repair of one generation's directory while no relay has it open. also: further origins for what `origin` does not supply.
    findings: of the recovery after it."""

    directory: Path
    origin: FileOrigin
    also: Sequence[FileOrigin] = ()
    layer: FileLayer = field(default_factory=FileLayer)
    findings: list[LedgerRow] = field(default_factory=list)

    async def run(self, names: Sequence[str] = ()) -> AsyncIterator[RepairOutcome]:
        """Repair these files, or all that are known to be damaged, one by one.

        Raises: ArchiveLocked while a relay runs; RepairRefused; CatalogUnreadable; ArchiveError; OSError.
        """
        lock = await asyncio.to_thread(take_lock, self.directory, self.layer)
        try:
            wanted = await asyncio.to_thread(chosen, self.directory, names) if names else None
            if wanted is None:
                wanted = await asyncio.to_thread(damaged_in, self.directory)
            rebuilds = False
            for one in wanted:
                try:
                    replaced = await _replace(self.directory, one, [self.origin, *self.also], self.layer)
                except _EXPECTED as error:
                    yield _failed(one.name, error)
                    continue
                # The catalog's end of it is the end of what was left of it: the file is read again as a new one.
                reads_again = one.end is None
                await asyncio.to_thread(self._note, replaced.row, reads_again)
                rebuilds = rebuilds or reads_again
                yield RepairOutcome(one.name, True, replaced.row.text, replaced.kept)
            if rebuilds:
                recovered = await asyncio.to_thread(Recovery(self.directory, self.layer).run)
                self.findings = recovered.findings
        finally:
            os.close(lock)

    def _note(self, row: LedgerRow, reads_again: bool) -> None:
        catalog = Catalog.open(self.directory / CATALOG_NAME, self.layer)
        try:
            if reads_again:
                catalog.forget_files([row])
            else:
                catalog.forget_damage(row.file)
                catalog.add_ledger(row)
        finally:
            catalog.close()


# --- in a running relay ---------------------------------------------------------------------------------------------------


class RunningRepair:
    """The repair of the generation that is being written, while its replicas continue. On the event loop."""

    def __init__(self, layer: FileLayer | None = None) -> None:
        self._layer = layer or FileLayer()
        self._busy = asyncio.Lock()

    async def run(
        self, generation: Generation, origins: Sequence[FileOrigin], names: Sequence[str] = ()
    ) -> list[RepairOutcome]:
        """Repair these files, or all that were found damaged, each from the first that has it. Raises: RepairRefused."""
        if self._busy.locked():
            raise RepairRefused("another repair is at work: wait for its end")
        async with self._busy:
            chosen_names = list(names) or [place.file for place in generation.damaged_files.all]
            files = [self._file(generation, name) for name in chosen_names]
            return [await self._one(generation, file, origins) for file in files]

    @staticmethod
    def _file(generation: Generation, name: str) -> ArchivedFile:
        file = generation.file(name)
        if file is None:
            raise RepairRefused(
                f"the relay has no file {name}. Is it missing, stop it and run 'binlog-relay archive repair'"
            )
        if not file.sealed:
            raise RepairRefused(f"{name} still grows: it is repaired when it is complete")
        if file.damaged:
            raise RepairRefused(
                f"{name} was damaged when the relay started: stop it and run 'binlog-relay archive repair'"
            )
        return file

    async def _one(self, generation: Generation, file: ArchivedFile, origins: Sequence[FileOrigin]) -> RepairOutcome:
        try:
            replaced = await _replace(generation.directory, WantedFile.of(file), origins, self._layer)
        except _EXPECTED as error:
            return _failed(file.name, error)
        except sqlite3.Error as error:
            return RepairOutcome(file.name, False, f"the catalog of what was fetched: {error}.")
        generation.integrity.file_was_repaired(file, replaced.row)
        return RepairOutcome(file.name, True, replaced.row.text, replaced.kept)
