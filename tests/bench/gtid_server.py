"""`python -m tests.bench.gtid_server DIRECTORY FLAVOUR`: serves an archive and watches its own event loop.

Prints its port; then, for each line on standard input, what the loop did since the line before: `longest_ms`, by the clock,
that nothing else could run, and `longest_cpu_ms`, of it on a processor. A loop that is not blocked answers a timer of 1 ms.
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Final

import uvloop

from protocol.auth.account import Account
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive.storage.archived_file import SourceIdentity
from relay.downstream.request.source_state import SourceState
from relay.downstream.server import DownstreamServer
from relay.packed_reads.archive_layer import layer_of
from relay.process.interpreter import keep_what_is_here, share_interpreter
from relay.process.log_setup import setup_logging
from relay.service.shown_gtids import ShownGtids
from tests.bench.gtid_archive import SOURCE_UUID
from tests.support.replica_client import PASSWORD, USER

_TICK_S: Final = 0.001
_IDENTITIES: Final = {
    "mysql": SourceIdentity("mysql", "9.7.4", 1, SOURCE_UUID),
    "mariadb": SourceIdentity("mariadb", "10.11.19-MariaDB-log", 1, None),
}


class LoopWatch:
    """Sees how long the loop's thread did something else than looking after its timers."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.begin()
        self._tick()

    def begin(self) -> None:
        """Forgets what was."""
        self.longest_s = self.longest_cpu_s = 0.0
        self._at, self._cpu = time.perf_counter(), time.thread_time()

    def _tick(self) -> None:
        now, cpu = time.perf_counter(), time.thread_time()
        self.longest_s = max(self.longest_s, now - self._at - _TICK_S)
        self.longest_cpu_s = max(self.longest_cpu_s, cpu - self._cpu)
        self._at, self._cpu = now, cpu
        self._loop.call_later(_TICK_S, self._tick)


async def serve(directory: Path, flavour: str) -> None:
    """Until standard input ends."""
    generation = await Generation.open(directory, layer=layer_of(directory))
    keep_what_is_here()
    generation.set_identity(_IDENTITIES[flavour])
    archive = Archive.of(generation)
    source = SourceState(ShownGtids(archive, lambda: None))
    server = DownstreamServer(archive, [Account.with_password(USER, PASSWORD)], source)
    await server.start("127.0.0.1", 0)
    print(server.port, flush=True)
    watch = LoopWatch()
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        shown = {"longest_ms": watch.longest_s * 1000, "longest_cpu_ms": watch.longest_cpu_s * 1000}
        print(json.dumps(shown), flush=True)
        watch.begin()
    await server.close()
    await generation.close()


if __name__ == "__main__":
    setup_logging()
    share_interpreter()
    uvloop.run(serve(Path(sys.argv[1]), sys.argv[2]))
