"""The GTID benchmarks with little data, as far as their figures do not depend on what else the machine does."""

from pathlib import Path

import pytest

from tests.bench import gtid_requests, gtid_serve
from tests.bench.figures import Report

pytestmark = pytest.mark.slow


def missed(report: Report, word: str) -> list[str]:
    """The figures with `word` in their names that do not reach their aims; there are some with it."""
    figures = [figure for figure in report.figures if word in figure.name and figure.aim is not None]
    assert figures, report.table()
    return [f"{figure.name}: {figure.value:.3g} {figure.unit}" for figure in figures if not figure.reached]


def test_no_request_keeps_the_loop_on_the_processor_not_even_one_of_16_mb(tmp_path: Path) -> None:
    report = gtid_requests.run(tmp_path, files=40, turns=5)
    assert missed(report, "on the processor at a stretch, median") == []


def test_a_gigabyte_is_passed_over_in_a_second_of_processor_time(tmp_path: Path) -> None:
    report = gtid_serve.run(tmp_path, size=24 << 20, turns=3)
    assert missed(report, "passed over, a second of processor time") == []
