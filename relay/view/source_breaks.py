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


def source_changed(name: str) -> StopReason:
    """Behind the file `name` the files of another source begin."""
    text = f"another source is followed since the end of {name}, and which of its transactions the view has already is not known"
    return StopReason("source_changed", text, 0, _NEW_VIEW)


def gap_in_archive(name: str) -> StopReason:
    """Behind what is served of the file `name` is a gap."""
    text = f"behind {name} the archive has a gap that somebody accepted: a replica of the view would miss what is not there"
    return StopReason("gap_in_archive", text, 0, _NEW_VIEW)
