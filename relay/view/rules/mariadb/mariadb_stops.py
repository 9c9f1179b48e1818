"""Why a view of a MariaDB source stops before a group, for what is about GTIDs and events."""

from typing import Final

from protocol.binlog.event_type import event_type_name
from relay.view.rules.group import CannotBeKept, StopReason

_MALFORMED_GTID: Final = 1774
_UNKNOWN_EVENT: Final = 13121


def gtid_missing() -> CannotBeKept:
    """The server wrote no GTIDs."""
    return CannotBeKept(
        StopReason(
            "mariadb_gtid_missing",
            "a transaction without a GTID: servers before MariaDB 10.0 write none, and the view's GTIDs are made of the source's",
            0,
            "Make the view from the first file of a MariaDB 10.0 or later (`start`), or replicate through one in between.",
        )
    )


def not_rising(domain: int, sequence: int, last: int) -> CannotBeKept:
    """Replicas would take the group for one that they have."""
    return CannotBeKept(
        StopReason(
            "sequence_not_rising",
            f"the number {sequence} of domain {domain} comes behind {last}: the GTIDs of a domain do not rise, and replicas would pass "
            "over the transaction without a word",
            0,
            "Set gtid_strict_mode = ON at the source, and give each server that is written to a gtid_domain_id of its own. What stands "
            "here gets no GTID: carry it out on the replicas by hand, then `view skip`; or make a view that starts behind it, and seed "
            "its replicas anew.",
        )
    )


def definition_of_former_source(table: str) -> CannotBeKept:
    """Another source goes on, whose binlogs need not have the definition."""
    return CannotBeKept(
        StopReason(
            "source_changed",
            f"another source is followed, and what its rows of {table} are on the replicas (VECTOR, JSON) is told by definitions in "
            "the binlogs of the former one alone",
            0,
            "Replicas of the view are served up to there. Make another [[view]] with a start in the files behind it, and give it new "
            "replicas with a new copy of the data, taken behind the change.",
        )
    )


def sequence_too_great(domain: int, sequence: int) -> CannotBeKept:
    """MySQL's numbers have 63 bits."""
    return CannotBeKept(
        StopReason(
            "sequence_too_great",
            f"the number {sequence} of domain {domain} is above what a GTID of MySQL may have",
            _MALFORMED_GTID,
            "Give the source another gtid_domain_id, carry out on the replicas what stands here, and `view skip`.",
        )
    )


def event_of_mariadb(kind: int) -> CannotBeKept:
    """MySQL has no such event, and nothing that could stand in its place."""
    return CannotBeKept(
        StopReason(
            "event_unsupported",
            f"no replica of this view reads events of type {event_type_name(kind)} ({kind})",
            _UNKNOWN_EVENT,
            "Carry out on the replicas what the transaction does, and `view skip`.",
        )
    )


def replaced_inside_transaction() -> CannotBeKept:
    """A statement that commits stands behind others of its transaction."""
    return CannotBeKept(
        StopReason(
            "statement_commits",
            "a statement that becomes two, of which the first commits, stands behind others of its transaction",
            0,
            "Write DROP TABLE IF EXISTS and CREATE TABLE in place of CREATE OR REPLACE at the source; carry it out on the replicas by "
            "hand, and `view skip`.",
        )
    )
