"""What a GTID benchmark must show on any machine, however busy: one figure against another of the same run."""

from pathlib import Path

import pytest

from tests.bench import gtid_serve

pytestmark = pytest.mark.slow


def test_a_file_is_passed_over_in_less_processor_time_than_it_is_served(tmp_path: Path) -> None:
    report = gtid_serve.run(tmp_path, size=24 << 20, turns=3)
    figures = {figure.name: figure.value for figure in report.figures}
    passed = figures["all but the first and the last held: passed over, a second of processor time"]
    served = 1000 / figures["by position: CPU"]
    assert passed > 1.5 * served, report.table()
