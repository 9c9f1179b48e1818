"""Relays as processes of their own, for measuring."""

import contextlib
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deploy.servers import Server
from tests.bench.source_data import BenchSource
from tests.bench.streams import Server as Login
from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess

_SERVER_IDS = itertools.count(4243)
_TO_ARCHIVE_S = 240.0
"""Less than a test may take, so that its failure has the relay's log."""


def login(relay: RelayProcess) -> Login:
    """For dump streams."""
    return Login(relay.port, REPLICA_USER, REPLICA_PASSWORD)


def make_relay(
    directory: Path, source: Server | Path, checkout: Path | None = None, **sections: dict[str, Any]
) -> RelayProcess:
    """A relay that is not started yet, of this checkout or of another one.

    The source may list the connection of one that was killed for a minute: each has its number.
    """
    return RelayProcess(
        directory, source, port=free_port(), server_id=next(_SERVER_IDS), sections=sections, checkout=checkout
    )


@contextlib.contextmanager
def filled_relay(directory: Path, source: BenchSource, checkout: Path | None = None) -> Iterator[RelayProcess]:
    """A relay that has archived all of the source and is at rest."""
    with make_relay(directory, source.server, checkout) as relay:
        wait_until_archived(relay, source)
        yield relay


def wait_until_archived(relay: RelayProcess, source: BenchSource) -> None:
    """Returns when the relay holds what the source holds, and has had time for its digests."""
    file, size = source.newest()
    relay.wait_archived(file, size, timeout_s=_TO_ARCHIVE_S)
    time.sleep(1.0)
