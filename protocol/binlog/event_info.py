"""An event in the words of SHOW BINLOG EVENTS: the names in Event_type and the text in Info.

Compared with MySQL 5.6.24, 9.7.4 and MariaDB 10.11. Remaining differences: line breaks and control characters of a statement are
escaped, very long texts are cut, and `/* xid=N */` after the DDL of MySQL 8 and later is omitted.
"""

from collections.abc import Callable
from typing import Final

from protocol.binlog.binlog_checkpoint import decode_binlog_checkpoint
from protocol.binlog.description import describe_event
from protocol.binlog.event_type import EventType, event_type_name
from protocol.binlog.file_block import decode_file_block
from protocol.binlog.format_description import FormatDescription, decode_format_description
from protocol.binlog.gtid_event import decode_gtid
from protocol.binlog.gtid_tagged import decode_gtid_tagged
from protocol.binlog.header import EventHeader
from protocol.binlog.incident import decode_incident
from protocol.binlog.layout import CHECKSUM_SIZE, HEADER_SIZE
from protocol.binlog.mariadb_gtid import PREPARED_XA, decode_mariadb_gtid
from protocol.binlog.query import Query, decode_execute_load_query, decode_query, decode_query_compressed
from protocol.binlog.rand import decode_rand
from protocol.binlog.rotate import decode_rotate
from protocol.binlog.rows_event import ROWS_EVENTS, decode_rows_event
from protocol.binlog.rows_query import decode_rows_query
from protocol.binlog.statement_text import one_line
from protocol.binlog.table_map import decode_table_map, table_id_bytes
from protocol.binlog.transaction_payload import decode_transaction_payload
from protocol.binlog.user_var import UserVarType, decode_user_var
from protocol.binlog.xa_prepare import decode_xa_prepare
from protocol.binlog.xid_event import decode_xid
from protocol.gtid.mariadb import decode_gtid_list

INFO_LIMIT_CHARACTERS: Final = 16384
"""The longest text of one event; more is cut."""

_SUPPRESS_USE: Final = 0x0008
_ROWS_FLAGS: Final = {0x0001: "STMT_END_F", 0x0010: "USE_SQL_FOREIGN_KEY_F"}
# The commonest ids that clients send; a server has hundreds.
_COLLATIONS: Final = {
    8: "latin1_swedish_ci",
    28: "gbk_chinese_ci",
    33: "utf8_general_ci",
    45: "utf8mb4_general_ci",
    46: "utf8mb4_bin",
    63: "binary",
    83: "utf8_bin",
    192: "utf8_unicode_ci",
    224: "utf8mb4_unicode_ci",
    255: "utf8mb4_0900_ai_ci",
    2304: "utf8mb4_uca1400_ai_ci",
}

# Names that are not those of the documentation in `event_type_name`.
_TYPE_NAMES: Final[dict[int, str]] = {
    EventType.START_V3: "Start_v3",
    EventType.USER_VAR: "User var",
    EventType.RAND: "RAND",
    EventType.FORMAT_DESCRIPTION: "Format_desc",
    EventType.ANONYMOUS_GTID: "Anonymous_Gtid",
    EventType.PARTIAL_UPDATE_ROWS: "Update_rows_partial",
    EventType.MARIADB_GTID: "Gtid",
    EventType.XA_PREPARE: "XA_prepare",
    EventType.NEW_LOAD: "New_load",
}


def event_type_text(code: int) -> str:
    """Return the event's name in SHOW BINLOG EVENTS: `Format_desc`, `User var`; `Unknown` for a code without one."""
    name = _TYPE_NAMES.get(code) or event_type_name(code)
    return "Unknown" if name.startswith("Unknown") else name


def event_info(header: EventHeader, body: bytes, format: FormatDescription) -> str:
    """Return the text in Info: the statement, the table, the GTID; "" where servers write nothing.

    `body` is what follows the header, without the checksum (but all of it for Format_description). The tail of a long body may be
    missing: only the head is read.
    Raises: Truncated, Malformed.
    """
    describe = _BY_TYPE.get(header.type)
    return describe(header, body, format) if describe is not None else describe_event(header, body, format)


def _text(data: bytes) -> str:
    return one_line(data, INFO_LIMIT_CHARACTERS)


def _statement(header: EventHeader, query: Query) -> str:
    use = f"use `{_text(query.schema)}`; " if query.schema and not header.flags & _SUPPRESS_USE else ""
    return use + _text(query.text)


