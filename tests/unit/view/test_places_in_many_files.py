"""The same place by its three names, in 10,000 files."""

import statistics
import time
from pathlib import Path
from typing import Literal
from uuid import UUID

import pytest

from protocol.resultset import Value
from protocol.statements.requests import FindViewPlace
from relay.admin.procedures.view_procedures import place_found
from relay.view.rules.settings import ViewSettings
from tests.support.many_view_files import fill_many_with_view

OWN = "6d0c5a43-9c63-4f4e-8d1f-5a166f0f3cb2"
FILES = 10_000
IN_EACH = 3
LONGEST_S = 0.05


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    directory = tmp_path_factory.mktemp("many") / "source"
    return directory, fill_many_with_view(directory, settings(), FILES, IN_EACH)


def settings() -> ViewSettings:
    return ViewSettings("gtid", "assign", UUID(OWN))


def test_each_name_of_a_place_is_answered_within_50_ms(archive: tuple[Path, list[int]]) -> None:
    directory, offsets = archive
    numbers = range(1, FILES + 1, FILES // 20)

    def asked(by: Literal["source", "view", "gtid"], text: str, offset: int = 4) -> tuple[float, tuple[Value, ...]]:
        # Of the processor: all is in memory, and what else the machine does is no business of the answer's.
        started = time.thread_time()
        answer = place_found(directory, [directory], settings(), FindViewPlace("gtid", by, text, offset))
        return time.thread_time() - started, answer.rows[0]

    by_source = [asked("source", name(number), offsets[2]) for number in numbers]
    by_view = [asked("view", str(row[2]), int(str(row[3]))) for _took, row in by_source]
    by_gtid = [asked("gtid", f"{OWN}:{(number - 1) * IN_EACH + 2}") for number in numbers]
    for number, *answers in zip(numbers, by_source, by_view, by_gtid, strict=True):
        gno = (number - 1) * IN_EACH + 2
        for _took, row in answers:
            assert row[:2] == (name(number), str(offsets[2])) and row[4:] == (f"{OWN}:{gno}", f"{OWN}:1-{gno}")
    took = [statistics.median(took for took, _row in answers) for answers in (by_source, by_view, by_gtid)]
    assert max(took) <= LONGEST_S, took


def name(number: int) -> str:
    return f"mysql-bin.{number:06d}"
