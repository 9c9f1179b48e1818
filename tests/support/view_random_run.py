"""Random work by many seeds through views, until the time is over: everything must be kept, or stopped by name.

    python -m tests.support.view_random_run [--seconds 600] [--seed 1000] [--format ROW|STATEMENT|MIXED ...]

A MySQL 5.6, a relay with two views (engines kept, and all InnoDB), and a MySQL 9.7 with its defaults as a replica of each. Each seed
has its own database. Exit status 0 means that tables and GTIDs were equal every time, 1 a difference, with the seed and format that
show it.
"""

import argparse
import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from deploy.servers import SERVERS, Server
from tests.support.random_workload import RandomWorkload
from tests.support.view_chain import ViewChain, view_keys
from tests.support.workload import FORMATS

ENGINES: Final = ("InnoDB", "InnoDB", "MyISAM", "MEMORY")
_STEPS: Final = 150
# A statement that failed in the middle, and MyISAM kept its first rows: what no table with transactions can do.
_NOT_KEPT: Final = "statement_failed_partway"
# The databases of a pair of replicas before it is recreated: a comparison reads only the newest one.
_SEEDS_A_CHAIN: Final = 20


def campaign(binlog_format: str, seeds: range, until: float, scratch: Path) -> tuple[int, list[str]]:
    """Return how many seeds were tried before the first that was not kept, if any, and what it showed."""
    with contextlib.ExitStack() as stack:

        def servers(name: str) -> Server:
            return stack.enter_context(SERVERS[name]())

        views = [view_keys(), view_keys("innodb", engines="innodb")]
        v1 = ["--log-bin-use-v1-row-events=1"] if seeds.start % 2 else []
        chain = stack.enter_context(ViewChain(servers, "mysql56", scratch, options=v1, views=views))
        replicas = {view: chain.view_replica(view) for view in chain.views}
        for done, seed in enumerate(seeds):
            if time.monotonic() > until:
                return done, []
            database = f"h{seed}"
            work = RandomWorkload(
                chain.source,
                seed,
                binlog_format=binlog_format,
                engines=ENGINES,
                selects=binlog_format == "ROW",
                database=database,
            )
            try:
                work.run(_STEPS)
                for view, replica in replicas.items():
                    chain.check_replica(replica, [database], view)
            except Exception as error:
                if {stop["reason"] for stop in chain.relay.logged("view_stopped")} == {_NOT_KEPT}:
                    print(f"{binlog_format} seed {seed}: stopped by name, {_NOT_KEPT}")
                    return done, []
                return done, [f"{binlog_format} seed {seed}: {type(error).__name__}: {error}"]
    return len(seeds), []


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--format", choices=FORMATS, action="append")
    chosen = parser.parse_args()
    until, seed, findings, tried = time.monotonic() + chosen.seconds, chosen.seed, 0, 0
    while time.monotonic() < until:
        for binlog_format in chosen.format or FORMATS:
            with tempfile.TemporaryDirectory() as scratch:
                os.chmod(scratch, 0o755)
                done, found = campaign(binlog_format, range(seed, seed + _SEEDS_A_CHAIN), until, Path(scratch))
            tried += done
            findings += len(found)
            print(f"{binlog_format} from seed {seed}: {done} kept", *found, sep="\n", flush=True)
        seed += _SEEDS_A_CHAIN
    print(f"{tried} kept, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
