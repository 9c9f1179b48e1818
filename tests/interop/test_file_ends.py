"""What real servers write at the end of a binlog, and at the beginning of the next one."""

from itertools import pairwise

import pytest

from relay.binlog_file.file_end import is_incomplete
from tests.conftest import ServerFactory
from tests.support.memory_file import MemoryFile

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("name", ["mysql56", "mysql97", "mariadb", "mariadb118"])
def test_a_file_is_all_there_after_a_rotation_a_shutdown_or_a_crash_and_none_is_that_lacks_its_rotate(
    servers: ServerFactory, name: str
) -> None:
    server = servers(name)
    server.start(server_id=1)
    server.execute_many(["CREATE DATABASE shop", "CREATE TABLE shop.t (id INT)", "FLUSH BINARY LOGS"])
    server.sql("INSERT INTO shop.t VALUES (1)")
    server.kill()
    server.start(server_id=1)
    server.execute_many(["INSERT INTO shop.t VALUES (2)", "FLUSH BINARY LOGS", "INSERT INTO shop.t VALUES (3)"])
    server.stop()
    server.start(server_id=1)
    server.execute_many(["SET GLOBAL max_binlog_size = 4096", *["INSERT INTO shop.t VALUES (4)"] * 80])
    files = [one.read_bytes() for one in server.binlogs()]
    judged = []
    for data, following in pairwise(files):
        assert not is_incomplete(MemoryFile(data), len(data), MemoryFile(following))
        judged.append(is_incomplete(MemoryFile(data), len(data) - 40, MemoryFile(following)))
    assert len(files) > 5
    # Behind the crash and behind the shutdown the next file says that the server was started.
    assert judged == [True, False, True, False, *[True] * (len(files) - 5)]
