"""Rules for older targets: whatever a source wrote, what comes of it can be read, says the same, or is named."""

import struct

import hypothesis.strategies as st
from hypothesis import example, given

from protocol.binlog.event_type import EventType
from protocol.binlog.format_description import FormatDescription
from protocol.binlog.query import Query, decode_execute_load_query, decode_query
from protocol.binlog.status_variables import decode_status, encode_status
from protocol.binlog.table_map import decode_table_map
from relay.view.rules.settings import TARGETS
from relay.view.rules.targets.known.target import TARGETS_BY_NAME
from relay.view.stops.stop_reason import Untranslatable
from tests.support.target_groups import Event, made_for, rows

FORMAT = FormatDescription(4, "9.7.4", 0, 19, bytes.fromhex(
    "000d0008000000000400040000006300041a08000000000000020000000a0a0a2a2a001234000a280000"
), 1, True)  # fmt: skip
_FIXED = {0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 13: 3, 16: 1, 17: 8, 18: 2, 19: 1, 20: 1, 21: 1}
_short = st.binary(max_size=12).map(lambda data: bytes((len(data),)) + data)
_names = st.lists(st.text("abc", min_size=1, max_size=4), max_size=3)
_variable = st.one_of(
    st.sampled_from(sorted(_FIXED)).flatmap(
        lambda code: st.binary(min_size=_FIXED[code], max_size=_FIXED[code]).map(lambda value: (code, value))
    ),
    st.sampled_from([5, 6]).flatmap(lambda code: _short.map(lambda value: (code, value))),
    st.tuples(_short, _short).map(lambda pair: (11, pair[0] + pair[1])),
    _names.map(lambda names: (12, bytes((len(names),)) + b"".join(n.encode() + b"\0" for n in names))),
    st.just((12, b"\xfe")),
)
_variables = st.lists(_variable, max_size=8, unique_by=lambda variable: variable[0]).map(dict)
_words = st.sampled_from(
    ["CREATE", "TABLE", "ALTER", "t", "(", ")", ",", "a", "INT", "TIMESTAMP", "NOT", "NULL", "DEFAULT", "'x'", "`b`", "KEY", "PRIMARY",
     "COLLATE", "=", "utf8mb4_0900_ai_ci", "utf8mb4_bin", "CHARSET", "CHARACTER", "SET", "utf8mb4", "/*!80000", "/*!50000", "*/", "/*",
     "INSERT", "INTO", "VALUES", "SELECT", "1", "0x5", "ALGORITHM", "INSTANT", "ADD", "COLUMN", "MODIFY", "CHANGE", "DESC", "CHECK",
     "ENCRYPTION", "'N'", "START", "TRANSACTION", "--", "\n", "BEGIN", "XA", "DATABASE", "&", "<<", "@v", "'", '"', "\\",
     "ST_GEOMFROMTEXT"],
)  # fmt: skip
_texts = st.one_of(
    st.lists(_words, max_size=25).map(" ".join).map(str.encode),
    st.lists(_words, max_size=25).map(lambda words: ("CREATE TABLE t (" + " ".join(words) + ")").encode()),
    st.binary(max_size=60),
)
_targets = st.sampled_from(TARGETS[:-1])
_choices = st.sampled_from([{}, {255: 45}, {255: 224, 309: 46}])


@given(_variables)
def test_variables_that_are_taken_apart_are_put_together_again(variables: dict[int, bytes]) -> None:
    assert list(decode_status(encode_status(variables)).items()) == list(variables.items())


@given(_variables, _texts, _targets, _choices, st.booleans())
@example({}, b"CREATE TABLE t (a TIMESTAMP /*!80000 NOT NULL */)", "mysql-5.6", {}, False)
@example({}, b"CREATE TABLE t (", "mysql-5.6", {}, False)
@example({4: b"\x0d\0\x0d\0\x0d\0"}, b"CREATE TABLE t (a INT) COMMENT='\x83\x5c'", "mysql-5.6", {}, False)
def test_a_statement_can_be_read_by_the_target_or_is_named(
    variables: dict[int, bytes], text: bytes, target: str, collations: dict[int, int], load: bool
) -> None:
    head = struct.pack("<IIIB", 3, 0, 0, 0) if load else b""
    query = Query(7, 1, 0, encode_status(variables), b"d", text, head)
    kind = EventType.EXECUTE_LOAD_QUERY if load else EventType.QUERY
    try:
        groups = made_for(target, Event(kind, query.encode()), collations=collations, account_statements="keep")
    except Untranslatable as error:
        assert error.reason.name and error.reason.text and error.reason.advice
        return
    for ((event_type, body),) in groups:
        made = decode_execute_load_query(body, FORMAT) if event_type == 18 else decode_query(body, FORMAT)
        assert (made.thread_id, made.schema, made.error_code) == (7, b"d", 0)
        found = decode_status(made.status_variables)
        assert max(found, default=0) <= TARGETS_BY_NAME[target].highest_status
        assert list(found) == [code for code in variables if code <= TARGETS_BY_NAME[target].highest_status]
        if made.text != text:
            assert target in ("mysql-5.5", "mysql-5.6", "mysql-5.7")
        for code, value in found.items():
            if code == 4 and target < "mysql-8":
                assert all(number < 255 for number in struct.unpack("<HHH", value))


@given(st.binary(max_size=80), st.sampled_from([2, 14, 18, 19, 33, 34, 38, 40, 42]), _targets)
def test_events_of_any_bytes_are_kept_or_named(body: bytes, event_type: int, target: str) -> None:
    try:
        made_for(target, Event(event_type, body), gtids="keep")
    except Untranslatable as error:
        assert error.reason.name


_NAMES = st.binary(min_size=1, max_size=20).filter(lambda name: b"\0" not in name)


@given(_NAMES, _NAMES, st.lists(st.integers(0, 255), min_size=1, max_size=300), st.binary(max_size=40), _targets)
def test_a_table_can_be_read_or_its_column_is_named(
    schema: bytes, table: bytes, types: list[int], optional: bytes, target: str
) -> None:
    count = bytes((len(types),)) if len(types) < 251 else b"\xfc" + struct.pack("<H", len(types))
    body = struct.pack("<IHH", 42, 0, 1) + bytes((len(schema),)) + schema + b"\0" + bytes((len(table),)) + table + b"\0"
    body += count + bytes(types) + b"\0" + bytes((len(types) + 7) // 8) + optional
    known = TARGETS_BY_NAME[target].column_types
    try:
        ((made, _),) = made_for(target, Event(EventType.TABLE_MAP, body), rows(23))
    except Untranslatable as error:
        assert not set(types) <= known
        first = next(number for number, kind in enumerate(types, 1) if kind not in known)
        assert error.reason.name == "column_type_not_in_target" and f"column {first} of " in error.reason.text
        return
    assert set(types) <= known
    assert decode_table_map(made.body).table == table.decode("utf-8", "backslashreplace")
