"""Random work of MariaDB sources through views for MySQL 9.7, which must give the replica the source's bytes.

    python -m tests.support.mariadb_run [--seeds 10] [--transactions 500] [--seed 1000] [--source mariadb ...] [--format ROW ...]
                                          [--metadata FULL ...]

Each seed: a MariaDB, a relay with a view, a MySQL 9.7 with its defaults that follows while the work goes on, by auto-position and TLS,
applied by four workers. First the work of `mariadb_workload`, then six sessions write at once, each of them that many steps
(transactions, mostly) over all types of columns, character sets and definitions that pass. Then each value is compared by its bytes,
column by column, and the GTIDs. Exit status 0 means equal every time, 1 a difference, with the seed, source and format that show it.
"""

import argparse
import contextlib
import os
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Final

from deploy.servers import SERVERS, Server
from tests.support.mariadb_random import at_once
from tests.support.mariadb_view import SOURCE_OPTIONS, SOURCES, check_mariadb_replica, mariadb_chain
from tests.support.mariadb_workload import mariadb_workload
from tests.support.workload import FORMATS

METADATA: Final = ("NO_LOG", "MINIMAL", "FULL")
"""The metadata that a MariaDB writes about its tables' columns; the first one is the default."""


def one_seed(name: str, binlog_format: str, metadata: str, seed: int, transactions: int, scratch: Path) -> int:
    """Return how many values were compared. Raises: AssertionError and the like, with what was not kept."""
    with contextlib.ExitStack() as stack:

        def servers(name: str) -> Server:
            return stack.enter_context(SERVERS[name]())

        options = (*SOURCE_OPTIONS, f"--binlog-row-metadata={metadata}")
        chain = stack.enter_context(mariadb_chain(servers, name, scratch, options=options))
        replica = chain.view_replica()
        databases = [*mariadb_workload(chain.source, binlog_format)]
        databases += at_once(chain.source, seed, [binlog_format], transactions)
        return check_mariadb_replica(chain, replica, databases)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--transactions", type=int, default=500, help="of each of the six sessions")
    parser.add_argument("--seed", type=int, default=1000, help="the first one")
    parser.add_argument("--source", choices=SOURCES, action="append")
    parser.add_argument("--format", choices=FORMATS, action="append")
    parser.add_argument("--metadata", choices=METADATA, action="append", help="binlog_row_metadata; by default NO_LOG")
    chosen = parser.parse_args()
    findings = tried = 0
    kinds = product(chosen.source or SOURCES, chosen.format or FORMATS, chosen.metadata or METADATA[:1])
    for seed, (name, binlog_format, metadata) in product(range(chosen.seed, chosen.seed + chosen.seeds), tuple(kinds)):
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            os.chmod(scratch, 0o755)
            what = f"seed {seed} {name} {binlog_format} {metadata}"
            tried += 1
            try:
                relay = Path(scratch) / "relay"
                compared = one_seed(name, binlog_format, metadata, seed, chosen.transactions, relay)
                print(f"{what}: {compared} values equal, {time.monotonic() - begun:.0f} s", flush=True)
            except Exception as error:
                findings += 1
                print(f"{what}: {type(error).__name__}: {error}", flush=True)
    print(f"{tried} tried, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
