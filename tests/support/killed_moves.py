"""Moves between tiers, killed at random moments; after each kill the archive is opened and compared, byte for byte.

    python -m tests.support.killed_moves KILLS [SEED]

Each process continues with what the previous one left: a real S3 server, files packed and encrypted, moved to the bucket, the oldest
ones purged on the way. When all is moved, the next archive begins. It fails at the first missing byte.
"""

import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

import structlog

from relay.archive.archive import Archive
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from relay.packed.packing import PackOptions
from relay.packing_process.packer import ProcessPacker
from relay.tiers.tier_mover import TierMover
from relay.tiers.tier_rules import TierRules
from tests.support.s3_server import S3Server
from tests.support.tier_archive import RING, check_bucket, check_whole, fill_archive

FILES: Final = 8
_RULES: Final = TierRules(hot_bytes=1, cold_bytes=1)
_OPTIONS: Final = PackOptions(level=1, frame_bytes=8192)


async def move_all(directory: Path, store: ObjectStore, *, purge_after_s: float = -1.0, told: bool = False) -> None:
    """Run all moves of one process. `purge_after_s` is when the oldest file is purged (< 0: never). `told` says when it begins."""
    archive = await Archive.open(directory)
    mover = TierMover(archive, _RULES, _OPTIONS, keys=RING, store=store, packer=ProcessPacker())
    if told:
        print("begins", flush=True)
    moving = asyncio.create_task(mover.run_once())
    if purge_after_s >= 0 and len(archive.current.files) > 2:
        await asyncio.sleep(purge_after_s)
        await archive.current.purge([archive.current.files[0].name], "by a test")
    await moving
    await mover.run_once()
    await mover.close()
    await archive.close()


async def check(directory: Path, wanted: Mapping[str, bytes], store: ObjectStore, *, ended: bool) -> Counter[str]:
    """Open it as the next start would, and return the files by tier. With `ended` no purge is open in the bucket any more."""
    archive = await Archive.open(directory)
    names = [file.name for file in archive.current.files]
    assert names == sorted(wanted)[-len(names) :], names
    check_whole(archive, {name: wanted[name] for name in names}, store, gone_too=not ended)
    if ended:
        check_bucket(archive, store)
    await archive.close()
    return Counter(str(file.tier) for file in archive.current.files)


def run(kills: int, seed: int, directory: Path) -> Counter[str]:
    """Make so many kills, and return how often files were found in which tier after them."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    chance = random.Random(seed)
    found: Counter[str] = Counter()
    done = archives = 0
    longest_s = 0.25
    with S3Server(directory / "s3") as s3:
        while done < kills:
            archives += 1
            place = directory / f"archive{archives}"
            wanted = asyncio.run(fill_archive(place, FILES, 100))
            options = s3.options(f"a{archives}")
            while True:
                killed = _killed(place, options, chance, longest_s)
                # So that most are killed at work, on a machine that is fast or slow.
                longest_s *= 1.15 if killed else 0.6
                store = ObjectStore(options)
                tiers = asyncio.run(check(place, wanted, store, ended=not killed))
                found += tiers
                if not killed:
                    assert set(tiers) == {"object", "hot"} and tiers["hot"] == 1, tiers
                    break
                done += 1
                if done == kills:
                    asyncio.run(move_all(place, store))
                    found += asyncio.run(check(place, wanted, store, ended=True))
                    break
    found["archives"] = archives
    return found


def _killed(directory: Path, options: StoreOptions, chance: random.Random, longest_s: float) -> bool:
    """Run one process; return False if it finished before it was killed."""
    purge = chance.uniform(0, longest_s) if chance.random() < 0.15 else -1.0
    told = json.dumps([str(directory), asdict(options), purge])
    child = subprocess.Popen([sys.executable, "-m", __spec__.name, "child", told], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == b"begins\n"
        time.sleep(chance.uniform(0, longest_s))
        child.kill()
        code = child.wait()
    assert code in (0, -9), code
    return code == -9


def main() -> None:
    """Run the command."""
    if sys.argv[1] == "child":
        structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
        directory, options, purge = json.loads(sys.argv[2])
        asyncio.run(move_all(Path(directory), ObjectStore(StoreOptions(**options)), purge_after_s=purge, told=True))
        return
    kills, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        found = run(kills, seed, Path(directory))
    print(f"{kills} kills in {found.pop('archives')} archives, seed {seed}, {time.monotonic() - began:.0f} s.")
    print(f"Nothing was lost; files seen behind the kills, by tier: {dict(found)}")


if __name__ == "__main__":
    main()
