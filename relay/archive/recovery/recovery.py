"""Brings an archive directory back to whole transactions, whatever happened to the process or the power.

Files are the truth. The catalog's checkpoint tells what is synced; everything after it is read again, CRCs included.

A recovery may itself be killed at any step. So its findings are in the ledger before the trace of them is removed, and what the next
one then finds again is recorded once.
"""

import os
import time
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import structlog

from protocol.binlog.header import FLAG_IN_USE
from protocol.binlog.layout import FIRST_EVENT, FLAGS
from protocol.errors import Malformed
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from protocol.position import binlog_number, is_binlog_name
from relay.archive.catalog.catalog import Catalog, CatalogNewer, CatalogUnreadable
from relay.archive.catalog.catalog_aside import finish_setting_aside, kept_catalogs, set_catalog_aside
from relay.archive.catalog.catalog_rows import DamagedPlace, LedgerRow, decoded_gtids, file_of
from relay.archive.catalog.generation_directories import ENDED
from relay.archive.catalog.ledger_copy import compare_copies
from relay.archive.catalog.ledger_text import LedgerLines
from relay.archive.catalog.purge_intent import forget_intent, read_intent, remove_files
from relay.archive.catalog.salvage import salvage
from relay.archive.gtids.gtid_recorder import recover_gtids
from relay.archive.gtids.gtid_state import GtidState
from relay.archive.recovery.file_recovery import recover_file
from relay.archive.recovery.placed_files import FoundPlaces, Placed, find_placed
from relay.archive.storage.archive_errors import PUT_BACK, ArchiveConflict
from relay.archive.storage.archived_file import ArchivedFile, SourceIdentity, describe_archived_file
from relay.archive.storage.files import (
    BESIDE_SUFFIXES,
    CATALOG_NAME,
    DAMAGED_INFIX,
    INDEX_NAME,
    LEDGER_TEXT_NAME,
    OWN_NAMES,
    PURGE_NAME,
    QUARANTINE_INFIX,
    TEMPORARY_SUFFIX,
    FileLayer,
    StoredFile,
    replace_file,
    write_all,
)
from relay.archive.storage.gtid_facts import (
    HEAD_DIFFERS,
    NOT_KNOWN,
    UNREADABLE,
    GtidChain,
    GtidEntry,
    GtidFacts,
    family_change,
)
from relay.archive.storage.ledger_kinds import (
    CATALOG_REMADE,
    CATALOG_SET_ASIDE,
    FILE_MISSING,
    NEWEST_SHORTENED,
    PLACE_UNREADABLE,
    PLAIN_SET_ASIDE,
    PURGED,
)
from relay.archive.storage.origin import Origin
from relay.archive.storage.rebuild_index import Progress
from relay.archive.storage.storage_location import GONE_SUFFIX, PLACE_SUFFIX, LocationNote
from relay.binlog_file.broken import wrong_magic
from relay.binlog_file.head import read_start
from relay.disk.file_calls import read_file
from relay.packed.packed_facts import plain_name

log = structlog.get_logger(__name__)

_LASTING: Final = frozenset({"foreign_file", "gap", "damaged", "cut_group", HEAD_DIFFERS, UNREADABLE, PLACE_UNREADABLE})
"""Findings that recur at every open: one ledger row is enough."""


@dataclass(slots=True)
class Recovered:
    """An archive's state after recovery: files by number, and what was found on the way (already in the ledger).

    `chain` is the state after the last sealed file. `directories`: names of those next to the files.
    """

    files: list[ArchivedFile]
    identity: SourceIdentity | None
    gtids: GtidState
    chain: GtidChain
    directories: list[str]
    origin: Origin | None = None
    damaged_places: list[DamagedPlace] = field(default_factory=list)
    checks: dict[int, float] = field(default_factory=dict)
    findings: list[LedgerRow] = field(default_factory=list)


