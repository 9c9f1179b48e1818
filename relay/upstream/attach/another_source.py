"""The decision whether the archive can go on with another server than its own. These are checked in this order:

1. its kind: the binlogs of MySQL and MariaDB are not mixed
2. whether it is the archive's own server: then it is another address of it, and none of this is checked
3. whether it has the archive's binlogs, at the same coordinates (a copy on another machine): then the stream goes on in them
4. whether both have GTIDs, and the archive's last transactions too
5. whether it has every transaction that the archive has; else it lags, was reset, or has diverged
6. whether transactions that the archive does not have were purged there
7. which file contains the first of those: with it a new generation of the archive begins
"""

from collections.abc import Awaitable, Callable
from typing import Final

from protocol.gtid.dump_refusals import shown_set
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from relay.archive.generation import Generation
from relay.archive.storage.gtid_facts import GtidValue
from relay.upstream.attach.missing_gtids import missing_in_set, missing_of_position, missing_transactions_error
from relay.upstream.attach.starting_gtids import file_for_gtids
from relay.upstream.source.connection import SourceConnection
from relay.upstream.source.source_errors import ACCEPT_GAP, FailureKind, UpstreamError
from relay.upstream.source.source_gtids import SourceGtids

_WHAT: Final = "the archive"


async def file_to_go_on_with(
    generation: Generation,
    executed: GtidValue | None,
    source: SourceGtids,
    where: str,
    open_connection: Callable[[], Awaitable[SourceConnection]],
    not_the_same: UpstreamError,
) -> str:
    """Return the file of the source at `where` with which a new generation begins, steps 4 to 7. `executed` is that of all generations.

    `not_the_same` says why it does not have the archive's binlogs. Raises: UpstreamError, IDENTITY or POSITION_GONE if the archive
    cannot go on with it.
    """
    _both_have_gtids(generation, executed, source, where, not_the_same)
    if isinstance(executed, GtidList):
        missing = missing_of_position(executed.position, source)
    else:
        missing = missing_in_set(executed, source, same_server=False) if executed is not None else ""
    if missing:
        raise missing_transactions_error(missing, where)
    if executed is None or isinstance(executed, GtidSet):
        held = executed if executed is not None else GtidSet()
        purged = source.purged - held
        if purged:
            raise UpstreamError(
                FailureKind.POSITION_GONE,
                f"the source {where} has purged binlogs with transactions that the archive lacks: {shown_set(purged)}; "
                f"the archive has {shown_set(held)}",
                "Nothing was changed here. Name a source that still has them, or put the purged binlogs back there. "
                f"{ACCEPT_GAP}",
                name="source_purged_transactions",
            )
        text = held.line
    else:
        text = str(executed.position)
    asking = await open_connection()
    try:
        return await file_for_gtids(asking, text, source, of=_WHAT)
    finally:
        asking.close()


def _both_have_gtids(
    generation: Generation, executed: GtidValue | None, source: SourceGtids, where: str, not_the_same: UpstreamError
) -> None:
    """Raise UpstreamError IDENTITY, with what must change, if one of the two has no GTIDs."""
    state = source.binlog_state
    why = ""
    if isinstance(executed, GtidList):
        if not len(executed):
            why = "the archive's transactions have no GTIDs"
        elif state is None:
            why = f"{where} tells no @@gtid_binlog_state"
    elif source.mode != "ON":
        why = f"{where} has GTID_MODE = {source.mode or 'OFF, or none at all'}"
    place = last_without_gtids(generation)
    if not why and place is not None:
        why = f"the archive's newest transactions, in {place}, are not all with GTIDs"
    if not why:
        return
    raise UpstreamError(
        FailureKind.IDENTITY,
        f"{not_the_same.what}. It could be gone on with by GTID, but {why}",
        "Without GTIDs a source can only be exchanged for one with the same binlogs at the same coordinates, such as a copy of "
        "its disk. Nothing was changed here and replicas are served on: name such a source, or give this one an archive of "
        f"its own (source.name). {ACCEPT_GAP}",
        name=not_the_same.name,
    )


def last_without_gtids(generation: Generation) -> str | None:
    """Return the newest file with transactions if some of them have no GTID: it is unknown whether another source has those."""
    view = generation.gtids.view()
    newest = max((place for place, file in enumerate(generation.files) if file.groups), default=None)
    return view.names[newest] if newest is not None and newest in view.anonymous_files else None
