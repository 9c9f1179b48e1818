"""The essentials of an event in one line, for people."""

from collections.abc import Callable
from typing import Final

from protocol.binlog.binlog_checkpoint import decode_binlog_checkpoint
from protocol.binlog.event_type import EventType
from protocol.binlog.file_block import decode_file_block
from protocol.binlog.format_description import FormatDescription, decode_format_description, decode_start_v3
from protocol.binlog.group_replication import decode_transaction_context, decode_view_change
from protocol.binlog.gtid_event import Gtid, decode_gtid
from protocol.binlog.gtid_tagged import decode_gtid_tagged
from protocol.binlog.header import EventHeader
from protocol.binlog.heartbeat import decode_heartbeat
from protocol.binlog.incident import decode_incident
from protocol.binlog.intvar import decode_intvar
from protocol.binlog.load_event import decode_load
from protocol.binlog.mariadb_gtid import decode_mariadb_gtid
from protocol.binlog.partial_row_data import decode_partial_row_data
from protocol.binlog.query import Query, decode_execute_load_query, decode_query, decode_query_compressed
from protocol.binlog.rand import decode_rand
from protocol.binlog.rotate import decode_rotate
from protocol.binlog.rows_event import ROWS_EVENTS, decode_rows_event
from protocol.binlog.rows_query import decode_rows_query
from protocol.binlog.start_encryption import decode_start_encryption
from protocol.binlog.statement_text import one_line
from protocol.binlog.table_map import decode_table_map, table_id_bytes
from protocol.binlog.transaction_payload import decode_transaction_payload
from protocol.binlog.user_var import UserVarType, decode_user_var
from protocol.binlog.xa_prepare import decode_xa_prepare
from protocol.binlog.xid_event import decode_xid
from protocol.gtid.codec import decode_gtid_set
from protocol.gtid.mariadb import decode_gtid_list

_Describe = Callable[[EventHeader, bytes, FormatDescription], str]


def describe_event(header: EventHeader, body: bytes, format: FormatDescription) -> str:
    """Return the essentials of one event: schema and statement, table, GTID, XID; "" for types without more content.

    `body` is what follows the header, without the checksum (but all of it for Format_description). The tail of a long body may be
    missing: only the head is read.
    Raises: Truncated, Malformed.
    """
    describe = _BY_TYPE.get(header.type)
    return describe(header, body, format) if describe is not None else ""


def _query_text(query: Query) -> str:
    error = f" (error {query.error_code})" if query.error_code else ""
    schema = f"[{one_line(query.schema)}] " if query.schema else ""
    return f"{schema}{one_line(query.text)}{error}"


def _query(_header: EventHeader, body: bytes, format: FormatDescription) -> str:
    return _query_text(decode_query(body, format))


def _query_compressed(_header: EventHeader, body: bytes, format: FormatDescription) -> str:
    return _query_text(decode_query_compressed(body, format, limit_bytes=4096))


def _execute_load_query(_header: EventHeader, body: bytes, format: FormatDescription) -> str:
    load = decode_execute_load_query(body, format)
    return f"file {load.file_id}: {_query_text(load)}"


