"""Random transactions through a view that says which of them may run together, and the results on real replicas.

    python -m tests.support.dependency_run [--seeds 20] [--seed 1] [--transactions 100000] [--workers 4,16] [--image FULL ...]
                                            [--source mysql56]

For each seed: a MySQL 5.6 (or 9.7, for columns that 5.6 does not have) that eight connections write to until it has logged so many
transactions (about half of those that are tried change something), a relay with a view, and one MySQL 9.7 after the other as its
replica, with each number of workers, and with replica_preserve_commit_order ON and OFF. Their tables must be the source's, and the
checker of dependencies must find nothing in the view's files. Exit status 1 means that something was found; the archive and the view
are kept then.
"""

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.servers import SERVERS, Server
from protocol.gtid.gtid_set import GtidSet
from tests.support.dependency_checker import check_dependencies
from tests.support.key_judge import KeyJudge
from tests.support.key_workload import DATABASE, KeyWorkload
from tests.support.numbered_groups import width_of
from tests.support.table_values import check_equal
from tests.support.view_chain import ViewChain, view_keys, wait_executed
from tests.support.view_files import binlogs_in

IMAGES: Final = ("FULL", "MINIMAL", "NOBLOB")
WORKERS: Final = (4, 16)
_SOURCE: Final = ("--binlog-format=ROW", "--innodb-lock-wait-timeout=3", "--max-connections=50")
_GTIDS: Final = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON")
# The rate of a machine that does other things too.
_LEAST_A_SECOND: Final = 100
_LEAST_TRIED: Final = 100


@dataclass(frozen=True, slots=True)
class DependencyRun:
    """The run of one seed. `transactions` is how many the source logs, at least; `image` is its binlog_row_image. With `first_version`
    row events of a MySQL 5.6 are of version 1."""

    seed: int
    transactions: int
    workers: Sequence[int] = WORKERS
    image: str = "FULL"
    first_version: bool = False
    source: str = "mysql56"

    def run(self, servers: Callable[[str], Server], scratch: Path) -> str:
        """Return what was found right, in one line. Raises: AssertionError."""
        given_up_s = 60 + self.transactions / _LEAST_A_SECOND
        is_old = self.source == "mysql56"
        options = [*_SOURCE, f"--binlog-row-image={self.image}"]
        keys = view_keys(dependencies="writeset")
        if not is_old:
            # It forgets all but the newest of its own dependencies: the view's then allow more to run together.
            options += [*_GTIDS, "--binlog-transaction-dependency-history-size=1"]
            keys = view_keys(gtids="keep", dependencies="writeset")
        elif self.first_version:
            options.append("--log-bin-use-v1-row-events=1")
        with ViewChain(servers, self.source, scratch / "relay", options=options, views=[keys]) as chain:
            work = KeyWorkload(chain.source, self.seed, generated=not is_old)
            written_s, left = 0.0, self.transactions
            while left > 0:
                begun = time.monotonic()
                work.run(max(2 * left, _LEAST_TRIED))
                written_s += time.monotonic() - begun
                chain.wait_viewed(timeout_s=given_up_s)
                gtids = chain.gtids_of_view()
                left = self.transactions - GtidSet.from_text(gtids).count
            applied = []
            for workers in self.workers:
                for order in ("ON", "OFF"):
                    begun = time.monotonic()
                    named = (f"--replica-parallel-workers={workers}", f"--replica-preserve-commit-order={order}")
                    replica = chain.view_replica(options=[*_GTIDS, *named])
                    wait_executed(replica, gtids, chain.relay, given_up_s)
                    check_equal(chain.source, replica, [DATABASE])
                    applied.append(f"{workers} {order} {time.monotonic() - begun:.1f} s")
                    replica.close()
            binlogs = binlogs_in(chain.view_directory())
            with KeyJudge(servers("mysql97").start(server_id=99)) as judge:
                # A new source lets a statement run beside what is committed with it.
                groups = check_dependencies(judge, binlogs, alone=is_old)
            assert groups >= self.transactions, f"{groups} transactions in the view's files"
            failed = sum(work.failed.values())
            told = f"{groups} transactions in {len(binlogs)} files, {failed} statements failed, width {width_of(binlogs):.2f}"
            return f"{told}; written in {written_s:.1f} s; applied by {', '.join(applied)}"


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--transactions", type=int, default=100_000)
    parser.add_argument("--workers", default=",".join(map(str, WORKERS)))
    parser.add_argument("--image", choices=IMAGES, action="append", help="by turns; default: all")
    parser.add_argument("--source", choices=("mysql56", "mysql97"), default="mysql56")
    chosen = parser.parse_args()
    images, workers = chosen.image or IMAGES, [int(count) for count in chosen.workers.split(",")]
    found = 0
    for number, seed in enumerate(range(chosen.seed, chosen.seed + chosen.seeds)):
        scratch = Path(tempfile.mkdtemp(prefix=f"dependency-run-{seed}-"))
        os.chmod(scratch, 0o755)
        image = images[number % len(images)]
        run = DependencyRun(seed, chosen.transactions, workers, image, number % 2 == 1, chosen.source)
        with contextlib.ExitStack() as stack:
            try:
                told = run.run(lambda name: stack.enter_context(SERVERS[name]()), scratch)
                shutil.rmtree(scratch)
            except Exception as error:
                found += 1
                told = f"{type(error).__name__}: {error}\nkept: {scratch}"
        print(f"seed {seed}, {run.image}: {told}", flush=True)
    print(f"{chosen.seeds} seeds, {found} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
