"""kill -9 while files move between tiers: the run of `python -m tests.support.killed_moves`, short."""

from pathlib import Path

import pytest

from tests.support.killed_moves import run
from tests.support.s3_server import need_rclone


@pytest.mark.slow
def test_no_kill_during_a_move_loses_a_file_or_leaves_half_of_one(tmp_path: Path) -> None:
    need_rclone()
    run(4, 11, tmp_path)
