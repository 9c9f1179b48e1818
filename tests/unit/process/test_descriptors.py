"""The limit of open files follows from what is configured."""

import resource
from collections.abc import Iterator
from typing import Any

import pytest
import structlog.testing

from relay.process.descriptors import allow_descriptors

HARD = resource.getrlimit(resource.RLIMIT_NOFILE)[1]


@pytest.fixture(autouse=True)
def few() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, HARD))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def allowed() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


@pytest.mark.skipif(0 <= HARD < 1664, reason="this system allows no process so many")
def test_a_limit_too_low_is_raised_to_what_is_needed() -> None:
    allow_descriptors(500, 100)
    assert allowed() == 1664


def test_a_limit_that_is_high_enough_is_left_alone() -> None:
    allow_descriptors(100, 1)
    assert allowed() == 512


def test_a_limit_that_cannot_be_raised_so_far_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: Any) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    with structlog.testing.capture_logs() as logs:
        allow_descriptors(500, 1)
    monkeypatch.undo()
    (line,) = logs
    assert (line["event"], line["allowed"], line["wanted"]) == ("few_descriptors", 512, 1070)
