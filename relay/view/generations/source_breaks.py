"""Why a view does not go on from one file of the archive to the next: places where what follows is not what follows there."""

from typing import Final

from relay.view.rules.group import StopReason

_NEW_VIEW: Final = (
    "Replicas of the view are served up to there. Make another [[view]] with a start in the files behind it, its `next` above "
    "the numbers of this one, and give it new replicas, or these with a new copy of the data."
)


def file_gone(name: str) -> StopReason:
    """The file that comes next is not there."""
    text = f"{name} is not in the archive any more, or not yet"
    return StopReason("source_file_gone", text, 0, "Rebuild the view with a start that the archive still has.")


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


def gap_in_archive(name: str) -> StopReason:
    """Behind what is served of the file `name` is a gap."""
    text = f"behind {name} the archive has a gap that somebody accepted: a replica of the view would miss what is not there"
    return StopReason("gap_in_archive", text, 0, _NEW_VIEW)
