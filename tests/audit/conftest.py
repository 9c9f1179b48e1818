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
ROOT = Path(__file__).resolve().parents[2]


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
    from relay.audit.spark_session import local_session

    assert key_file.exists()
    # Spark's workers are processes of their own: they must import what these tests import.
    before = {name: os.environ.get(name) for name in ("PYTHONPATH", "PYSPARK_PYTHON", *BUCKET_ENVIRONMENT)}
    os.environ.update(BUCKET_ENVIRONMENT)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), before["PYTHONPATH"]]))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = local_session(2, memory="1g", sql_shuffle_partitions="2", **BRIEF)
        session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
