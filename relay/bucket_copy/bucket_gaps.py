"""Binlogs that are missing in the middle of a copy, and what is restored then."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from protocol.position import binlog_number, is_binlog_name
from relay.archive.storage.files import LEDGER_TEXT_NAME
from relay.archive.storage.ledger_kinds import PURGED
from relay.bucket_copy.bucket_content import BucketContent, BucketGeneration
from relay.bucket_copy.checked_copy import CheckedCopy
from relay.bucket_copy.mirror_errors import RestoreRefused
from relay.bucket_copy.mirror_parts import covered_to
from relay.disk.kept_json import kept_json
from relay.object_store.object_errors import ObjectMissing
from relay.object_store.object_store import ObjectStore

_LISTED: Final = "is listed in the manifest, and was removed from the bucket"
_MOST_LACKING: Final = 1_000_000
LEFT_OUT: Final = "mirror_left_out"
"""A binlog was not copied because it was damaged."""
_WHY: Final = {PURGED: "was purged before it was copied", LEFT_OUT: "was damaged, so it was not copied"}
_SHOWN: Final = 20


class HolesWanted(StrEnum):
    """The part of a copy with holes that is restored. BEFORE: up to the first one; BEHIND: from the last one on; KEEP: all that is
    there."""

    REFUSE = "refuse"
    BEFORE = "before"
    BEHIND = "behind"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class BucketHole:
    """A binlog that is not there as a whole, though one after it is. folder: of its generation. size: None: unknown. in_parts: so
    many of its first bytes are there. why: half a sentence, or empty."""

    folder: str
    file: str
    size: int | None
    in_parts: int
    why: str

    @property
    def text(self) -> str:
        """The text for people."""
        size = "its size is not known" if self.size is None else f"{self.size} bytes"
        parts = f", the first {self.in_parts} are there" if self.in_parts else ""
        why = f"; it {self.why}" if self.why else ""
        return f"{self.folder}{self.file} ({size}{parts}{why})"


def holes_text(holes: list[BucketHole]) -> str:
    """Return the first ones by name, and their number."""
    named = ", ".join(hole.text for hole in holes[:_SHOWN])
    return named if len(holes) <= _SHOWN else f"{named} and {len(holes) - _SHOWN} more"


def holes_of(store: ObjectStore, copy: CheckedCopy) -> list[BucketHole]:
    """Return the holes, the oldest first. Blocking. Raises: RestoreRefused; ObjectStoreError."""
    found: list[BucketHole] = []
    generations = copy.content.generations
    for place, generation in enumerate(generations):
        listed = copy.listed(generation).files
        found += _holes(store, generation, listed, is_last=place == len(generations) - 1)
    return found


def removed_oldest(copy: CheckedCopy) -> list[str]:
    """Return the listed binlogs before all existing ones: a rule of the bucket removed them, or an operator did."""
    gone: list[str] = []
    for generation in copy.content.generations:
        there = [binlog_number(file) for file in (*generation.files, *generation.parts)]
        listed = sorted(copy.listed(generation).files, key=binlog_number)
        gone += [generation.folder + file for file in listed if not there or binlog_number(file) < min(there)]
        if there:
            return gone
    return gone


def trimmed(content: BucketContent, holes: list[BucketHole], wanted: HolesWanted) -> BucketContent:
    """Return the part that must be restored."""
    if not holes or wanted in (HolesWanted.REFUSE, HolesWanted.KEEP):
        return content
    hole = holes[0] if wanted is HolesWanted.BEFORE else holes[-1]
    place = next(number for number, one in enumerate(content.generations) if one.folder == hole.folder)
    at = content.generations[place]
    if wanted is HolesWanted.BEFORE:
        kept = replace(
            at,
            files=[file for file in at.files if binlog_number(file) < binlog_number(hole.file)],
            parts={file: parts for file, parts in at.parts.items() if file == hole.file},
        )
        return replace(content, generations=(*content.generations[:place], kept))
    # The earlier generations stay for their ledgers, without their binlogs.
    emptied = [replace(one, files=[], parts={}) for one in content.generations[:place]]
    kept = replace(
        at,
        files=[file for file in at.files if binlog_number(file) > binlog_number(hole.file)],
        parts={file: parts for file, parts in at.parts.items() if binlog_number(file) > binlog_number(hole.file)},
    )
    return replace(content, generations=(*emptied, kept, *content.generations[place + 1 :]))


def _holes(
    store: ObjectStore, generation: BucketGeneration, listed: Collection[str], *, is_last: bool
) -> Iterator[BucketHole]:
    names = {binlog_number(file): file for file in (*generation.parts, *generation.files)}
    whole = {binlog_number(file) for file in generation.files}
    if not names:
        if is_last and listed:
            # All of it was removed: the generation before it is not the archive's end.
            yield from (
                BucketHole(generation.folder, file, None, 0, _LISTED) for file in sorted(listed, key=binlog_number)
            )
        return
    newest = max(names)
    if newest - min(names) > len(names) + _MOST_LACKING:
        raise RestoreRefused(
            f"{store.url(generation.folder)} has {names[min(names)]} and {names[newest]}: more than {_MOST_LACKING} binlogs would lack "
            "between them. One of them is not of this archive: remove it from the bucket."
        )
    behind = sorted(binlog_number(file) for file in listed if binlog_number(file) > newest)
    lacking = [number for number in range(min(names), newest + 1) if number not in whole]
    if is_last and lacking and lacking[-1] == newest and not behind:
        lacking.pop()  # the one that grew
    names |= {binlog_number(file): file for file in listed}
    told = _told(store, generation) if lacking or not is_last else {}
    if not is_last:
        lacking += sorted(number for number in map(binlog_number, told) if number > newest)
    by_number = {binlog_number(file): file for file in told}
    lacking = sorted({*lacking, *behind})
    for number in lacking:
        file = names.get(number) or by_number.get(number) or _named_like(names[max(names)], number)
        size, why = told.get(file, (None, _LISTED if file in listed else ""))
        yield BucketHole(generation.folder, file, size, covered_to(generation.parts.get(file, [])), why)


def _named_like(file: str, number: int) -> str:
    base, _dot, digits = file.rpartition(".")
    return f"{base}.{number:0{len(digits)}d}"


def _told(store: ObjectStore, generation: BucketGeneration) -> dict[str, tuple[int | None, str]]:
    """Return, by name, what the ledger says of binlogs that were purged or left out: their size and why they are missing."""
    try:
        lines = store.get(generation.folder + LEDGER_TEXT_NAME).splitlines()
    except ObjectMissing:
        return {}
    found: dict[str, tuple[int | None, str]] = {}
    for line in lines:
        try:
            row = kept_json(line)
            kind, file, size = row.get("kind"), str(row.get("file")), int(row.get("offset", -1))
        except (ValueError, TypeError, AttributeError):
            continue  # a line that a crash cut
        if kind in _WHY and is_binlog_name(file):
            found[file] = (size if size >= 0 else None, _WHY[kind])
    return found
