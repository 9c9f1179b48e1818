"""Transactions that the archive has and the source has lost: which these are, and whether a replica has some of them.

The source gives the numbers that it lost to other transactions. So a GTID of these is ambiguous, and a replica that has it from
before would silently pass over the other transaction.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from protocol.gtid.dump_refusals import shown_set
from protocol.gtid.file_gtids import FileGtidCollector
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid, GtidList, GtidPosition
from relay.archive.gaps.accepted_gap import AcceptedGap
from relay.archive.storage.files import FileLayer, StoredFile
from relay.archive.storage.gtid_facts import GtidValue
from relay.binlog_file.file_bytes import pieces

_NOTHING: Final = GtidSet()


@dataclass(frozen=True, slots=True)
class GapGtids:
    """A gap by GTID, as texts. lost: what the archive has and the source does not have any more; state: what both have executed at
    the gap; missing: what the source executed after that and the archive does not have."""

    lost: str
    state: str
    missing: str


class ArchivedPart(NamedTuple):
    """The range [start, stop) of an archived file, both ends between two transactions."""

    path: Path
    start: int
    stop: int
    checksum: bool


def mysql_gtids_in(layer: FileLayer, parts: Iterable[ArchivedPart]) -> GtidSet:
    """Return the GTIDs of a MySQL source's transactions in these parts. Blocking. Raises: OSError; Malformed; ArchiveUnavailable."""
    found = GtidSet()
    for part in parts:
        collector = FileGtidCollector("mysql", checksum=part.checksum)
        collector.begin(part.start)
        with StoredFile.open(layer, part.path) as stored:
            for piece in pieces(stored, part.start, part.stop):
                collector.take(piece)
        inside = collector.inside()
        assert isinstance(inside, GtidSet)
        found |= inside
    return found


def mysql_gap(executed: GtidSet, source_has: GtidSet, before_file: GtidSet, cut_off: GtidSet = _NOTHING) -> GapGtids:
    """Return the gap. executed: by all that is archived. source_has: of that, what is the same at the source. before_file: what the
    source had executed before the file with which it continues. cut_off: the archived part that replicas are sent no more."""
    lost = (executed - source_has) | cut_off
    state = executed - lost
    return GapGtids(lost.line, state.line, (before_file - state).line)


def mariadb_gap(executed: GtidList, source_has: GtidList, before_file: GtidList) -> GapGtids:
    """Return the gap by states. A domain that the source no longer knows, while it knows others, was removed there on purpose."""
    known = {gtid.domain_id for gtid in source_has}
    newest = {gtid.domain_id: gtid for gtid in executed.position}
    lost_domains = {
        domain
        for domain, gtid in newest.items()
        if not source_has.contains(gtid) and (domain in known or not len(source_has))
    }
    lost = [gtid for gtid in executed if gtid.domain_id in lost_domains and not source_has.contains(gtid)]
    state = GtidList(
        [
            *(gtid for gtid in executed if gtid.domain_id not in lost_domains),
            *(gtid for gtid in source_has if gtid.domain_id in lost_domains),
        ]
    )
    missing = [_range(gtid, state) for gtid in before_file if not state.contains(gtid)]
    return GapGtids(",".join(map(str, lost)), str(state), ", ".join(missing))


def _range(last: DomainGtid, state: GtidList) -> str:
    held = state.server(last.domain_id, last.server_id)
    if held is None or held.sequence_number + 1 >= last.sequence_number:
        return str(last) if held is not None else f"all of {last.domain_id}-{last.server_id} up to {last}"
    return f"those after {held} up to {last}"


def lost_and_held(
    gap: AcceptedGap, held: GtidSet | GtidPosition, executed: GtidValue | None, purged: GtidValue | None
) -> str:
    """Return, as text, the lost transactions that a replica has that reports `held`; empty: none, or those of the same number since.

    executed: what the archive has now, with everything after the gap; purged: of that, what was executed before the oldest file after
    the gap. A replica that has a transaction of the source's new history only did not come from the old one.
    """
    lost, state = gap.lost_gtids, gap.executed
    if isinstance(held, GtidSet):
        if not isinstance(lost, GtidSet) or not held.meets(lost):
            return ""
        new = executed - lost if isinstance(executed, GtidSet) else GtidSet()
        for old in (state, purged):
            new -= old if isinstance(old, GtidSet) else GtidSet()
        return "" if held.meets(new) else shown_set(held & lost)
    if not isinstance(lost, GtidList):
        return ""
    found = []
    for gtid in held:
        last = lost.server(gtid.domain_id, gtid.server_id)
        is_common = isinstance(state, GtidList) and state.contains(gtid)
        if last is not None and gtid.sequence_number <= last.sequence_number and not is_common:
            found.append(str(gtid))
    return ",".join(found)
