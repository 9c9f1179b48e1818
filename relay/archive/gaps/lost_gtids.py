"""Transactions that the archive has and the source has lost: which these are, and whether a replica has some of them.

The source gives the numbers that it lost to other transactions. So a GTID of these says two things, and a replica that has it
from before would pass over the other transaction in silence.
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
    """A gap by GTID, as texts. lost: what the archive has and the source has no more; state: what both have executed at the gap;
    missing: what the source executed behind that, and nobody archived."""

    lost: str
    state: str
    missing: str


class ArchivedPart(NamedTuple):
    """[start, stop) of an archived file, both of them between two transactions."""

    path: Path
    start: int
    stop: int
    checksum: bool


def mysql_gtids_in(layer: FileLayer, parts: Iterable[ArchivedPart]) -> GtidSet:
    """The GTIDs of a MySQL source's transactions in these parts. Blocking. Raises: OSError; Malformed; ArchiveUnavailable."""
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
    """executed: by all that is archived. source_has: of that, what is the same at the source. before_file: what the source had
    executed before the file that is gone on with. cut_off: what replicas are sent no more of what is archived."""
    lost = (executed - source_has) | cut_off
    state = executed - lost
    return GapGtids(lost.line, state.line, (before_file - state).line)


def mariadb_gap(executed: GtidList, source_has: GtidList, before_file: GtidList) -> GapGtids:
    """The same by states. A domain that the source no longer knows, while it knows others, was taken out there on purpose."""
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
    """What of the lost transactions a replica has that reports `held`, as text; empty: none, or those of the same number since.

    executed: what the archive has now, with all behind the gap; purged: of that, what was executed before the oldest file
    behind the gap. Who has a transaction that only the source's new history has did not come from the old one.
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
