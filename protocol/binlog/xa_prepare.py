"""XA_prepare: the end of the first phase of an XA transaction."""

from dataclasses import dataclass

from protocol.binlog.fields import Fields
from protocol.errors import Malformed


@dataclass(frozen=True, slots=True)
class Xid:
    """An XA transaction's identifier."""

    format_id: int
    gtrid: bytes
    bqual: bytes

    def __str__(self) -> str:
        return f"X'{self.gtrid.hex()}',X'{self.bqual.hex()}',{self.format_id}"


@dataclass(frozen=True, slots=True)
class XaPrepare:
    """The end of the first phase. `one_phase`: XA COMMIT ... ONE PHASE, the transaction is over."""

    one_phase: bool
    xid: Xid


def decode_xa_prepare(body: bytes) -> XaPrepare:
    """Decode an XA_prepare event (38), MySQL's and MariaDB's.

    Layout: one_phase u8 | format u32 | gtrid length u32 | bqual length u32 | data.
    Raises: Truncated; Malformed for parts above 64 bytes, the limit of the XA standard.
    """
    fields = Fields(body)
    one_phase = fields.u8() != 0
    format_id, gtrid_length, bqual_length = fields.u32(), fields.u32(), fields.u32()
    if gtrid_length > 64 or bqual_length > 64:
        raise Malformed(f"XA identifier parts of {gtrid_length} and {bqual_length} bytes; 64 is the limit")
    return XaPrepare(one_phase, Xid(format_id, fields.take(gtrid_length), fields.take(bqual_length)))
