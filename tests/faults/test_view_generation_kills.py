"""A process that makes a view over several sources is killed again and again: what it has left goes on to the same bytes."""

import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.support.killed_views import made, over_three_sources

KILLS = 15
ROUND = 5
"""After so many kills the view is begun again."""


def killed_after(place: Path, seconds: float) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.support.killed_views", str(place)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(seconds)
    finally:
        child.kill()
        child.communicate()


async def test_a_view_whose_maker_is_killed_at_any_moment_of_a_change_of_source_is_what_one_go_makes(
    tmp_path: Path,
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # pytest shows it when the test fails
    chance = random.Random(seed)
    place, copy = tmp_path / "archive", tmp_path / "copy"
    await over_three_sources(place)
    began = time.monotonic()
    expected = await made(place)
    took_s = time.monotonic() - began
    assert list(expected) == ["v", "g0002", "g0003"]
    for number in range(KILLS):
        if number % ROUND == 0:
            shutil.rmtree(place / "views")
        killed_after(place, chance.uniform(0, took_s / 2))
        shutil.copytree(place, copy)
        assert await made(copy) == expected
        shutil.rmtree(copy)
