"""Conversations that once made the source's side of a connection fail, and a short run of their fuzzer."""

import pytest

from tests.fuzz_connection import FINDINGS, check, load, run


def test_conversations_that_once_broke_a_connection_do_not_do_so_again() -> None:
    for path in sorted(FINDINGS.glob("*.json")):
        check(load(path))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_short_run_of_the_connection_fuzzer_finds_nothing(seed: int) -> None:
    """The long one: python -m tests.fuzz_connection --seconds 600."""
    assert [(number, reason) for number, _case, reason in run(seed, cases=1000)] == []
