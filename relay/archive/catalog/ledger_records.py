"""What stands in `ledger.jsonl`: rows of the ledger, the source, a generation's origin, each as the record of a line."""

import base64
import binascii

from relay.archive.catalog.catalog_rows import LedgerRow, decoded_state, encoded_state
from relay.archive.catalog.ledger_text import Record
from relay.archive.storage.archived_file import SourceIdentity
from relay.archive.storage.origin import Origin


def ledger_record(row: LedgerRow) -> Record:
    """The row as a line of `ledger.jsonl`."""
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
    """The source as a line of `ledger.jsonl`."""
    return {
        "record": "source",
        "flavour": identity.flavour,
        "version": identity.version,
        "server_id": identity.server_id,
        "server_uuid": identity.server_uuid,
    }


def origin_record(origin: Origin) -> Record:
    """The generation's origin as a line of `ledger.jsonl`; its state as in the event at a file's head, in base 64."""
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


def read_record(record: Record) -> LedgerRow | SourceIdentity | Origin | None:
    """The reverse; None: nothing that this version knows."""
    try:
        match record["record"]:
            case "ledger":
                names = ("time", "kind", "file", "offset", "text", "details")
                return LedgerRow(*(record[name] for name in names))
            case "source":
                return SourceIdentity(*(record[name] for name in ("flavour", "version", "server_id", "server_uuid")))
            case "origin":
                state = None if record["state"] is None else base64.b64decode(record["state"], validate=True)
                place = (record["time"], record["file"], record["after_file"], record["after_offset"])
                return Origin(*place, decoded_state(record["flavour"], state))
    except (KeyError, TypeError, binascii.Error):
        return None
    return None
