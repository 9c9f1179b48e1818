"""SIGKILL at any step of a change of source: the old source is the archive's, or the new one is, and nothing is lost."""

import subprocess
import sys
from pathlib import Path

import pytest

from protocol.gtid.gtid_set import GtidSet
from relay.archive.archive import read_ledger
from relay.archive.generations import Generations
from relay.archive.verify import verify_generations
from tests.support.generation_filling import A, B, append_files, change_source, identity, mysql_series
from tests.support.killed_changes import FIRST_SOURCE, SECOND_SOURCE

REPOSITORY = Path(__file__).resolve().parents[2]
BEFORE = GtidSet.from_text(f"{A}:1-6")


def killed_at_each_step(directory: Path, what: str) -> list[Path]:
    """The archives that are left."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.killed_changes", str(directory), what],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [directory / str(step) for step in range(int(done.stdout.split()[-1]))]


async def state_after(directory: Path) -> tuple[list[int], list[str]]:
    """The generations that there are, and what is wrong with the archive."""
    wrong = []
    generations = await Generations.open(directory)
    numbers = [one.number for one in generations.all]
    ended = [one.ended for one in generations.all]
    if ended != [True] * (len(numbers) - 1) + [False]:
        wrong.append(f"ended: {ended}")
    executed = generations.executed
    if not isinstance(executed, GtidSet) or BEFORE - executed:
        wrong.append(f"executed: {executed}")
    first = generations.all[0].archive
    if {file.name: bytes(data) for file, (_name, data) in zip(first.files, FIRST_SOURCE, strict=True)} != {
        file.name: first.path(file.name).read_bytes() for file in first.files
    }:
        wrong.append("the first source's files are not as they were")
    if numbers == [1]:
        if (directory / "g0002").exists():
            wrong.append("the directory of the new one is still there")
        # The old source goes on in its file, and the change is made again.
        await append_files(generations, mysql_series(3, f"{A}:7", start=f"{A}:1-6"))
        await change_source(generations, identity(B, 2), SECOND_SOURCE)
    else:
        held = generations.archive
        await append_files(
            generations, mysql_series(held.files[-1].number + 1, f"{B}:3", start=str(held.gtids.executed))
        )
    await generations.close()
    wrong += [f"{number}: {finding}" for number, finding in verify_generations(directory, deep=True)]
    kinds = [row.kind for path in (directory, directory / "g0002") for row in read_ledger(path)]
    if sorted(kinds) != ["generation_begun", "generation_ended"]:
        wrong.append(f"ledger: {kinds}")
    return numbers, wrong


async def test_after_a_kill_at_any_step_the_old_or_the_new_source_is_the_archives(tmp_path: Path) -> None:
    found = {path.name: await state_after(path) for path in killed_at_each_step(tmp_path, "change")}
    assert {step: wrong for step, (_numbers, wrong) in found.items() if wrong} == {}
    outcomes = [numbers for numbers, _wrong in found.values()]
    assert outcomes.count([1]) > 5 and outcomes.count([1, 2]) > 5, "the steps do not cover both sides of the decision"
    assert outcomes == sorted(outcomes), "the change went back"


async def test_after_a_kill_while_it_is_taken_back_the_old_source_is_the_archives(tmp_path: Path) -> None:
    found = {path.name: await state_after(path) for path in killed_at_each_step(tmp_path, "discard")}
    assert {step: result for step, result in found.items() if result != ([1], [])} == {}
    assert len(found) > 10


@pytest.mark.parametrize("left", ["catalog.sqlite", "lock"])
async def test_a_directory_that_a_crash_left_half_made_is_removed(tmp_path: Path, left: str) -> None:
    generations = await Generations.open(tmp_path)
    await append_files(generations, FIRST_SOURCE)
    await generations.close()
    (tmp_path / "g0002").mkdir()
    (tmp_path / "g0002" / left).touch()
    assert (await state_after(tmp_path)) == ([1], [])
