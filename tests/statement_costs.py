"""Lets every reader of statements meet texts that were made to cost much, and looks how the cost grows with them.

    python -m tests.statement_costs [--runs N] [--seed S] [--seconds T] [--reader WORD]

A text is a beginning of a statement and quotes, comments, brackets, keywords, digits ... again and again. Each goes to one of the
readers of the schema history, the views, the export and the feed, in sizes from 4 KiB to 1 MiB, until it costs something. What must
hold: no exception but a refusal, and what a byte costs does not grow with the text, and has a bound. A text that breaks this is
printed, with the seconds that it took.
"""

import argparse
import random
import sys
import time
import traceback

from tests.support.statement_costs import READERS, Finding, measure, random_text


def main() -> int:
    """Runs texts until a limit; 1 if there were findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--reader", default="", help="only readers with this in their names")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    random_ = random.Random(arguments.seed)
    end = time.monotonic() + arguments.seconds
    readers = [one for one in READERS if arguments.reader in one]
    broken = runs = 0
    while runs < arguments.runs and time.monotonic() < end:
        text = random_text(random_)
        runs += 1
        reader = random_.choice(readers)
        found: Finding | str | None
        try:
            found = measure(reader, text)
        except Exception:
            found = f"{reader}: {text}\n{traceback.format_exc()}"
        if found is not None:
            broken += 1
            print(found, flush=True)
    print(f"{runs} texts, {broken} findings, {time.process_time():.0f} s of processor time")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
