"""One Spark session for all tests of the package; they are skipped, with the reason, where Spark cannot run."""

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.free_port import free_port
from tests.support.s3_server import ACCESS_KEY, SECRET_KEY

# Every query here is small and runs once: to compile it, in Java or to Java, costs more than it saves.
BRIEF = {
    "driver_extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
    "sql_codegen_wholeStage": "false",
    "sql_codegen_factoryMode": "NO_CODEGEN",
}

BUCKET_PORT = free_port()
KEY_FILE = Path(tempfile.gettempdir()) / f"binlog-relay-audit-{os.getpid()}.key"
BUCKET_ENVIRONMENT = {
    "AWS_ENDPOINT_URL": f"http://127.0.0.1:{BUCKET_PORT}",
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    "AWS_REGION": "us-east-1",
    "BINLOG_RELAY_KEYS": f"one={KEY_FILE}",
}
"""Of Spark's workers, which have that of the moment when the session was made; nobody listens at the port yet."""


_LEFT_OPEN = "ignore:unclosed <socket.socket fd=[0-9]+, family=1, type=1, proto=0, raddr=/:ResourceWarning"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """pyspark before 4.2 leaves the sockets of what it collected to the garbage collector."""
    try:
        from pyspark import __version__
    except ImportError:
        return
    if tuple(map(int, __version__.split(".")[:2])) < (4, 2):
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.filterwarnings(_LEFT_OPEN))


@pytest.fixture(scope="session")
def key_file() -> Iterator[Path]:
    """The key that `BUCKET_ENVIRONMENT` names."""
    KEY_FILE.touch(0o600)
    KEY_FILE.write_text("ab" * 32)
    try:
        yield KEY_FILE
    finally:
        KEY_FILE.unlink()


@pytest.fixture(scope="session")
def spark(key_file: Path) -> Iterator[Any]:
    """A local session of two threads that knows `binlog`."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("there is no Java: Spark needs 17 or later")
    from relay.spark.spark_session import local_session
    from tests.audit.spark_environment import session_in

    assert key_file.exists()

    def make() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return local_session(2, memory="1g", sql_shuffle_partitions="2", **BRIEF)

    with session_in(BUCKET_ENVIRONMENT, sys.executable, make) as session:
        yield session
