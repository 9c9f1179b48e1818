"""What one of Spark's tasks reads: a split, or several that follow each other where files are small."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql.datasource import InputPartition

from relay.binlog_tables.plan.splits import Split

OPEN_COST_BYTES: Final = 4 << 20
"""What opening a file costs, in bytes that could be read meanwhile; as spark.sql.files.openCostInBytes is by default."""
_CORES: Final = os.cpu_count() or 1


@dataclass(frozen=True)
class SplitTask(InputPartition):
    """Splits that follow each other."""

    splits: tuple[Split, ...]


def tasks_of(splits: Sequence[Split], most_bytes: int, cores: int = _CORES) -> list[InputPartition]:
    """Splits in their order, several in a task where they are small: as Spark packs files.

    As many as have `most_bytes` together, each counted a little larger than it is; fewer where `cores` would have nothing to do.
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
