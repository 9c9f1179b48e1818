"""A power cut while an archive is filled: what it had promised, and what is on the disk afterwards."""

import asyncio
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from protocol.position import Position
from relay.archive.generation import Generation
from relay.archive.write.options import ArchiveOptions, PublishPolicy, SyncPolicy
from tests.support.archive_filling import append_all
from tests.support.binlog_builder import BinlogBuilder
from tests.support.forgetful_disk import ForgetfulDisk

FIRST: Final = "mysql-bin.000001"
SECOND: Final = "mysql-bin.000002"


@dataclass(frozen=True)
class PowerCut:
    """The result. `promised` is how far was published; `built` are the files that were being received, by name."""

    promised: Position
    built: dict[str, BinlogBuilder]


async def cut_power(directory: Path, survivor: Path, begun: Callable[[], BinlogBuilder], seed: int) -> PowerCut:
    """Fill an archive in `directory` with two files that begin so, up to a moment that the seed decides; leave in `survivor` what a
    disk without power has of it."""
    chance = random.Random(seed)
    disk = ForgetfulDisk()
    one, two = begun().transaction(*[500] * 300).rotate(SECOND), begun().transaction(*[900] * 200).transaction(3)
    options = ArchiveOptions(sync=SyncPolicy.TRANSACTION, publish=PublishPolicy.SYNCED)
    generation = await Generation.open(directory, options, layer=disk)
    cuts = [chance.randrange(4, one.size) for _ in range(6)]
    await generation.begin_file(FIRST)
    first_part = chance.random() < 0.4
    await append_all(generation, one.data[: one.boundaries[-3]] if first_part else one.data, cuts)
    if not first_part:
        await generation.begin_file(SECOND)
        await append_all(generation, two.data[: chance.choice(two.boundaries[2:])], cuts)
    await asyncio.sleep(chance.choice([0, 0.003, 0.02]))
    # The cut: nothing is awaited between reading what was promised and taking the picture of the disk.
    promised = generation.end
    disk.lose_power(directory, survivor, seed)
    if chance.random() < 0.5:
        for path in directory.glob("catalog.sqlite*"):
            shutil.copy(path, survivor)
    await generation.close()
    assert promised is not None
    return PowerCut(promised, {FIRST: one, SECOND: two})
