"""The common part of the fuzzers: numbered cases from a seed, until a limit, and the command that keeps failing cases."""

import argparse
import itertools
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

_MOST_FOUND = 10
C = TypeVar("C")


def broken_cases(
    seed: int,
    make: Callable[[random.Random], C],
    check: Callable[[C], object],
    *,
    cases: int | None = None,
    seconds: float | None = None,
) -> Iterator[tuple[int, C, str]]:
    """Try cases until either limit; yield number, case and reason of each that fails: whatever `check` raises."""
    end = None if seconds is None else time.monotonic() + seconds
    for number in itertools.count() if cases is None else range(cases):
        if end is not None and time.monotonic() > end:
            print(f"{number} cases", file=sys.stderr)
            return
        case = make(random.Random(f"{seed}-{number}"))
        try:
            check(case)
        except Exception as error:
            yield number, case, f"{type(error).__name__}: {error}"


def fuzz_command(
    description: str,
    run: Callable[[int, float], Iterator[tuple[int, C, str]]],
    save: Callable[[C, Path], None],
    findings: Path,
    note: str = "",
) -> int:
    """Run `run(seed, seconds)` by `--seconds`, `--seed`, and save failing cases in `findings`; return 1 if there were any."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}{note}")
    found = 0
    for number, case, reason in itertools.islice(run(arguments.seed, arguments.seconds), _MOST_FOUND):
        found += 1
        path = findings / f"{arguments.seed}-{number}.json"
        path.parent.mkdir(exist_ok=True)
        save(case, path)
        print(f"{path}: {reason}")
    return 1 if found else 0
