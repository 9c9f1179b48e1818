"""The changes of a table that belong to one row: a row lives from its insert to its delete, and may have other keys in between.

Keys are unique: at any time one row has a key, or none. So a row is followed by its key from each change to the next.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Key = tuple[str, ...]
Order = tuple[int, ...]
"""This orders changes in an archive: later ones have a larger one."""


@dataclass(frozen=True, slots=True)
class Move:
    """An update that gave a row another key."""

    at: Order
    before: Key
    after: Key


@dataclass(frozen=True, slots=True)
class KeyedChange:
    """A change of a row. `before` is None for an insert, `after` for a delete; both are None where all rows of the table were
    removed."""

    at: Order
    before: Key | None
    after: Key | None


def keys_of_lives(key: Key, moves: Sequence[Move]) -> set[Key]:
    """Return every key that a row had, or may have had, which at some time had `key`. `moves` are those of the whole table, in order.

    There may be too many, if a row was deleted and its key given to another: `lives_of` finds out.
    """
    out_of: defaultdict[Key, list[Move]] = defaultdict(list)
    into: defaultdict[Key, list[Move]] = defaultdict(list)
    for move in moves:
        out_of[move.before].append(move)
        into[move.after].append(move)
    found = {key}
    for move in out_of[key]:
        found |= _forwards(move, out_of)
    for move in into[key]:
        found |= _backwards(move, into)
    return found


def _forwards(move: Move, out_of: dict[Key, list[Move]]) -> set[Key]:
    found = set()
    while True:
        found.add(move.after)
        further = out_of.get(move.after, [])
        at = bisect_right(further, move.at, key=_at)
        if at == len(further):
            return found
        move = further[at]


def _backwards(move: Move, into: dict[Key, list[Move]]) -> set[Key]:
    found = set()
    while True:
        found.add(move.before)
        earlier = into.get(move.before, [])
        at = bisect_left(earlier, move.at, key=_at)
        if not at:
            return found
        move = earlier[at - 1]


def _at(move: Move) -> Order:
    return move.at


def lives_of(key: Key, changes: Iterable[KeyedChange]) -> dict[Order, int]:
    """Map the place of each change of a row that at some time had `key` to the number of that row, 1 for the first.

    `changes` are, in order, all that have a key of `keys_of_lives`.
    """
    row_with: dict[Key, int] = {}
    of_row: list[list[Order]] = []
    wanted: set[int] = set()
    for change in changes:
        if change.before is None and change.after is None:
            row_with.clear()
            continue
        row = row_with.pop(change.before, None) if change.before is not None else None
        if row is None:
            of_row.append([])
            row = len(of_row) - 1
        of_row[row].append(change.at)
        if change.after is not None:
            row_with[change.after] = row
        if key in (change.before, change.after):
            wanted.add(row)
    rows = [places for number, places in enumerate(of_row) if number in wanted]
    return {at: number for number, places in enumerate(sorted(rows), 1) for at in places}
