"""The transactions of the archive that a source does not have."""

from protocol.gtid.dump_refusals import shown_set
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import DomainGtid, GtidList, GtidPosition
from relay.upstream.source.source_errors import ACCEPT_GAP, FailureKind, UpstreamError
from relay.upstream.source.source_gtids import SourceGtids


def missing_in_set(archived: GtidSet | GtidList, source: SourceGtids, *, same_server: bool) -> str:
    """Return the transactions of the archive that the source does not know, as text for a person; empty if it has them all.

    A MariaDB domain that the same server no longer knows was removed from its state on purpose (FLUSH BINARY LOGS DELETE_DOMAIN_ID),
    unless nothing at all is left there.
    """
    if isinstance(archived, GtidSet):
        lost = archived - source.executed if source.mode is not None else GtidSet()
        return shown_set(lost) if lost else ""
    state = source.binlog_state
    if state is None:
        return ""
    kept_domains = {gtid.domain_id for gtid in state}
    gone: list[str] = []
    for gtid in sorted(archived):
        if state.contains(gtid) or (same_server and kept_domains and gtid.domain_id not in kept_domains):
            continue
        gone.append(_range(gtid, state))
    return ", ".join(gone[:8]) + (f" and of {len(gone) - 8} more servers" if len(gone) > 8 else "")


def missing_of_position(archived: GtidPosition, source: SourceGtids, *, same_server: bool = False) -> str:
    """Return the same for a MariaDB server that others wrote before: the last group of each domain counts, and implies the ones before
    it.

    Only the last is looked for: a server that was made from a backup no longer knows the older servers of a domain.
    """
    state = source.binlog_state or GtidList()
    kept_domains = {gtid.domain_id for gtid in state}
    gone = [gtid for gtid in archived if not state.contains(gtid)]
    if same_server and kept_domains:
        gone = [gtid for gtid in gone if gtid.domain_id in kept_domains]
    return ", ".join(_range(gtid, state) for gtid in gone[:8])


def missing_in_its_files(
    own: GtidSet | GtidList, executed: GtidSet | GtidList, source: SourceGtids, *, same_server: bool
) -> str:
    """Return the same for the source of the archive's newest generation, whose files contain `own`.

    `executed` also covers the generations before it, which are of other servers.
    """
    if isinstance(own, GtidSet) or isinstance(executed, GtidSet):
        return missing_in_set(executed, source, same_server=same_server)
    if source.binlog_state is None:
        return ""
    return missing_in_set(own, source, same_server=same_server) or missing_of_position(
        executed.position, source, same_server=same_server
    )


def _range(last: DomainGtid, state: GtidList) -> str:
    """Return what is missing up to `last`: it alone, or everything after what the source has of that server."""
    held = state.server(last.domain_id, last.server_id)
    if held is None:
        return f"all of domain {last.domain_id} and server {last.server_id} up to {last}"
    return f"those after {held} up to {last}" if held.sequence_number + 1 < last.sequence_number else str(last)


def missing_transactions_error(missing: str, where: str) -> UpstreamError:
    """Return the refusal of a source that does not have all that the archive has."""
    return UpstreamError(
        FailureKind.IDENTITY,
        f"the source {where} lacks transactions that the archive has: {missing}",
        "It lost them in a crash, was reset (RESET MASTER), was restored from a backup, or never had them when it was promoted; "
        "replicas of this relay may have them. The archive is untouched and served on. Wait until the source has applied them, "
        f"or put them back there, and START REPLICA at the relay; or name another source. {ACCEPT_GAP}",
        name="source_lacks_transactions",
    )
