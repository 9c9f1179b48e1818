"""The fair division when there is not room for all: the smallest owners lose nothing, and the largest give up their last items."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def fair_part(items: Sequence[T], of: Callable[[T], Hashable], most: int) -> list[T]:
    """Return at most `most` of `items`, in their order: of each group that `of` returns, the first ones, up to the same number for
    all."""
    if len(items) <= most:
        return list(items)
    share = _share(Counter(map(of, items)).values(), most)
    taken: Counter[Hashable] = Counter()
    kept = []
    for item in items:
        group = of(item)
        taken[group] += 1
        if taken[group] <= share:
            kept.append(item)
    return kept


def _share(counts: Iterable[int], most: int) -> int:
    """Return the greatest number that each may keep so that all together keep no more than `most`, which is less than their sum."""
    ordered = sorted(counts)
    left = most
    for position, count in enumerate(ordered):
        share = left // (len(ordered) - position)
        if count > share:
            return share
        left -= count
    raise ValueError("there is room for all of them")
