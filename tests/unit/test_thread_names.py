"""What the tests of what a relay holds take for a thread that was left over."""

import pytest

from tests.support.thread_names import left_over

WARM = ["MainThread", "archive-sync", "downstream-read_0", "uvloop_0"]


def test_a_pool_that_fills_is_none() -> None:
    assert left_over(WARM, [*WARM, "downstream-read_1", "archive-check_0"]) == []


@pytest.mark.parametrize(
    "more",
    [
        ["Thread-7 (run)"],
        pytest.param(["archive-sync"], id="a thread twice"),
        pytest.param(["uvloop_0"], id="a pool twice"),
        pytest.param([f"uvloop_{number}" for number in range(1, 1000)], id="a pool without a bound"),
    ],
)
def test_all_else_is(more: list[str]) -> None:
    assert left_over(WARM, [*WARM, *more])
