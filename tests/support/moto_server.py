"""A third-party S3 server: moto's, in a separate process."""

import contextlib
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.chain import wait_until
from tests.support.free_port import free_port

BUCKET: Final = "binlogs"
_PROGRAM: Final = Path(sys.executable).with_name("moto_server")


@contextlib.contextmanager
def moto_server() -> Iterator[str]:
    """Yield its URL, with the bucket `BUCKET` made; it accepts any credentials. Skip the test if the program is missing."""
    if not _PROGRAM.exists():
        pytest.skip("no moto_server: pip install 'moto[s3,server]'")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    server = subprocess.Popen([_PROGRAM, "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def is_there() -> bool:
        try:
            urllib.request.urlopen(urllib.request.Request(f"{url}/{BUCKET}", method="PUT"), timeout=5).close()
        except OSError:
            return False
        return True

    try:
        wait_until(is_there, "moto_server answers", 60)
        yield url
    finally:
        server.kill()
        server.wait()
