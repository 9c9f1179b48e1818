"""The files that move now: a function of facts, without a clock, a disk or a bucket.

1. To the bucket: packed files older than object_after, and the oldest ones while they take more than cold_bytes.
2. Packed: files older than cold_after (or object_after), and the oldest ones while those that are not packed have more than hot_bytes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relay.archive.storage.storage_location import Tier
from relay.config.text.amounts import size_bytes, time_s
from relay.config.tiers_section import TiersSection


@dataclass(frozen=True, slots=True)
class TierRules:
    """`[archive.tiers]` as numbers. Times in seconds, sizes in bytes; None: no such rule."""

    cold_after_s: float | None = None
    hot_bytes: int | None = None
    object_after_s: float | None = None
    cold_bytes: int | None = None

    @classmethod
    def of(cls, section: TiersSection) -> "TierRules":
        """Return the rules of the section."""
        return cls(
            cold_after_s=None if section.cold_after is None else time_s(section.cold_after),
            hot_bytes=None if section.hot_bytes is None else size_bytes(section.hot_bytes),
            object_after_s=None if section.object_after is None else time_s(section.object_after),
            cold_bytes=None if section.cold_bytes is None else size_bytes(section.cold_bytes),
        )


@dataclass(frozen=True, slots=True)
class TierFile:
    """A file. `time`: of its newest event, Unix seconds; 0: unknown, which no rule of age moves. `may_move`: it is sealed, sound, and
    nothing keeps it where it is."""

    generation: int
    name: str
    tier: Tier
    plain_bytes: int
    stored_bytes: int
    time: float
    may_move: bool


@dataclass(frozen=True, slots=True)
class WantedMove:
    """A file, and its target: one step, hot to cold or cold to object."""

    file: TierFile
    to: Tier


def wanted_moves(files: Sequence[TierFile], rules: TierRules, now: float) -> list[WantedMove]:
    """Return the moves that are due, those that free the disk first, each kind the oldest first. files: of one archive, the oldest
    first.

    `now`: from which age is counted back.
    """
    objects = _due(files, Tier.COLD, rules.object_after_s, rules.cold_bytes, lambda file: file.stored_bytes, now)
    # A file that goes to the bucket by its age is packed for it, whatever else packs.
    ages = [age for age in (rules.cold_after_s, rules.object_after_s) if age is not None]
    cold = _due(files, Tier.HOT, min(ages, default=None), rules.hot_bytes, lambda file: file.plain_bytes, now)
    return [WantedMove(file, Tier.OBJECT) for file in objects] + [WantedMove(file, Tier.COLD) for file in cold]


def _due(
    files: Sequence[TierFile],
    tier: Tier,
    after_s: float | None,
    most_bytes: int | None,
    size: Callable[[TierFile], int],
    now: float,
) -> list[TierFile]:
    here = [file for file in files if file.tier is tier]
    over = sum(map(size, here)) - most_bytes if most_bytes is not None else 0
    due = []
    for file in here:
        is_old = after_s is not None and 0 < file.time < now - after_s
        if (is_old or over > 0) and file.may_move:
            due.append(file)
            over -= size(file)
    return due
