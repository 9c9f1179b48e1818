"""The check whether `[retention]` can hold on this disk, at the source's write rate."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relay.config import Config
from relay.doctor.doctor_line import DoctorLine
from relay.process.shown_amounts import shown_bytes
from relay.retention.retention_limits import RetentionLimits

_DAY_S: Final = 86_400
_ABOUT: Final = "retention"
_LARGER: Final = "give the archive a larger disk"


@dataclass(frozen=True, slots=True)
class DiskRoom:
    """The room in bytes: the whole file system; the free part of it; the present size of archive and views."""

    size: int
    free: int
    held: int

    @classmethod
    def of(cls, directory: Path) -> "DiskRoom":
        """Return the room. Blocking. directory: the source's in the archive; it may be missing. Raises: OSError."""
        place = next(one for one in (directory, *directory.parents) if one.exists())
        found = os.statvfs(place)
        held = 0
        for root, _directories, names in os.walk(directory):
            for name in names:
                held += _size(Path(root) / name)
        return cls(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize, held)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # removed meanwhile
        return 0


def retention_lines(config: Config, room: DiskRoom, rate_bytes_s: float | None) -> Iterator[DoctorLine]:
    """Yield the lines. rate_bytes_s: what the source writes in binlogs; None: unknown."""
    if not config.retention.removes:
        text = "off: the relay removes no binlog by itself"
        yield DoctorLine(_ABOUT, "retention", "ok", text)
        return
    judgement = _RetentionJudgement(config, room, rate_bytes_s)
    found = [*judgement.sizes(), *judgement.times()]
    yield from found
    if not found:
        yield judgement.fine()


class _RetentionJudgement:
    def __init__(self, config: Config, room: DiskRoom, rate_bytes_s: float | None) -> None:
        self._section = config.retention
        self._limits = RetentionLimits.of(config.retention)
        self._room = room
        self._archives = 1 + len(config.views)
        # A view is about as large as its source.
        self._rate = rate_bytes_s * self._archives if rate_bytes_s is not None and rate_bytes_s > 0 else None
        self._most = room.free + room.held
        """The most that archive and views may ever have, while others leave the disk as it is."""
        self._usable = max(0, self._most - (self._limits.min_free_bytes or 0))

    def sizes(self) -> Iterator[DoctorLine]:
        limits, section = self._limits, self._section
        least = limits.min_free_bytes
        if least is not None and least >= self._room.size:
            text = f'min_free = "{section.min_free}", and the whole disk has {shown_bytes(self._room.size)}: what may go always goes'
            yield self._line("min_free", text, f"Write a smaller retention.min_free, or {_LARGER}.", is_problem=True)
            return
        if least is not None and least > self._most:
            text = (
                f'min_free = "{section.min_free}", and without the archive {shown_bytes(self._most)} would be free: others have the '
                "rest, and all that may go always goes"
            )
            yield self._line("min_free", text, f"Make room beside the archive, or {_LARGER}.", is_problem=True)
            return
        if limits.keep_bytes is None or (whole := limits.keep_bytes * self._archives) <= self._usable:
            return
        text = (
            f'keep_bytes = "{section.keep_bytes}"{self._by_view()} is {shown_bytes(whole)}, and there is room for '
            f"{shown_bytes(self._usable)}"
        )
        if least is not None:
            cure = f"Lower retention.keep_bytes or leave it out, or {_LARGER}."
            yield self._line("keep_bytes", f"{text}: min_free removes before it ever does", cure)
        elif limits.keep_for_s is None or self._rate is None or limits.keep_for_s * self._rate > self._usable:
            cure = f"Lower retention.keep_bytes, write min_free too, or {_LARGER}."
            yield self._line(
                "keep_bytes", f"{text}: the disk is full before anything goes for it", cure, is_problem=True
            )

    def times(self) -> Iterator[DoctorLine]:
        limits, section = self._limits, self._section
        if self._rate is None:
            text = "how much the source writes is not known yet: whether the times of [retention] fit on the disk is not either"
            yield DoctorLine(_ABOUT, "rate", "unknown", text)
            return
        bound = limits.keep_bytes * self._archives if limits.keep_bytes is not None else None
        least_s = limits.keep_at_least_s
        if least_s * self._rate > self._usable:
            text = f'keep_at_least = "{section.keep_at_least}" {self._needs(least_s)}: a full disk, and the relay stops receiving'
            yield self._line("keep_at_least", text, f"Lower retention.keep_at_least, or {_LARGER}.", is_problem=True)
        elif bound is not None and least_s * self._rate > bound:
            text = f'keep_at_least = "{section.keep_at_least}" {self._needs(least_s)}: keep_bytes is never kept to'
            yield self._line("keep_at_least", text, "Raise retention.keep_bytes, or lower keep_at_least.")
        kept_s = limits.keep_for_s
        if kept_s is not None and kept_s * self._rate > self._usable:
            text = f'keep_for = "{section.keep_for}" {self._needs(kept_s)}'
            if limits.min_free_bytes is not None:
                text += f": min_free removes what is older than {self._days(self._usable)}"
                yield self._line(
                    "keep_for", text, f"Lower retention.keep_for, so that it says what is kept, or {_LARGER}."
                )
            elif bound is None or bound > self._usable:
                text += f": it is full after {self._days(self._usable)}"
                yield self._line(
                    "keep_for", text, f"Lower retention.keep_for, write min_free too, or {_LARGER}.", is_problem=True
                )
        away_s = limits.forget_replicas_after_s
        if section.keep_for_replicas and away_s * self._rate > self._most:
            text = (
                f'forget_replicas_after = "{section.forget_replicas_after}" {self._needs(away_s, self._most)}: a replica that is away '
                f"fills the disk within {self._days(self._most)}, before it is forgotten"
            )
            yield self._line("forget_replicas_after", text, f"Lower retention.forget_replicas_after, or {_LARGER}.")

    def fine(self) -> DoctorLine:
        """Return the line for a known rate without a fault."""
        ends = [self._usable if self._limits.min_free_bytes is not None else self._most]
        if self._limits.keep_bytes is not None:
            ends.append(self._limits.keep_bytes * self._archives)
        if self._limits.keep_for_s is not None and self._rate is not None:
            ends.append(int(self._limits.keep_for_s * self._rate))
        text = f"the binlogs of about {self._days(min(ends))} are kept, {shown_bytes(min(ends))}{self._by_view()}"
        return DoctorLine(_ABOUT, "retention", "ok", text)

    def _line(self, check: str, what: str, cure: str, *, is_problem: bool = False) -> DoctorLine:
        return DoctorLine(_ABOUT, check, "problem" if is_problem else "warning", what, cure)

    def _needs(self, seconds: float, room: int | None = None) -> str:
        there = self._usable if room is None else room
        return f"needs {shown_bytes(seconds * (self._rate or 0))}{self._by_view()}, and there is room for {shown_bytes(there)}"

    def _days(self, count: float) -> str:
        days = count / (self._rate or 1) / _DAY_S
        return f"{days:.1f} days" if days < 1000 else "years"

    def _by_view(self) -> str:
        views = self._archives - 1
        return f" with {views} view{'s' if views > 1 else ''}" if views else ""
