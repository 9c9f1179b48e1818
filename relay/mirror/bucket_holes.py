"""Binlogs that lack in the middle of a copy, and what of it is restored then."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from protocol.position import binlog_number
from relay.archive.storage.files import LEDGER_TEXT_NAME
from relay.archive.storage.ledger_kinds import PURGED
from relay.mirror.bucket_content import BucketContent, BucketGeneration
from relay.mirror.mirror_parts import covered_to
from relay.object_store.object_errors import ObjectMissing
from relay.object_store.object_store import ObjectStore

LEFT_OUT: Final = "mirror_left_out"
"""A binlog was not copied, as it was damaged."""
_WHY: Final = {PURGED: "was purged before it was copied", LEFT_OUT: "was damaged, so it was not copied"}
_SHOWN: Final = 20


class HolesWanted(StrEnum):
    """What of a copy with holes is restored. BEFORE: up to the first one; BEHIND: from the last one on; KEEP: all that is there."""

    REFUSE = "refuse"
    BEFORE = "before"
    BEHIND = "behind"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class BucketHole:
    """A binlog that is not there as a whole, though one behind it is there. folder: of its generation. size: None: nobody wrote it
    down. in_parts: so many of its first bytes are there. why: half a sentence, or empty."""

    folder: str
    file: str
    size: int | None
    in_parts: int
    why: str

    @property
    def text(self) -> str:
        """For people."""
        size = "its size is not known" if self.size is None else f"{self.size} bytes"
        parts = f", the first {self.in_parts} are there" if self.in_parts else ""
        why = f"; it {self.why}" if self.why else ""
        return f"{self.folder}{self.file} ({size}{parts}{why})"


def holes_text(holes: list[BucketHole]) -> str:
    """The first ones by name, and how many there are."""
    named = ", ".join(hole.text for hole in holes[:_SHOWN])
    return named if len(holes) <= _SHOWN else f"{named} and {len(holes) - _SHOWN} more"


def holes_of(store: ObjectStore, content: BucketContent) -> list[BucketHole]:
    """The oldest first. Blocking. Raises: ObjectStoreError."""
    found: list[BucketHole] = []
    for place, generation in enumerate(content.generations):
        found += _holes(store, generation, is_last=place == len(content.generations) - 1)
    return found


def trimmed(content: BucketContent, holes: list[BucketHole], wanted: HolesWanted) -> BucketContent:
    """What of it is to be restored."""
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
    # The generations before it stay for their ledgers; nothing of their binlogs does.
    emptied = [replace(one, files=[], parts={}) for one in content.generations[:place]]
    kept = replace(
        at,
        files=[file for file in at.files if binlog_number(file) > binlog_number(hole.file)],
        parts={file: parts for file, parts in at.parts.items() if binlog_number(file) > binlog_number(hole.file)},
    )
    return replace(content, generations=(*emptied, kept, *content.generations[place + 1 :]))


def _holes(store: ObjectStore, generation: BucketGeneration, *, is_last: bool) -> Iterator[BucketHole]:
    names = {binlog_number(file): file for file in (*generation.parts, *generation.files)}
    whole = {binlog_number(file) for file in generation.files}
    if not names:
        return
    newest = max(names)
    lacking = [number for number in range(min(names), newest + 1) if number not in whole]
    if is_last and lacking and lacking[-1] == newest:
        lacking.pop()  # the one that grew
    told = _told(store, generation) if lacking or not is_last else {}
    if not is_last:
        lacking += sorted(number for number in map(binlog_number, told) if number > newest)
    by_number = {binlog_number(file): file for file in told}
    for number in lacking:
        file = names.get(number) or by_number.get(number) or _named_like(names[newest], number)
        size, why = told.get(file, (None, ""))
        yield BucketHole(generation.folder, file, size, covered_to(generation.parts.get(file, [])), why)


def _named_like(file: str, number: int) -> str:
    base, _dot, digits = file.rpartition(".")
    return f"{base}.{number:0{len(digits)}d}"


def _told(store: ObjectStore, generation: BucketGeneration) -> dict[str, tuple[int | None, str]]:
    """What the ledger says of binlogs that were purged or left out: by name, their size and why they lack."""
    try:
        lines = store.get(generation.folder + LEDGER_TEXT_NAME).splitlines()
    except ObjectMissing:
        return {}
    found: dict[str, tuple[int | None, str]] = {}
    for line in lines:
        try:
            row = json.loads(line)
            kind, file, size = row.get("kind"), str(row.get("file")), int(row.get("offset", -1))
        except (ValueError, TypeError, AttributeError):
            continue  # a line that a crash cut
        if kind in _WHY:
            found[file] = (size if size >= 0 else None, _WHY[kind])
    return found
