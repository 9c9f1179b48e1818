"""The reasons why replicas are not served what is new, if any."""

from typing import Final, NamedTuple

from relay.http.facts.relay_snapshot import RelaySnapshot

ARCHIVE_FAILED: Final = "archive_failed"
NOT_ATTACHED: Final = "source_not_attached"
BEHIND: Final = "source_behind"


class NotReady(NamedTuple):
    """A reason, by name and as a sentence. It can be read without a login: it names no account, address or file."""

    name: str
    text: str


def reasons_not_ready(shot: RelaySnapshot, behind_s: float) -> list[NotReady]:
    """Return the reasons; none: it is ready. behind_s: the lag that is allowed."""
    found = []
    if shot.generations and shot.generations[-1].state == "failed":
        found.append(
            NotReady(ARCHIVE_FAILED, "the archive cannot be written; archive_write_failed in the log says why")
        )
    if shot.status.io_running != "Yes":
        why = f" ({shot.trouble})" if shot.trouble else ""
        if shot.status.stopped_by_operator:
            why = " (somebody stopped it: START REPLICA)"
        found.append(
            NotReady(NOT_ATTACHED, f"the relay is not attached to its source{why}; SHOW REPLICA STATUS says more")
        )
    if shot.behind_s is not None and shot.behind_s > behind_s:
        found.append(
            NotReady(BEHIND, f"the archive is {shot.behind_s} s behind the source; http.ready_behind_s is {behind_s:g}")
        )
    return found