def _format_description(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    found = decode_format_description(body)
    return f"Server ver: {found.server_version}, Binlog ver: {found.binlog_version}"


def _query(header: EventHeader, body: bytes, format: FormatDescription) -> str:
    return _statement(header, decode_query(body, format))


def _query_compressed(header: EventHeader, body: bytes, format: FormatDescription) -> str:
    return _statement(header, decode_query_compressed(body, format, limit_bytes=4 * INFO_LIMIT_CHARACTERS))


def _execute_load_query(header: EventHeader, body: bytes, format: FormatDescription) -> str:
    load = decode_execute_load_query(body, format)
    return f"{_statement(header, load)} ;file_id={load.file_id}"


def _xid(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    return f"COMMIT /* xid={decode_xid(body)} */"


def _rotate(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    rotate = decode_rotate(body)
    return f"{_text(rotate.file.encode())};pos={rotate.position}"


def _rand(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    rand = decode_rand(body)
    return f"rand_seed1={rand.seed1},rand_seed2={rand.seed2}"


def _user_var(_header: EventHeader, body: bytes, format: FormatDescription) -> str:
    variable = decode_user_var(body)
    value = variable.value
    if variable.type is None:
        text = "NULL"
    elif variable.type is UserVarType.STRING and isinstance(value, bytes):
        shown = value[: INFO_LIMIT_CHARACTERS // 2].hex().upper()
        literal = f"X'{shown}'" if format.flavour == "mariadb" else f"0x{shown}"
        collation = _COLLATIONS.get(variable.charset)
        if collation is None:
            text = f"{literal} /* collation {variable.charset} */"
        else:
            text = f"_{collation.partition('_')[0]} {literal} COLLATE {collation}"
    elif isinstance(value, bytes):
        text = f"0x{value[:64].hex()}"
    else:
        text = f"{value}"
    return f"@`{_text(variable.name)}`={text}"


def _table_map(_header: EventHeader, body: bytes, format: FormatDescription) -> str:
    table = decode_table_map(body, table_id_bytes(format.post_header_length(EventType.TABLE_MAP)))
    return f"table_id: {table.table_id} ({table.schema}.{table.table})"


def _rows(header: EventHeader, body: bytes, format: FormatDescription) -> str:
    rows = decode_rows_event(body, header.type, format)
    flags = " ".join(name for bit, name in _ROWS_FLAGS.items() if rows.flags & bit)
    return f"table_id: {rows.table_id}{' flags: ' if flags else ''}{flags}"


def _rows_query(header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    text = _text(decode_rows_query(body, header.type))
    return f"# {text}" if header.type == EventType.ROWS_QUERY else text


def _gtid(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    return f"SET @@SESSION.GTID_NEXT= '{decode_gtid(body).text}'"


def _gtid_tagged(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    return f"SET @@SESSION.GTID_NEXT= '{decode_gtid_tagged(body).text}'"


def _anonymous_gtid(_header: EventHeader, _body: bytes, _format: FormatDescription) -> str:
    return "SET @@SESSION.GTID_NEXT= 'ANONYMOUS'"


def _mariadb_gtid(header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    gtid = decode_mariadb_gtid(body)
    begin = ""
    if gtid.flags & PREPARED_XA:
        begin = f"XA START {gtid.xid} "
    elif not gtid.is_standalone:
        begin = "BEGIN "
    commit = f" cid={gtid.commit_id}" if gtid.commit_id is not None else ""
    return f"{begin}GTID {gtid.text(header.server_id)}{commit}"


def _gtid_list(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    return f"[{decode_gtid_list(body).event_text}]"


def _checkpoint(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    return _text(decode_binlog_checkpoint(body).encode())


def _xa_prepare(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    prepare = decode_xa_prepare(body)
    return f"XA COMMIT {prepare.xid} ONE PHASE" if prepare.one_phase else f"XA PREPARE {prepare.xid}"


def _file_block(header: EventHeader, body: bytes, format: FormatDescription) -> str:
    block = decode_file_block(body)
    # It is counted from the header: the caller may have only the head of a long block.
    size = header.size - HEADER_SIZE - 4 - (CHECKSUM_SIZE if format.checksum else 0)
    return f";file_id={block.file_id};block_len={size}"


def _delete_file(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    return f";file_id={decode_file_block(body).file_id}"


def _incident(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    incident = decode_incident(body)
    message = f": {_text(incident.message)}" if incident.message else ""
    return f"#{incident.kind} ({incident.name}){message}"


def _transaction_payload(_header: EventHeader, body: bytes, _format: FormatDescription) -> str:
    payload = decode_transaction_payload(body)
    return f"compression='{payload.compression_name.upper()}', decompressed_size={payload.uncompressed_bytes} bytes"


_Describe = Callable[[EventHeader, bytes, FormatDescription], str]

_BY_TYPE: Final[dict[int, _Describe]] = {
    EventType.FORMAT_DESCRIPTION: _format_description,
    EventType.QUERY: _query,
    EventType.QUERY_COMPRESSED: _query_compressed,
    EventType.EXECUTE_LOAD_QUERY: _execute_load_query,
    EventType.XID: _xid,
    EventType.ROTATE: _rotate,
    EventType.RAND: _rand,
    EventType.USER_VAR: _user_var,
    EventType.TABLE_MAP: _table_map,
    EventType.ROWS_QUERY: _rows_query,
    EventType.ANNOTATE_ROWS: _rows_query,
    EventType.GTID: _gtid,
    EventType.GTID_TAGGED: _gtid_tagged,
    EventType.ANONYMOUS_GTID: _anonymous_gtid,
    EventType.MARIADB_GTID: _mariadb_gtid,
    EventType.GTID_LIST: _gtid_list,
    EventType.BINLOG_CHECKPOINT: _checkpoint,
    EventType.XA_PREPARE: _xa_prepare,
    EventType.BEGIN_LOAD_QUERY: _file_block,
    EventType.APPEND_BLOCK: _file_block,
    EventType.DELETE_FILE: _delete_file,
    EventType.INCIDENT: _incident,
    EventType.TRANSACTION_PAYLOAD: _transaction_payload,
    **dict.fromkeys(ROWS_EVENTS, _rows),
}
