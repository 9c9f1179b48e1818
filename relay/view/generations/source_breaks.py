"""Why a view does not go on from one file of the archive to the next: places where what follows is not what follows there."""

from collections.abc import Sequence
from typing import Final, TypeVar

from protocol.position import Position, binlog_number
from relay.view.rules.group import StopReason

T = TypeVar("T")
_NEW_VIEW: Final = (
    "Replicas of the view are served up to there. Make another [[view]] with a start in the files behind it, its `next` above "
    "the numbers of this one, and give it new replicas, or these with a new copy of the data."
)


def file_gone(name: str) -> StopReason:
    """The file that comes next is not there."""
    text = f"{name} is not in the archive any more, or not yet"
    return StopReason("source_file_gone", text, 0, "Rebuild the view with a start that the archive still has.")


def start_inside(view: str, start: Position, before: int, after: int | None) -> StopReason:
    """A view's start is no place between two transactions. before, after: the nearest that are; None: not known yet."""
    near = f"{start.file}:{before} before, {'none after yet' if after is None else f'{start.file}:{after} after'}"
    text = f"start = {start} is inside a transaction: the nearest good positions are {near}"
    advice = (
        f"Write one of them into start of [[view]] {view}, with the number that follows there: the relay that numbers tells it by "
        f'"binlog-relay view find {view} --source {start.file}:{before}". Then restart this relay.'
    )
    return StopReason("start_inside_transaction", text, 0, advice)


def start_file_missing(view: str, start: Position, oldest: str) -> StopReason:
    """The archive has no file of that name. oldest: of its files, the name."""
    why = f"{start.file}, with which the view is to begin, is not in the archive yet; its oldest file is {oldest}"
    return start_not_archived(view, start, why)


def start_not_archived(view: str, start: Position, why: str) -> StopReason:
    """The archive has not what a view is to begin with. why: what it has instead, which stays the same."""
    text = f"start = {start}: {why}"
    advice = (
        f"If it is still to come, the view begins by itself then. Else correct the view's start in [[view]] {view} and restart the "
        f'relay; "binlog-relay archive list" shows what there is.'
    )
    return StopReason("start_not_archived", text, 0, advice)


def source_changed(name: str, why: str = "") -> StopReason:
    """Behind the file `name` the files of another source begin. why: nobody can tell what replicas have of them."""
    text = f"another source is followed since the end of {name}, and which of its transactions the view has already is not known"
    return StopReason("source_changed", f"{text}: {why}" if why else text, 0, _NEW_VIEW)


def no_gtids(name: str) -> StopReason:
    """The same, and replicas of the view do not follow by GTID."""
    return source_changed(name, "the view gives transactions no GTIDs")


def gave_numbers(name: str) -> StopReason:
    """The same, and the other source may have the same transactions under other GTIDs than the view."""
    why = "the view gave numbers to transactions that had no GTIDs, and under which ones the other source may have them"
    return source_changed(name, f"{why} is not known")


def up_to_fork(ends: Sequence[tuple[T, str, int]], fork: Position) -> list[tuple[T, str, int]]:
    """Of files before a gap, each with its name and its end, those that a view is made of, up to where; at least the first."""
    kept = [one for one in ends if binlog_number(one[1]) <= binlog_number(fork.file)] or list(ends[:1])
    return [(of, name, min(end, fork.offset) if name == fork.file else end) for of, name, end in kept]


def gap_in_archive(name: str) -> StopReason:
    """Behind what is served of the file `name` is a gap."""
    text = f"behind {name} the archive has a gap that somebody accepted: a replica of the view would miss what is not there"
    return StopReason("gap_in_archive", text, 0, _NEW_VIEW)
