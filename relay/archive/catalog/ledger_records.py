"""The records of `ledger.jsonl`, one a line: rows of the ledger, the source, a generation's origin."""

import base64
from typing import Final

from relay.archive.catalog.catalog_rows import LedgerRow, decoded_state, encoded_state
from relay.archive.catalog.ledger_text import Record
from relay.archive.storage.archived_file import SourceIdentity
from relay.archive.storage.origin import Origin
from relay.disk.kept_json import kept_json

_MOST_OFFSET: Final = (1 << 63) - 1


def ledger_record(row: LedgerRow) -> Record:
    """Return the row as a record of `ledger.jsonl`."""
    return {
        "record": "ledger",
        "time": float(row.time),
        "kind": row.kind,
        "file": row.file,
        "offset": row.offset,
        "text": row.text,
        "details": row.details,
    }


def identity_record(identity: SourceIdentity) -> Record:
    """Return the source as a record of `ledger.jsonl`."""
    return {
        "record": "source",
        "flavour": identity.flavour,
        "version": identity.version,
        "server_id": identity.server_id,
        "server_uuid": identity.server_uuid,
    }


def origin_record(origin: Origin) -> Record:
    """Return the generation's origin as a record of `ledger.jsonl`; its state as in the event at a file's head, in base 64."""
    flavour, state = encoded_state(origin)
    return {
        "record": "origin",
        "time": float(origin.time),
        "file": origin.file,
        "after_file": origin.after_file,
        "after_offset": origin.after_offset,
        "flavour": flavour,
        "state": None if state is None else base64.b64encode(state).decode(),
    }


def read_record(line: bytes) -> LedgerRow | SourceIdentity | Origin | None:
    """Return the object that a whole line records; None: nothing that this version knows."""
    try:
        record = kept_json(line)
        if any(isinstance(value, list | dict) for value in record.values()):
            return None
        match record["record"]:
            case "ledger":
                names = ("time", "kind", "file", "offset", "text", "details")
                row = LedgerRow(*(record[name] for name in names))
                return row if _is_row(row) else None
            case "source":
                return SourceIdentity(*(record[name] for name in ("flavour", "version", "server_id", "server_uuid")))
            case "origin":
                state = None if record["state"] is None else base64.b64decode(record["state"], validate=True)
                place = (record["time"], record["file"], record["after_file"], record["after_offset"])
                return Origin(*place, decoded_state(record["flavour"], state))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return None


def _is_row(row: LedgerRow) -> bool:
    """Return whether every field has the type that it was written with; the line's checksum is no secret."""
    texts = (row.kind, row.file, row.text, row.details)
    return (
        type(row.time) in (int, float)
        and type(row.offset) is int
        and -1 <= row.offset <= _MOST_OFFSET
        and all(isinstance(text, str) for text in texts)
    )
