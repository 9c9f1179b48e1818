"""Lets relays meet hostile binlogs, kills them, and looks whether they start again and their archives are read.

    python -m tests.hostile_source [--runs N] [--seed S] [--seconds T] [--keep DIRECTORY]

A case is a series of recorded binlogs of MySQL 5.6, 9.7 or MariaDB with something wrong in it, as a stream of a fake source or as
a directory. The relay archives what it takes, makes a view of it with write sets, moves it to a bucket. It is killed, started,
killed; its archive is rebuilt, verified and listed, its files are read by `events` and by the levels of the audits and the feed;
then it is started once more. What must hold: only documented exit codes, no traceback, no line of the log that says it is a fault
of binlog-relay, no callback that holds the event loop over 20 ms of processor time. A case that breaks this is reported with its
number, by which it is repeated, and its directory is kept.
"""

import argparse
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.support.hostile_run import hostile_case, run_case
from tests.support.loop_holds import NO_HOLD
from tests.support.relay_template import offered


def main() -> int:
    """Runs cases until a limit; 1 if there were findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--keep", type=Path, default=None, help="where the directories of broken cases are kept")
    arguments = parser.parse_args()
    keep = arguments.keep or Path(tempfile.mkdtemp(prefix="hostile-source-"))
    end = time.monotonic() + arguments.seconds
    endings: Counter[str] = Counter()
    broken = runs = 0
    longest = NO_HOLD
    print(f"seed {arguments.seed}", flush=True)
    with offered():
        for number in range(arguments.first, arguments.first + arguments.runs):
            if time.monotonic() > end:
                break
            case = hostile_case(random.Random(f"{arguments.seed}-{number}"))
            findings, seen, hold = run_case(case, keep / str(number))
            longest = max(longest, hold, key=lambda one: one.cpu_s)
            endings.update(seen)
            runs += 1
            if findings:
                broken += 1
                print(f"case {number}: {case}", *findings[:4], sep="\n    ", flush=True)
    spent = sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"{runs} cases, {broken} broken, {spent:.0f} s of processor time; ended by: {dict(endings.most_common())}")
    print(f"the longest hold of an event loop: {longest}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
