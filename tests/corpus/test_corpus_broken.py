"""Inputs that once made the kernel fail, and a short run of the fuzzer with fixed seeds."""

from pathlib import Path

import pytest

from tests.fuzz_kernel import CORPUS, check, load, run

CASES = sorted(CORPUS.glob("broken/*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.stem))
def test_an_input_that_once_broke_the_kernel_does_not_do_so_again(path: Path) -> None:
    check(load(path))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_short_run_of_the_fuzzer_finds_nothing(seed: int) -> None:
    """The long one: python -m tests.fuzz_kernel --seconds 600."""
    assert [(number, reason) for number, _case, reason in run(seed, cases=300)] == []
