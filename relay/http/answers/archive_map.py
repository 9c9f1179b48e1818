"""The archive by file and time, in so few pieces that a page can draw it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from relay.archive.storage.archived_file import ArchivedFile

_MOST_PIECES: Final = 400
_MOST_HOLES: Final = 200


@dataclass(frozen=True, slots=True)
class MappedGeneration:
    """files: a copy. damaged: their names. gap: the text about the accepted gap before it; empty: none."""

    number: int
    files: Sequence[ArchivedFile]
    damaged: frozenset[str]
    gap: str


def archive_map(generations: Sequence[MappedGeneration]) -> dict[str, Any]:
    """Return pieces of adjacent files, oldest first, and the gaps between them. For a thread: all files are looked at."""
    total = sum(len(one.files) for one in generations)
    step = max(1, -(-total // _MOST_PIECES))
    pieces: list[dict[str, Any]] = []
    gaps: list[dict[str, Any]] = []
    for one in generations:
        if one.gap:
            gaps.append({"generation": one.number, "after": None, "before": _first(one), "text": one.gap})
        gaps += _holes(one, _MOST_HOLES - len(gaps))
        pieces += [_piece(one, one.files[start : start + step]) for start in range(0, len(one.files), step)]
    return {"files": total, "files_per_piece": step, "pieces": pieces, "gaps": gaps}


def _first(one: MappedGeneration) -> str | None:
    return one.files[0].name if one.files else None


def _holes(one: MappedGeneration, most: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for before, after in zip(one.files, one.files[1:], strict=False):
        if after.number != before.number + 1 and len(found) < most:
            text = f"{after.number - before.number - 1} files are not held"
            found.append({"generation": one.number, "after": before.name, "before": after.name, "text": text})
    return found


def _piece(one: MappedGeneration, files: Sequence[ArchivedFile]) -> dict[str, Any]:
    damaged = sum(file.damaged or file.name in one.damaged for file in files)
    return {
        "generation": one.number,
        "first_file": files[0].name,
        "last_file": files[-1].name,
        "files": len(files),
        "bytes": sum(file.end for file in files),
        "first_event_at": files[0].first_timestamp or None,
        "last_event_at": files[-1].last_timestamp or None,
        "damaged": damaged,
        "cut": sum(file.cut for file in files),
        "is_open": not files[-1].sealed,
    }
