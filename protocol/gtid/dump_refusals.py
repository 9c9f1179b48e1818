"""Refusals of replicas that ask by GTID: the sentences of real sources, then the requested, present and missing transactions.

A replica keeps some 480 bytes of an error's text, so a server's long advice is cut to its first sentence, and the sets show
their first transactions only.
"""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from protocol.errors import ErrorCode, PositionRefused
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList, GtidPosition
from protocol.printable import cut_text

_MAX_TEXT_BYTES: Final = 480
_MAX_SET_CHARACTERS: Final = 90
_REPLICA_WORDS_SINCE: Final = (8, 0, 26)


def ahead_of(held: GtidSet, executed: GtidSet, source_uuids: Iterable[UUID]) -> GtidSet:
    """Return the source's own transactions that the replica has and the source lacks. A surplus of other servers' is allowed."""
    own = {uuid.bytes for uuid in source_uuids}
    return held.of_sources([key for key in held.intervals_by_key() if key[:16] in own]) - executed


def mode_refused(gtid_mode: str) -> PositionRefused:
    """Return the refusal of auto-position by a source whose GTID_MODE is not ON."""
    return _refused(
        f"The replication sender thread cannot start in AUTO_POSITION mode: this server has GTID_MODE = {gtid_mode} "
        "instead of ON."
    )


def ahead_refused(surplus: GtidSet, version: tuple[int, ...]) -> PositionRefused:
    """Return the refusal of a replica with transactions of the source that the source lacks: one of them lost its end."""
    if version >= _REPLICA_WORDS_SINCE:
        text = "Replica has more GTIDs than the source has, using the source's SERVER_UUID."
    else:
        text = "Slave has more GTIDs than the master has, using the master's SERVER_UUID."
    return _refused(
        f"{text} The replica has, and the relay and its source have not: {shown_set(surplus)}. "
        "Source or replica lost its newest transactions"
    )


def purged_refused(held: GtidSet, missing: GtidSet, version: tuple[int, ...]) -> PositionRefused:
    """Return the refusal of a replica that needs transactions which no file contains any more."""
    if version >= _REPLICA_WORDS_SINCE:
        text = "Cannot replicate because the source purged required binary logs."
    else:
        text = (
            "The slave is connecting using CHANGE MASTER TO MASTER_AUTO_POSITION = 1, but the master has purged binary logs "
            "containing GTIDs that the slave requires."
        )
    return _refused(
        f"{text} The GTID set sent by the replica is '{shown_set(held)}', and the missing transactions are "
        f"'{shown_set(missing)}'. Copy the data to the replica again"
    )


def anonymous_refused(file: str, offset: int, *, is_exact: bool = True) -> PositionRefused:
    """Return the refusal because of a transaction without a GTID at `offset` of `file`, or if not `is_exact` somewhere after it."""
    place = f"position {offset}" if is_exact else f"after position {offset}"
    return _refused(
        f"Cannot replicate anonymous transaction when AUTO_POSITION = 1, at file {file}, {place}. "
        "Let the replica pass it by file and position, or copy the data again"
    )


def unreadable_refused(file: str) -> PositionRefused:
    """Return the refusal of a stream with a file whose GTIDs are not known: the transactions to leave out cannot be determined."""
    return _refused(
        f"binlog-relay cannot read the GTIDs in {file} (its ledger: gtid_unreadable), so no replica that asks by GTID gets "
        "that file. Let the replica ask by file and position, or copy the data to it again"
    )


def gtid_refused(file: str, offset: int) -> PositionRefused:
    """Return the refusal because the source's GTID_MODE is OFF, and a transaction at `offset` of `file` has a GTID."""
    return _refused(
        f"Cannot replicate GTID-transaction when @@GLOBAL.GTID_MODE = OFF, at file {file}, position {offset}. "
        "The source's GTID_MODE was changed: set it back, or follow by file and position"
    )


def check_mariadb_position(position: GtidPosition, state: GtidList, *, ignore_duplicates: bool) -> None:
    """Check that each group of the position was in the source's binlog, whose `state` at its end is `@@gtid_binlog_state`.

    A domain that the source never saw is no error, and with `ignore_duplicates` neither is a group that is still to come.
    Raises: PositionRefused. Checked on MariaDB 10.11.
    """
    newest = state.position
    for gtid in position:
        last = newest.domain(gtid.domain_id)
        if last is None or state.contains(gtid):
            continue
        later = last.sequence_number < gtid.sequence_number
        if later and ignore_duplicates:
            continue
        text = f"Error: connecting slave requested to start from GTID {gtid}, which is not in the master's binlog."
        if not later:
            text += (
                " Since the master's binlog contains GTIDs with higher sequence numbers, it probably means that the slave has "
                "diverged due to executing extra erroneous transactions."
            )
        raise _refused(f"{text} The newest of domain {gtid.domain_id} is {last}")


def mariadb_purged_refused(position: GtidPosition, oldest: GtidList) -> PositionRefused:
    """Return the refusal when no file starts at or before the position. `oldest` is the list at the head of the oldest file."""
    return _refused(
        "Could not find GTID state requested by slave in any binlog files. Probably the slave state is too old and required "
        f"binlog files have been purged. Asked: '{_short(str(position))}', the oldest file begins behind '"
        f"{_short(str(oldest.position))}'"
    )


def hole_refused(position: GtidPosition, domain_id: int) -> PositionRefused:
    """Return the refusal in strict mode: a later group of the same server came, but the position's own group never did."""
    return _refused(
        f"The binlog on the master is missing the GTID {position.domain(domain_id)} requested by the slave (even though both "
        "a prior and a subsequent sequence number does exist), and GTID strict mode is enabled"
    )


def shown_set(gtid_set: GtidSet) -> str:
    """Return a set in one line for a message: all of it, or its beginning and how many transactions it contains."""
    # The text of a million intervals is not generated to show eighty characters.
    if gtid_set.interval_count <= 64 and len(gtid_set.line) <= _MAX_SET_CHARACTERS:
        return gtid_set.line
    tsid, first, last = gtid_set.first_run
    return f"{tsid}:{first}{f'-{last}' if last > first else ''}... ({gtid_set.count} in all)"


def _short(text: str) -> str:
    return text if len(text) <= _MAX_SET_CHARACTERS else f"{text[: _MAX_SET_CHARACTERS - 3]}..."


def _refused(text: str) -> PositionRefused:
    return PositionRefused(
        ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG, cut_text(text, _MAX_TEXT_BYTES).decode("utf-8", "ignore")
    )