def _format_description(header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    start = header.type == EventType.START_V3
    found = decode_start_v3(body) if start else decode_format_description(body)
    checksum = f", checksum {'CRC32' if found.checksum else 'none'}" if found.has_checksum_field else ""
    in_use = ", not closed" if header.flags & 1 else ""
    return f"server {found.server_version}, binlog version {found.binlog_version}{checksum}{in_use}"


def _rotate(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    rotate = decode_rotate(body)
    return f"to {one_line(rotate.file.encode())}:{rotate.position}"


def _gtid_text(gtid: Gtid, *, anonymous: bool) -> str:
    parts = [] if anonymous else [gtid.text]
    if gtid.last_committed is not None:
        parts.append(f"last_committed={gtid.last_committed} sequence_number={gtid.sequence_number}")
    return " ".join(parts)


def _gtid(header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    return _gtid_text(decode_gtid(body), anonymous=header.type == EventType.ANONYMOUS_GTID)


def _gtid_tagged(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    return _gtid_text(decode_gtid_tagged(body), anonymous=False)


def _mariadb_gtid(header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    gtid = decode_mariadb_gtid(body)
    parts = [gtid.text(header.server_id), *gtid.flag_names]
    if gtid.commit_id is not None:
        parts.append(f"commit id {gtid.commit_id}")
    if gtid.xid is not None:
        parts.append(str(gtid.xid))
    return " ".join(parts)


def _table_map(_header: EventHeader, body: bytes, format: FormatDescription) -> str:
    table = decode_table_map(body, table_id_bytes(format.post_header_length(EventType.TABLE_MAP)))
    return f"{table.schema}.{table.table} (table id {table.table_id})"


def _rows(header: EventHeader, body: bytes, format: FormatDescription) -> str:
    rows = decode_rows_event(body, header.type, format)
    return f"table id {rows.table_id}{', end of statement' if rows.ends_statement else ''}"


def _xid(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    return f"xid {decode_xid(body)}"


def _xa_prepare(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    prepare = decode_xa_prepare(body)
    return f"{prepare.xid}{' one phase' if prepare.one_phase else ''}"


def _intvar(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    intvar = decode_intvar(body)
    return f"{intvar.name}={intvar.value}"


def _rand(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    rand = decode_rand(body)
    return f"seeds {rand.seed1} {rand.seed2}"


def _user_var(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    variable = decode_user_var(body)
    value = variable.value
    if variable.type is None:
        text = "NULL"
    elif isinstance(value, bytes):
        text = f"'{one_line(value)}'" if variable.type is UserVarType.STRING else f"0x{value[:64].hex()}"
    else:
        text = repr(value)
    return f"@{one_line(variable.name)}={text}"


def _load(header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    load = decode_load(body, header.type)
    table = f"[{one_line(load.schema)}] {one_line(load.table)} from {one_line(load.file)}"
    return table if load.file_id is None else f"file {load.file_id}: {table}"


def _file_block(header: EventHeader, body: bytes, format: FormatDescription) -> str:
    block = decode_file_block(body)
    if header.type in (EventType.EXEC_LOAD, EventType.DELETE_FILE):
        return f"file {block.file_id}"
    # It is counted from the header: the caller may have only the head of a long block.
    return f"file {block.file_id}, {header.size - 19 - 4 - format.checksum_bytes} bytes"


def _incident(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    incident = decode_incident(body)
    return f"{incident.name} {one_line(incident.message)}".rstrip()


def _previous_gtids(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    return decode_gtid_set(body).line


def _gtid_list(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    return str(decode_gtid_list(body))


def _rows_query(header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    return one_line(decode_rows_query(body, header.type))


def _checkpoint(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    return one_line(decode_binlog_checkpoint(body).encode())


def _start_encryption(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    start = decode_start_encryption(body)
    return f"scheme {start.scheme}, key version {start.key_version}"


def _heartbeat(header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    heartbeat = decode_heartbeat(body, header.type, header.log_pos)
    return f"{one_line(heartbeat.file.encode())}:{header.log_pos if heartbeat.position is None else heartbeat.position}"


def _transaction_payload(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    payload = decode_transaction_payload(body)
    return f"{payload.compression_name}, {payload.payload_bytes} bytes for {payload.uncompressed_bytes}"


def _transaction_context(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    context = decode_transaction_context(body)
    return f"server {context.server_uuid} thread {context.thread_id}"


def _view_change(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    return f"view {decode_view_change(body).view_id}"


def _partial_row_data(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    part = decode_partial_row_data(body)
    return f"fragment {part.sequence} of {part.total}"


_BY_TYPE: Final[dict[int, _Describe]] = {
    EventType.START_V3: _format_description,
    EventType.QUERY: _query,
    EventType.ROTATE: _rotate,
    EventType.INTVAR: _intvar,
    EventType.LOAD: _load,
    EventType.CREATE_FILE: _load,
    EventType.APPEND_BLOCK: _file_block,
    EventType.EXEC_LOAD: _file_block,
    EventType.DELETE_FILE: _file_block,
    EventType.NEW_LOAD: _load,
    EventType.RAND: _rand,
    EventType.USER_VAR: _user_var,
    EventType.FORMAT_DESCRIPTION: _format_description,
    EventType.XID: _xid,
    EventType.BEGIN_LOAD_QUERY: _file_block,
    EventType.EXECUTE_LOAD_QUERY: _execute_load_query,
    EventType.TABLE_MAP: _table_map,
    EventType.INCIDENT: _incident,
    EventType.HEARTBEAT: _heartbeat,
    EventType.ROWS_QUERY: _rows_query,
    EventType.GTID: _gtid,
    EventType.ANONYMOUS_GTID: _gtid,
    EventType.PREVIOUS_GTIDS: _previous_gtids,
    EventType.TRANSACTION_CONTEXT: _transaction_context,
    EventType.VIEW_CHANGE: _view_change,
    EventType.XA_PREPARE: _xa_prepare,
    EventType.TRANSACTION_PAYLOAD: _transaction_payload,
    EventType.HEARTBEAT_V2: _heartbeat,
    EventType.GTID_TAGGED: _gtid_tagged,
    EventType.ANNOTATE_ROWS: _rows_query,
    EventType.BINLOG_CHECKPOINT: _checkpoint,
    EventType.MARIADB_GTID: _mariadb_gtid,
    EventType.GTID_LIST: _gtid_list,
    EventType.START_ENCRYPTION: _start_encryption,
    EventType.QUERY_COMPRESSED: _query_compressed,
    EventType.PARTIAL_ROW_DATA: _partial_row_data,
    **dict.fromkeys(ROWS_EVENTS, _rows),
}
