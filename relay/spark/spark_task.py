"""The input of one of Spark's tasks: a split, or several consecutive ones if files are small."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql.datasource import InputPartition

from relay.binlog_tables.plan.splits import Split

OPEN_COST_BYTES: Final = 4 << 20
"""The cost of opening a file, in bytes that could be read meanwhile; this is the default of spark.sql.files.openCostInBytes."""
_CORES: Final = os.cpu_count() or 1


@dataclass(frozen=True)
class SplitTask(InputPartition):
    """Consecutive splits."""

    splits: tuple[Split, ...]


def tasks_of(splits: Sequence[Split], most_bytes: int, cores: int = _CORES) -> list[InputPartition]:
    """Return splits in their order, several in a task if they are small: as Spark packs files.

    A task gets as many as have `most_bytes` together, each counted a little larger than it is; fewer if `cores` would be idle.
    """
    share = sum(map(_cost, splits)) // cores
    return [SplitTask(tuple(packed)) for packed in _packed(splits, min(most_bytes, max(share, OPEN_COST_BYTES)))]


def _cost(split: Split) -> int:
    return split.stop - split.start + OPEN_COST_BYTES


def _packed(splits: Sequence[Split], most_bytes: int) -> Iterator[list[Split]]:
    held: list[Split] = []
    size = 0
    for split in splits:
        cost = _cost(split)
        if held and size + cost > most_bytes:
            yield held
            held, size = [], 0
        held.append(split)
        size += cost
    if held:
        yield held
