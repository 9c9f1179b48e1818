"""The start by `source.start = { gtid = … }`: the first file is the one with which the source would begin for such a replica.

An archived file is a copy of the source's from its first byte on, so the stream itself is requested by file and position.
"""

from typing import Final

import structlog

from protocol.errors import Malformed
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.dump_request import encode_binlog_dump_gtid, known_to
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidPosition
from protocol.sql.server_version import version_numbers
from relay.upstream.source.connection import SourceConnection
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.source.source_gtids import SourceGtids

log = structlog.get_logger()

_DUMP_NON_BLOCK: Final = 1


async def file_for_gtids(
    connection: SourceConnection, text: str, source: SourceGtids, *, of: str = "source.start"
) -> str:
    """Return the source's file for a replica that has the transactions in `text`; the connection is used up by the question.

    `of` says whose transactions they are, for the messages. Raises: UpstreamError, SETUP for a text or a source of another kind,
    POSITION_GONE for purged transactions.
    """
    facts = connection.facts
    held, position = _parsed(text, facts.flavour)
    if held is None:
        file = await connection.file_for_position(str(position), of)
        log.info("start_file_found", gtid=str(position), file=file, note="the file is archived from its beginning")
        return file
    if source.mode != "ON":
        raise UpstreamError(
            FailureKind.SETUP,
            f"source.start names GTIDs, and the source has GTID_MODE = {source.mode or 'OFF, or none at all'}",
            'Only with ON can it be asked by GTID: write start = { file = "…" } or start = "earliest".',
            name="gtid_mode_off",
        )
    asked = encode_gtid_set(known_to(version_numbers(facts.version), held))
    file = await connection.file_for_set(encode_binlog_dump_gtid(asked, flags=_DUMP_NON_BLOCK, server_id=0), of)
    log.info("start_file_found", gtid=held.line, file=file, note="the file is archived from its beginning")
    return file


def _parsed(text: str, flavour: str) -> tuple[GtidSet | None, GtidPosition | None]:
    try:
        if flavour == "mysql":
            return GtidSet.from_text(text), None
        return None, GtidPosition.from_text(text)
    except Malformed as error:
        kind, example = (
            ("MySQL", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77") if flavour == "mysql" else ("MariaDB", "0-1-77")
        )
        raise UpstreamError(
            FailureKind.SETUP,
            f"source.start names GTIDs that are none of a {kind} source: {error}",
            f'Write start = {{ gtid = "{example}" }}, as its kind of server writes them.',
            name="gtid_of_another_kind",
        ) from error