class Recovery:
    """One recovery of one directory. Blocking: run it in a thread."""

    def __init__(self, directory: Path, layer: FileLayer, progress: Progress | None = None) -> None:
        self._directory = directory
        self._layer = layer
        self._progress = progress
        self._findings: list[LedgerRow] = []
        self._recorded = 0
        """The number of findings that are in the ledger."""
        self._damage = ""
        """The damage of the existing catalog; "": none was met."""
        self._began_again = False
        self._kept = ""
        """The name under which it was kept."""
        self._placed: Placed = {}
        self._notes: dict[str, LocationNote] = {}

    def run(self, *, force: bool = False) -> Recovered:
        """Recover. `force` reads every file again and rebuilds catalog rows and indexes (`archive rebuild`).

        A catalog that turns out to be damaged, at whatever step, is kept aside, and all begins again with a new one. So is, with
        `force` only, one that a newer version wrote. Raises: ArchiveConflict, ArchiveCorrupt, CatalogNewer, OSError, sqlite3.Error;
        CatalogUnreadable if the new one is damaged too.
        """
        try:
            return self._run(force)
        except (CatalogUnreadable, CatalogNewer) as error:
            if isinstance(error, CatalogNewer) and not force:
                raise
            del self._findings[self._recorded :]  # they are found again; those before are in ledger.jsonl
            self._damage = str(error)
            self._began_again = True
            return self._run(force)

    def _run(self, force: bool) -> Recovered:
        listing = self._layer.listed(self._directory)
        for name in listing.files:
            if name.endswith(TEMPORARY_SUFFIX):
                self._layer.unlink(self._directory / name)
        purged, unreadable = self._finish_purge()
        if purged:
            listing = self._layer.listed(self._directory)
        names = {name for name in listing.files if not name.endswith(BESIDE_SUFFIXES)}
        catalog, kept = self._open_catalog(names, force)
        try:
            self._compare_copies(catalog, kept, force)
            self._salvage(catalog)
            self._note_kept(catalog, kept)
            self._record(catalog)
            catalog.forget_files(purged)
            if unreadable:
                self._find("purge_unreadable", PURGE_NAME, -1, unreadable)
                self._record(catalog)
                forget_intent(self._layer, self._directory)
            catalogued = {file.name: file for file in catalog.files()}
            found = find_placed(self._layer, self._directory, listing.files, catalogued.values())
            self._placed, self._notes = found.placed, found.notes
            self._note_places(catalog, found)
            # Packed files are not read again: they were compared, byte for byte, when they were moved.
            known = {name: file for name, file in catalogued.items() if not force or name in self._placed}
            names |= self._placed.keys()
            held = self._held_names(names, known)
            self._note_foreign(listing.files, held)
            self._note_missing(catalog, held, catalogued)
            stored = self._stored_gtids(catalog) if not force or self._placed else {}
            files, changed = self._reconcile(catalog, held, known)
            if force:
                changed |= {file.name: (file, file.end) for file in files if file.place is not None}
            state, chain, entries = self._reconcile_gtids(files, changed, stored)
            self._record(catalog)
            if changed or entries or force:
                catalog.put_files((file for file, _trusted in changed.values()), entries, in_place_of_all=force)
            for file in files:
                before = catalogued[file.name].place if file.name in catalogued else None
                if file.place != before:
                    catalog.put_place(file.number, file.place)
            self._reconcile_index(files)
            if self._layer.exists(self._directory / PURGE_NAME):
                forget_intent(self._layer, self._directory)
            return Recovered(
                files,
                catalog.identity(),
                state,
                chain,
                listing.directories,
                catalog.origin(),
                catalog.damaged_places(),
                catalog.checks(),
                self._findings,
            )
        finally:
            catalog.close()

    def _finish_purge(self) -> tuple[list[LedgerRow], str]:
        """Remove the files whose removal had begun; return their ledger rows, and a text if the intent cannot be read."""
        try:
            rows = read_intent(self._layer, self._directory)
        except ValueError as error:
            return [], f"The purge that had begun is left as it is: {error}."
        if rows:
            log.warning(
                "purge_resumed",
                files=len(rows),
                first=rows[0].file,
                last=rows[-1].file,
                note="it was ordered and not finished; the archive opens when they are removed",
            )
            remove_files(self._layer, self._directory, [row.file for row in rows])
        return rows, ""

    def _find(self, kind: str, file: str, offset: int, text: str) -> None:
        self._findings.append(LedgerRow(time.time(), kind, file, offset, text))

    def _record(self, catalog: Catalog) -> None:
        """Write the findings into the ledger before the trace of them is removed: a kill in between must not hide them."""
        for row in self._findings[self._recorded :]:
            if row.kind in _LASTING:
                catalog.add_ledger_once(row)
            else:
                catalog.add_ledger(row)
            self._recorded += 1

    def _open_catalog(self, names: set[str], force: bool) -> tuple[Catalog, dict[str, str]]:
        """Return the catalog, and those that are kept aside with the reason."""
        path = self._directory / CATALOG_NAME
        finish_setting_aside(self._directory, names)
        reasons = dict.fromkeys(kept_catalogs(names), "An earlier start could not read the catalog.")
        damage, self._damage = self._damage, ""
        if force and os.path.lexists(path) and not _is_usable(path):
            damage = "The catalog may not be read or written by this user."
        if damage and os.path.lexists(path):
            self._kept = set_catalog_aside(path)
            reasons[self._kept] = damage
        catalog = Catalog.open(path, self._layer)
        try:
            if not catalog.is_new and (found := catalog.damage()) is not None:
                raise CatalogUnreadable(f"the catalog is damaged: {found}", file=CATALOG_NAME)
        except BaseException:
            catalog.close()
            raise
        return catalog, reasons

    def _compare_copies(self, catalog: Catalog, kept: dict[str, str], force: bool) -> None:
        """Make the ledger in the catalog and its copy as text say the same."""

        def note_lost_catalog(lines: LedgerLines) -> None:
            # Noted before it is filled: a kill in between must not hide it. One that was kept aside is reported by `_note_kept`.
            if all(any(f'"{name}"'.encode() in line for _offset, line in lines.lines) for name in kept):
                text = f"{CATALOG_NAME} was gone or empty. It was made again from the binlogs and {LEDGER_TEXT_NAME}."
                self._find(CATALOG_REMADE, CATALOG_NAME, -1, text)
                self._record(catalog)

        compare_copies(
            catalog, self._directory, self._layer, self._find, note_lost_catalog, thorough=force or catalog.is_new
        )

    def _salvage(self, catalog: Catalog) -> None:
        """Copy the sound rows of a catalog that was just set aside, which need not be rebuilt."""
        if self._kept:
            gone = {row.file for row in catalog.ledger() if row.kind in (PURGED, FILE_MISSING)}
            salvage(self._directory / self._kept, catalog, gone)
            self._kept = ""

    def _note_kept(self, catalog: Catalog, reasons: dict[str, str]) -> None:
        """Note each catalog that is kept aside and not in the ledger: a recovery that was killed may have kept it."""
        if not reasons:
            return
        recorded = {row.file for row in catalog.ledger() if row.kind == CATALOG_SET_ASIDE}
        for name in sorted(reasons.keys() - recorded):
            self._find(
                CATALOG_SET_ASIDE,
                name,
                -1,
                f"{reasons[name]} It was kept as {name}; a new one was made from the binlogs and {LEDGER_TEXT_NAME}.",
            )

    def _held_names(self, names: set[str], known: dict[str, ArchivedFile]) -> dict[int, str]:
        """Return the existing binlogs, by number, in ascending order."""
        held = {file.number: name for name, file in known.items() if name in names}
        for name in filter(is_binlog_name, sorted(names.difference(known))):
            other = held.setdefault(binlog_number(name), name)
            if other != name:
                raise ArchiveConflict(
                    f"{other} and {name} both claim number {binlog_number(name)} in the source's sequence",
                    file=name,
                    advice="Move the one that is not this source's out of the archive directory.",
                )
        return dict(sorted(held.items()))

    def _note_places(self, catalog: Catalog, found: FoundPlaces) -> None:
        """Note plain files that are in the way of packed ones, and notes that cannot be read."""
        for name, why in found.not_whole.items():
            self._find(
                PLAIN_SET_ASIDE,
                name,
                0,
                f"{name} is in the place of the packed binlog and is not whole: {why}. It is kept as {name}{QUARANTINE_INFIX}0, and "
                f"the packed one is served, as before. To use another file in its place: remove {self._placed[name].stored_name} and "
                f"{name}{PLACE_SUFFIX} first.",
            )
        self._record(catalog)
        for name in found.not_whole:
            self._keep_aside(name)
        for name, why in found.unreadable.items():
            self._find(
                PLACE_UNREADABLE,
                name,
                0,
                f"{name}{PLACE_SUFFIX}, which says where the binlog is, cannot be read: {why}. If the binlog is anywhere, it is in the "
                f"bucket; it is not served. Stop the relay, put the bucket's own {name}{PLACE_SUFFIX} in its place, and start it.",
            )

    def _note_foreign(self, names: list[str], held: dict[int, str]) -> None:
        mine, there = set(held.values()), set(names)
        strange = [
            name
            for name in names
            if (name.rpartition(".")[0] if name.endswith(BESIDE_SUFFIXES) else plain_name(name) or name) not in mine
            and name not in OWN_NAMES
        ]
        for name in sorted(strange):
            if name.endswith((TEMPORARY_SUFFIX, GONE_SUFFIX)) or name.startswith(
                (CATALOG_NAME, f"{LEDGER_TEXT_NAME}.corrupt-")
            ):
                continue
            binlog = name.rpartition(".")[0]
            if name.endswith(BESIDE_SUFFIXES) and is_binlog_name(binlog):
                # A note is never removed: its binlog may be in the bucket, and nowhere else.
                if binlog + PLACE_SUFFIX not in there:
                    self._layer.unlink(self._directory / name)
                continue
            if QUARANTINE_INFIX in name or DAMAGED_INFIX in name:
                continue
            self._find("foreign_file", name, -1, f"{name} is not part of the archive and is left alone.")

    def _note_missing(self, catalog: Catalog, held: dict[int, str], known: dict[str, ArchivedFile]) -> None:
        lost = [file for file in known.values() if held.get(file.number) != file.name]
        if lost:
            self._record(catalog)
            for file in lost:
                text = f"{file.name} ({file.end} bytes) was archived and is no longer there. {PUT_BACK}"
                self._find(FILE_MISSING, file.name, file.end, text)
            # In one step: known to the catalog and lost, or forgotten and in the ledger.
            catalog.forget_files(self._findings[self._recorded :])
            self._recorded = len(self._findings)
        for (before, _name), (after, name) in pairwise(held.items()):
            if after != before + 1:
                self._find(
                    "gap",
                    name,
                    FIRST_EVENT,
                    f"{after - before - 1} file(s) before {name} are not held; none is served past it. {PUT_BACK}",
                )

    def _reconcile(
        self, catalog: Catalog, held: dict[int, str], known: dict[str, ArchivedFile]
    ) -> tuple[list[ArchivedFile], dict[str, tuple[ArchivedFile, int]]]:
        """Return all files, and by name those that were examined, with the offset up to which they were known to be synced."""
        files = []
        changed = {}
        last = next(reversed(held.values()), "")
        on_disk = (name for name in held.values() if name in known and name not in self._placed)
        sizes = self._layer.sizes(self._directory, on_disk)
        for name in held.values():
            file = known.get(name)
            place = self._placed.get(name)
            if place is not None:
                if file is None or not file.sealed:
                    file = self._noted_file(name)
                    changed[name] = (file, file.end)
                file.place = place
                files.append(file)
                continue
            if file is not None and file.place is not None:
                file = replace(file, place=None)
            size = sizes.get(name, 0)
            if file is not None and file.sealed and size >= file.end:
                files.append(file)
                continue
            newest = name == last
            if file is not None and newest and size < file.end:
                newest = ENDED not in catalog.count_ledger()
                if newest:
                    text = f"{name} has {size} bytes, {file.end} were archived. What is left is kept up to its last whole transaction; "
                    self._find(
                        NEWEST_SHORTENED, name, size, f"{text}the source is asked for the rest again. Look at the disk."
                    )
            if file is not None and (file.sealed or size < file.end or name != last):
                # Serving it by the catalog could end inside an event: after a new scan, it is served up to its last group.
                file = None
            fresh = file is None
            if file is None:
                described = self._describe(name, newest)
                if described is None:
                    continue
                file = described
            trusted = FIRST_EVENT if fresh else file.end
            if not file.damaged:
                recover_file(
                    self._directory,
                    self._layer,
                    file,
                    newest=newest,
                    find=self._find,
                    record=partial(self._record, catalog),
                    progress=self._progress,
                    from_start=fresh,
                )
            if not newest:
                file.sealed = True
            files.append(file)
            changed[name] = (file, trusted)
        return files, changed

    def _reconcile_gtids(
        self,
        files: list[ArchivedFile],
        changed: dict[str, tuple[ArchivedFile, int]],
        stored: dict[int, GtidFacts | None],
    ) -> tuple[GtidState, GtidChain, list[GtidEntry]]:
        """Return the GTIDs of all files; those whose facts are not stored are read. Also return the rows that the catalog does not
        have."""
        chain = GtidChain()
        entries = []
        known = []
        behind_damage = False
        flavour = ""
        for file in files:
            changed_family = family_change(file.name, file.flavour, flavour)
            if changed_family is not None:
                self._find(UNREADABLE, file.name, FIRST_EVENT, changed_family)
            flavour = file.flavour or flavour
            facts = None if file.name in changed and file.place is None else stored.get(file.number)
            if behind_damage and facts is not None and facts.before is None:
                facts = None  # the file before it cannot supply the state any more: its own head names it
            behind_damage = file.damaged
            is_new = facts is None or file.name in changed
            if facts is None:
                facts = self._read_gtids(file, changed.get(file.name, (file, FIRST_EVENT))[1])
                difference = chain.difference(file.number, facts.before)
                if difference is not None:
                    self._find(HEAD_DIFFERS, file.name, FIRST_EVENT, difference)
            if is_new and file.sealed:
                entries.append(chain.entry(file.number, facts))
            known.append(facts)
            if file.sealed:
                chain.add(file.number, facts)
        state = GtidState()
        state.load(files, known)
        return state, chain, entries

    def _stored_gtids(self, catalog: Catalog) -> dict[int, GtidFacts | None]:
        """Return the stored GTIDs; None for unusable ones, which are reported once, as any damage, and read from the file then."""
        stored = catalog.gtids()
        if None in stored.values() and not self._began_again:
            raise CatalogUnreadable("the catalog is damaged: a row of gtids was changed", file=CATALOG_NAME)
        return stored

    def _read_gtids(self, file: ArchivedFile, trusted: int) -> GtidFacts:
        if file.place is not None:
            return self._noted_gtids(file)
        progress = self._progress
        on_progress = None
        if progress is not None and trusted < file.end:
            on_progress = partial(progress, file.name)
        try:
            if file.end > FIRST_EVENT:
                return recover_gtids(self._layer, self._directory / file.name, file, trusted, on_progress)
            if file.damaged:
                return NOT_KNOWN
            return GtidFacts(None, GtidSet() if file.flavour == "mysql" else GtidList(), 0)
        except Malformed as error:
            text = f"{error}; no replica that asks by GTID gets this file."
            self._find(UNREADABLE, file.name, FIRST_EVENT, text)
            return NOT_KNOWN

    def _noted_file(self, name: str) -> ArchivedFile:
        """Return a packed file that the catalog does not know, as NAME.place describes it."""
        note = self._notes.get(name)
        try:
            if note is None:
                raise ValueError(f"there is no sound {name}{PLACE_SUFFIX}")
            file = file_of(note.file_row)
            if file.name != name:
                raise ValueError(f"{name}{PLACE_SUFFIX} is that of {file.name}")
            return file
        except (TypeError, ValueError) as error:
            how = "Unpack it (`zstd -d`), stop the relay, put the binlog in its place and run `archive rebuild`."
            self._find("damaged", name, 0, f"{error}: what is packed of {name} cannot be served. {how}")
        return ArchivedFile(name, binlog_number(name), 0, True, 0, "", 0, 0, "", damaged=True)

    def _noted_gtids(self, file: ArchivedFile) -> GtidFacts:
        note = self._notes.get(file.name)
        facts = decoded_gtids(*note.gtids) if note is not None and note.gtids is not None else None
        if facts is None:
            text = f"What GTIDs are in {file.name}, which is packed, is not known; no replica that asks by GTID gets this file."
            self._find(UNREADABLE, file.name, FIRST_EVENT, text)
        return facts or NOT_KNOWN

    def _describe(self, name: str, newest: bool) -> ArchivedFile | None:
        with StoredFile.open(self._layer, self._directory / name) as stored:
            start = read_start(stored)
        try:
            wrong = wrong_magic(start.magic)
            if wrong is not None:
                raise Malformed(f"{name} {wrong[1]}")
            first = start.event[FLAGS.start] if start.is_whole else 0
            if not first & FLAG_IN_USE:
                return describe_archived_file(name, start.event)
            # A copy of a file that the source is writing, or was writing when it crashed.
            finished = bytearray(start.event)
            finished[FLAGS.start] = first & ~FLAG_IN_USE
            described = describe_archived_file(name, bytes(finished))
            self._put_byte(name, FIRST_EVENT + FLAGS.start, finished[FLAGS.start])
            return described
        except Malformed as error:
            if newest:
                # Files appear whole with their header. It must not become the newest file, nor be in the place of that.
                kept = self._keep_aside(name)
                self._find("foreign_file", name, 0, f"{error}; it is no part of the archive and was kept as {kept}.")
                return None
            self._find("damaged", name, 0, f"{error}; nothing is served from here on. {PUT_BACK}")
            return ArchivedFile(
                name=name,
                number=binlog_number(name),
                end=0,
                sealed=True,
                created=0,
                server_version="",
                server_id=0,
                checksum=0,
                flavour="",
                damaged=True,
            )

    def _put_byte(self, name: str, offset: int, value: int) -> None:
        fd = self._layer.open_alone(self._directory / name)
        try:
            write_all(self._layer, fd, [bytes([value])], offset, 1)
            self._layer.sync_data(fd)
        finally:
            self._layer.close(fd)

    def _keep_aside(self, name: str) -> str:
        """Give a file another name, under which nothing is looked for; return that name. Raises: OSError."""
        serial = 0
        while self._layer.exists(
            self._directory / (kept := f"{name}{QUARANTINE_INFIX}0" + (f"-{serial}" if serial else ""))
        ):
            serial += 1
        self._layer.rename(self._directory / name, self._directory / kept)
        self._layer.sync_directory(self._directory)
        return kept

    def _reconcile_index(self, files: list[ArchivedFile]) -> None:
        path = self._directory / INDEX_NAME
        wanted = "".join(f"./{file.name}\n" for file in files).encode()
        try:
            if read_file(path) == wanted:
                return
        except FileNotFoundError:
            if not wanted:
                return
        replace_file(self._layer, path, wanted)


def _is_usable(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and os.access(path, os.R_OK | os.W_OK)
