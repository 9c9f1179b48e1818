"""kill -9 while the archive is copied into a bucket; a hundred of them: `python -m tests.support.mirror_kill_run`."""

from pathlib import Path

import pytest

from relay.bucket_copy.mirror_parts import part_of
from tests.conftest import ServerFactory
from tests.support.mirror_kill_run import kill_run
from tests.support.s3_server import need_rclone

pytestmark = pytest.mark.interop


def test_whenever_the_relay_is_killed_the_bucket_makes_an_archive(servers: ServerFactory, tmp_path: Path) -> None:
    need_rclone()
    source = servers("mariadb").start(server_id=1)
    found = kill_run(tmp_path, source, kills=3, seed=1, purged_each=2)
    # Parts are of the newest binlog only.
    assert {part.file for key in found if (part := part_of(key)) is not None} <= {source.binlogs()[-1].name}
