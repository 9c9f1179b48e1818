"""A place between two transactions of an archive as one sortable number, and back."""

import re
from dataclasses import dataclass
from typing import Final

from protocol.position import binlog_number
from relay.feed.rows.feed_stop import FeedStop

_GENERATION: Final = re.compile(r"g(\d{4,})/(.+)")
_NUMBER_BITS: Final = 21
_POSITION_BITS: Final = 34
_GENERATIONS: Final = 1 << (63 - _NUMBER_BITS - _POSITION_BITS)


@dataclass(frozen=True, slots=True, order=True)
class FeedOffset:
    """A place: `generation` (from 1 on), the file's number and an offset. `version` has 8 bits for the generation, 21 for the file and
    34 for the offset."""

    generation: int
    number: int
    position: int

    @classmethod
    def at(cls, file: str, position: int) -> "FeedOffset":
        """Return the place in a file as levels name it: `mysql-bin.000007`, `g0002/mysql-bin.000001`. Raises: FeedStop; Malformed."""
        match = _GENERATION.fullmatch(file)
        generation, base = (int(match[1]), match[2]) if match is not None else (1, file)
        number = binlog_number(base)
        if generation >= _GENERATIONS or number >> _NUMBER_BITS or position >> _POSITION_BITS:
            raise FeedStop(
                "place_too_large",
                f"{file}:{position}",
                "The feed counts 255 sources, 2,097,151 files of each, and 16 GiB of a file.",
                "Begin a new archive, and feed it into another target.",
            )
        return cls(generation, number, position)

    @classmethod
    def of_text(cls, text: str) -> "FeedOffset":
        """Return the place of FILE:POSITION. Raises: ValueError; also the errors of `at`."""
        file, _, position = text.rpartition(":")
        return cls.at(file, int(position))

    @classmethod
    def of_version(cls, version: int) -> "FeedOffset":
        """Return the place that has this `version`."""
        return cls(
            version >> (_NUMBER_BITS + _POSITION_BITS),
            version >> _POSITION_BITS & ((1 << _NUMBER_BITS) - 1),
            version & ((1 << _POSITION_BITS) - 1),
        )

    @property
    def version(self) -> int:
        """The number that a commit contains; a later place has a larger one."""
        return (self.generation << _NUMBER_BITS | self.number) << _POSITION_BITS | self.position
