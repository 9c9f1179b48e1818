"""Row values: what the kernel reads in a binlog is what the server that wrote it says by SQL, for every column type.

Each type has a row for each of its values, the extremes among them, and NULL; all are inserted, updated and deleted.
"""

import base64
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest

from deploy.servers import Server
from protocol.binlog.schema.column_description import ColumnDescription, encode_columns
from protocol.binlog.transaction_payload import decode_transaction_payload
from protocol.columns.codes.column_codes import VALUE_UNCERTAIN
from tests.conftest import ServerFactory
from tests.support.kernel_builds import builds
from tests.support.kernel_columns import changed_rows

pytestmark = pytest.mark.interop


@dataclass(frozen=True)
class Kind:
    """How a type's values are asked for in SQL, and what the JSON value becomes to be equal to the answer."""

    sql: str
    of_json: Callable[[Any], Any]
    of_sql: Callable[[Any], Any] = lambda value: value


def _text_hex(value: Any) -> str:
    return value.encode().hex().upper() if isinstance(value, str) else "no text: " + repr(value)


def _binary_hex(value: Any) -> str:
    return base64.b64decode(value["base64"]).hex().upper() if isinstance(value, dict) else "no bytes: " + repr(value)


def _geometry_hex(value: Any) -> str:
    return (struct.pack("<I", value["srid"]) + base64.b64decode(value["wkb"])).hex().upper()


def _vector_hex(value: Any) -> str:
    return struct.pack(f"<{len(value)}f", *value).hex().upper()


def _document(value: Any) -> Any:
    return value["$json"] if isinstance(value, dict) and list(value) == ["$json"] else value


def _narrow(value: Any) -> bytes:
    return struct.pack("<f", float(value))


NUMBER: Final = Kind("CAST({} AS CHAR)", str)
EXACT: Final = Kind("CAST({} AS CHAR)", lambda value: value if isinstance(value, str) else repr(value))
FLOAT: Final = Kind("{} + 0e0", _narrow, _narrow)
DOUBLE: Final = Kind("{} + 0e0", float, float)
BITS: Final = Kind("CAST({} + 0 AS CHAR)", str)
TEXT: Final = Kind("HEX(CONVERT({} USING utf8mb4))", _text_hex)
BYTES: Final = Kind("HEX({})", _binary_hex)
SHAPE: Final = Kind("HEX({})", _geometry_hex)
VECTOR: Final = Kind("HEX({})", _vector_hex)
JSON: Final = Kind("CAST({} AS CHAR)", _document, json.loads)

EVERY_BYTE: Final = "".join(f"{byte:02x}" for byte in range(1, 256))
EVERYWHERE: Final[list[tuple[str, Kind, list[str]]]] = [
    ("TINYINT", NUMBER, ["-128", "-1", "0", "127"]),
    ("TINYINT UNSIGNED", NUMBER, ["0", "128", "255"]),
    ("SMALLINT", NUMBER, ["-32768", "32767"]),
    ("SMALLINT UNSIGNED", NUMBER, ["0", "65535"]),
    ("MEDIUMINT", NUMBER, ["-8388608", "8388607"]),
    ("MEDIUMINT UNSIGNED", NUMBER, ["0", "16777215"]),
    ("INT", NUMBER, ["-2147483648", "2147483647", "-1"]),
    ("INT UNSIGNED ZEROFILL", Kind("CAST({} + 0 AS CHAR)", str), ["0", "4294967295"]),
    ("BIGINT", NUMBER, ["-9223372036854775808", "9223372036854775807", "-1", "1000000000000"]),
    ("BIGINT UNSIGNED", NUMBER, ["0", "18446744073709551615"]),
    ("FLOAT", FLOAT, ["-1.5", "3.4028234e38", "1.17549e-38", "0.1", "1234567.8", "16777216", "0"]),
    (
        "DOUBLE",
        DOUBLE,
        ["-1.5", "1.7976931348623157e308", "2.2250738585072014e-308", "0.1", "1e22", "123456789012345678", "1e-5"],
    ),
    ("DECIMAL(10,0)", EXACT, ["-9999999999", "0", "1"]),
    ("DECIMAL(65,30)", EXACT, ["-" + "9" * 35 + "." + "9" * 30, "0." + "0" * 29 + "1", "-12345678901.5", "1"]),
    ("DECIMAL(4,4)", EXACT, ["0.9999", "-0.0001", "0"]),
    ("DECIMAL(18,9) UNSIGNED", EXACT, ["999999999.999999999", "0.000000001", "1000000"]),
    ("BIT(1)", BITS, ["b'1'", "b'0'"]),
    ("BIT(13)", BITS, ["b'1010101010101'", "b'0'"]),
    ("BIT(64)", BITS, ["18446744073709551615", "0", "b'1'"]),
    ("YEAR", NUMBER, ["1901", "2155"]),
    ("DATE", EXACT, ["'1000-01-01'", "'9999-12-31'", "'0000-00-00'", "'2024-02-00'"]),
    ("TIME", EXACT, ["'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:01'"]),
    ("TIME(1)", EXACT, ["'-00:00:00.1'", "'12:34:56.7'"]),
    ("TIME(3)", EXACT, ["'-00:00:00.001'", "'-10:00:01.999'", "'12:34:56.789'"]),
    ("TIME(6)", EXACT, ["'-838:59:58.999999'", "'00:00:00.000001'", "'-00:00:01.000000'"]),
    ("DATETIME", EXACT, ["'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'0000-00-00 00:00:00'"]),
    ("DATETIME(1)", EXACT, ["'2020-02-29 12:00:00.9'", "'1970-01-01 00:00:00.0'"]),
    ("DATETIME(4)", EXACT, ["'2020-02-29 12:00:00.0009'"]),
    ("DATETIME(6)", EXACT, ["'2020-02-29 12:00:00.123456'", "'9999-12-31 23:59:59.999999'", "'0000-00-00 00:00:00'"]),
    (
        "TIMESTAMP NULL",
        EXACT,
        ["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'2000-02-29 23:59:59'", "'0000-00-00'"],
    ),
    ("TIMESTAMP(2) NULL", EXACT, ["'1999-12-31 23:59:59.99'", "'2001-03-01 00:00:00'"]),
    ("TIMESTAMP(6) NULL", EXACT, ["'1970-01-01 00:00:01.000001'", "'2037-12-31 23:59:59.999999'"]),
    ("CHAR(0)", TEXT, ["''"]),
    ("CHAR(10) CHARACTER SET latin1", TEXT, ["''", "'0123456789'", "'a '"]),
    (
        "CHAR(255) CHARACTER SET utf8mb4",
        TEXT,
        ["REPEAT('ä', 255)", "REPEAT('€', 255)", "REPEAT(x'f09f9880', 255)", "''"],
    ),
    ("BINARY(7)", BYTES, ["x'00ff'", "x'01020304050607'", "x'00000000000000'", "x'41000000000020'"]),
    ("VARCHAR(255) CHARACTER SET latin1", TEXT, ["REPEAT('x', 255)", "''", f"x'{EVERY_BYTE}'"]),
    ("VARCHAR(256) CHARACTER SET ascii", TEXT, ["REPEAT('x', 256)", "''", "x'00010a0d09222f5c7f'"]),
    ("VARCHAR(300) CHARACTER SET utf8", TEXT, ["REPEAT('€', 300)", "'a'", "'\"\\\\\\n\\t\\'/'"]),
    ("VARCHAR(20) CHARACTER SET utf8mb4", TEXT, ["x'f09f9880'", "x'41c3a9e282acf48fbfbf'"]),
    ("VARCHAR(20) CHARACTER SET ucs2", TEXT, ["'aä€'", "''"]),
    ("VARCHAR(20) CHARACTER SET utf16", TEXT, ["_utf8mb4 x'41f09f9880c3a9'"]),
    ("VARCHAR(20) CHARACTER SET utf16le", TEXT, ["_utf8mb4 x'41f09f9880c3a9'"]),
    ("VARCHAR(20) CHARACTER SET utf32", TEXT, ["_utf8mb4 x'41f09f9880c3a9'"]),
    ("VARCHAR(20) CHARACTER SET cp1251", TEXT, ["'Привет'"]),
    ("VARCHAR(20) CHARACTER SET koi8r", TEXT, ["'Привет'"]),
    ("VARCHAR(20) CHARACTER SET latin2", TEXT, ["'Źdźbło'"]),
    ("VARCHAR(20) CHARACTER SET greek", TEXT, ["'αβγ'"]),
    ("VARCHAR(20) CHARACTER SET sjis", TEXT, ["'日本語'"]),
    ("VARCHAR(20) CHARACTER SET ujis", TEXT, ["'日本語'"]),
    ("VARCHAR(20) CHARACTER SET gbk", TEXT, ["'中文'"]),
    ("VARCHAR(20) CHARACTER SET big5", TEXT, ["'中文'"]),
    ("VARCHAR(20) CHARACTER SET euckr", TEXT, ["'한국'"]),
    ("VARBINARY(300)", BYTES, ["x'00'", "x''", f"x'00{EVERY_BYTE}'"]),
    ("TINYTEXT CHARACTER SET utf8mb4", TEXT, ["REPEAT('t', 255)", "''"]),
    ("TEXT CHARACTER SET utf8mb4", TEXT, ["REPEAT('tä', 5000)", "''"]),
    ("MEDIUMTEXT CHARACTER SET latin1", TEXT, ["REPEAT('é', 70000)", "''"]),
    ("LONGTEXT CHARACTER SET utf8mb4", TEXT, ["REPEAT('t', 300000)", "'x'"]),
    ("TINYBLOB", BYTES, ["x'00'", "''"]),
    ("BLOB", BYTES, ["REPEAT(x'ff', 60000)", "x'01'", "'ab'"]),
    ("MEDIUMBLOB", BYTES, ["REPEAT('ab', 40000)", "''"]),
    ("LONGBLOB", BYTES, ["x'00'"]),
    ("ENUM('a','b','it''s','ü') CHARACTER SET utf8mb4", TEXT, ["'a'", "'it''s'", "'ü'", "'none'"]),
    ("ENUM('ä','ö') CHARACTER SET latin1", TEXT, ["'ä'", "'ö'"]),
    ("SET('a','b','c','ü') CHARACTER SET utf8mb4", TEXT, ["'a,c'", "''", "'a,b,c,ü'"]),
    ("SET(" + ",".join(f"'s{i}'" for i in range(64)) + ")", TEXT, ["18446744073709551615", "1", "9223372036854775809"]),
    ("GEOMETRY", SHAPE, ["POINT(1, 2)", "ST_GeomFromText('LINESTRING(0 0,1 1,2 2)', 4326)"]),
]
DOCUMENTS: Final = [
    """'{"a": [1, null, true, false, {"b": "c"}], "": -1}'""",
    "'1'",
    "'null'",
    """'{"$diffs": []}'""",
    """'{"base64": "AA=="}'""",
    "'\"x\"'",
    "'[]'",
    "'{}'",
    "'[-32768, 32767, 65535, -32769, 2147483647, -2147483648, 4294967295, 9223372036854775807, -9223372036854775808]'",
    "'[18446744073709551615, 1.5, -0.1, 1e300, 12345678901234567890123]'",
    """'{"text": "\\\\u0001\\\\"\\\\\\\\ä€😀", "long": "%s"}'""" % ("x" * 300),
    "CONCAT('[', REPEAT('{\"k\": [1, 70000]},', 5000), '\"end\"]')",
    "CONCAT('{\"big\": \"', REPEAT('y', 70000), '\"}')",
]
OPAQUE: Final = [
    "JSON_ARRAY(CAST('2024-02-29' AS DATE), CAST('-10:11:12.5' AS TIME(6)), CAST('2024-02-29 01:02:03.000004' AS DATETIME(6)))",
    "JSON_OBJECT('d', CAST('-1.50' AS DECIMAL(30,10)), 'e', CAST('123456789012345678901234567890' AS DECIMAL(30,0)))",
    "JSON_ARRAY(CAST(x'00ff' AS BINARY), b'101', TIMESTAMP '2024-02-29 01:02:03')",
]
ONLY: Final[dict[str, list[tuple[str, Kind, list[str]]]]] = {
    "mysql56": [],
    "mysql97": [
        ("JSON", JSON, DOCUMENTS + OPAQUE),
        ("VARCHAR(20) CHARACTER SET gb18030", TEXT, ["'中文'"]),
        ("VECTOR(3)", VECTOR, ["STRING_TO_VECTOR('[1,2,3]')", "STRING_TO_VECTOR('[0,-1.25,1e30]')"]),
    ],
    "mariadb": [
        ("JSON", Kind("HEX(CONVERT({} USING utf8mb4))", _text_hex), DOCUMENTS),
        ("VARCHAR(300) COMPRESSED CHARACTER SET utf8mb4", TEXT, ["REPEAT('cä', 150)", "''", "'x'"]),
        ("TEXT COMPRESSED CHARACTER SET latin1", TEXT, ["REPEAT('é', 3000)", "''"]),
        ("LONGBLOB COMPRESSED", BYTES, ["REPEAT(x'00ff', 3000)", "''"]),
        (
            "INET6",
            EXACT,
            [
                "'::1'",
                "'ffff::'",
                "'2001:db8::8a2e:370:7334'",
                "'::ffff:1.2.3.4'",
                "'::'",
                "'::1.2.3.4'",
                "'1:0:2:3:4:5:6:7'",
                "'1:0:0:2:0:0:0:3'",
            ],
        ),
        ("INET4", EXACT, ["'0.0.0.0'", "'255.254.1.0'"]),
        ("UUID", EXACT, ["'123e4567-e89b-12d3-a456-426655440000'", "'00000000-0000-0000-0000-000000000000'"]),
    ],
    "mariadb118": [
        ("VECTOR(3)", VECTOR, ["VEC_FromText('[1,2,3]')", "VEC_FromText('[0,-1.25,1e30]')"]),
    ],
}
ONLY["mariadb118"] += [
    *ONLY["mariadb"],
    ("UUID", EXACT, ["'01890a5d-ac96-774b-bcce-b302099a8057'", "'f81d4fae-7dec-41d0-a765-00a0c91e6bf6'"]),
]


@dataclass(frozen=True)
class Case:
    """A server with its options, and whether somebody describes the columns."""

    server: str
    options: tuple[str, ...] = ()
    described: bool = True


CASES: Final = {
    "mysql56": Case("mysql56"),
    "mysql56-v1": Case("mysql56", ("--log-bin-use-v1-row-events=1",)),
    "mysql97-full": Case("mysql97", ("--binlog-row-metadata=FULL",), described=False),
    "mysql97-packed": Case("mysql97", ("--binlog-transaction-compression=ON",)),
    "mariadb": Case("mariadb"),
    "mariadb-full": Case("mariadb", ("--binlog-row-metadata=FULL", "--log-bin-compress=ON")),
    "mariadb118": Case("mariadb118"),
}
SESSION: Final = ["SET sql_mode = ''", "SET time_zone = '+00:00'", "SET binlog_format = ROW", "SET NAMES utf8mb4"]


def unpacked(body: bytes) -> bytes:
    zstandard = pytest.importorskip("zstandard")
    head = decode_transaction_payload(body)
    return bytes(zstandard.ZstdDecompressor().decompress(body[head.head_bytes :], head.uncompressed_bytes))


def describer(server: Server) -> Callable[[bytes, bytes, bytes], bytes | None]:
    """What the relay would record of the server's tables."""

    def describe(schema: bytes, table: bytes, types: bytes) -> bytes | None:
        columns = server.sql(
            "SELECT COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME FROM information_schema.COLUMNS "
            f"WHERE TABLE_SCHEMA = '{schema.decode()}' AND TABLE_NAME = '{table.decode()}' ORDER BY ORDINAL_POSITION"
        )
        return encode_columns([ColumnDescription(*(None if v is None else str(v) for v in row)) for row in columns])  # type: ignore[arg-type]

    return describe


@pytest.mark.parametrize("name", CASES)
def test_every_value_is_read_as_sql_reads_it(servers: ServerFactory, name: str) -> None:
    case = CASES[name]
    server = servers(case.server).start(options=list(case.options))
    types = EVERYWHERE + ONLY[case.server]
    answers: dict[tuple[int, int], Any] = {}
    server.sql("CREATE DATABASE one")
    connection = server.connect("one")
    try:
        with connection.cursor() as cursor:
            for statement in SESSION:
                cursor.execute(statement)
            cursor.execute("FLUSH BINARY LOGS")
            for number, (kind, how, values) in enumerate(types):
                cursor.execute(f"CREATE TABLE t{number} (id INT PRIMARY KEY, `c {number}` {kind}) ENGINE=InnoDB")
                rows = ", ".join(f"({i}, {value})" for i, value in enumerate([*values, "NULL"]))
                cursor.execute(f"INSERT INTO t{number} VALUES {rows}")
                cursor.execute(f"SELECT id, {how.sql.format(f'`c {number}`')} FROM t{number} ORDER BY id")
                for i, value in cursor.fetchall():
                    answers[number, i] = value
            for number in range(len(types)):
                cursor.execute(f"UPDATE t{number} SET id = id + 1000")
                cursor.execute(f"DELETE FROM t{number}")
            cursor.execute("FLUSH BINARY LOGS")
    finally:
        connection.close()
    data = server.binlogs()[-2].read_bytes()
    result = changed_rows(
        builds()[0], data, describe=describer(server) if case.described else None, unpack_payload=unpacked
    )
    wrong = []
    seen: dict[tuple[str, int, int], int] = {}

    def compare(image: dict[str, Any], number: int, where: str) -> None:
        kind, how, _ = types[number]
        assert list(image) == ["id", f"c {number}"], (kind, list(image))
        i = image["id"] % 1000
        seen[where, number, i] = seen.get((where, number, i), 0) + 1
        answer, value = answers[number, i], image[f"c {number}"]
        if answer is None or value is None:
            same = answer is value
        else:
            same = how.of_json(value) == how.of_sql(answer)
        if not same:
            wrong.append((kind, where, str(value)[:300], str(answer)[:300]))

    for row in result.rows:
        assert row["finding"] == 0, row
        number = int(row["table"][1:])
        for side in ("before", "after"):
            if row[side] is not None:
                compare(json.loads(row[side]), number, f"{row['operation']} {side}")
    assert wrong == []
    assert set(seen.values()) == {1}
    assert len(seen) == 4 * len(answers)


def images_of(server: Server, statements: list[str], *, uncertain: bool = False, **how: Any) -> list[tuple[Any, Any]]:
    """What `statements` change in the schema `one`, as both images of each row. uncertain: each has a value of which nobody
    knows the sign or the character set, and says so.
    """
    server.execute_many([*SESSION, "FLUSH BINARY LOGS", *statements, "FLUSH BINARY LOGS"], "one")
    data = server.binlogs()[-2].read_bytes()
    rows = changed_rows(builds()[0], data, unpack_payload=unpacked, **how).rows
    assert {row["finding"] for row in rows} == {VALUE_UNCERTAIN if uncertain else 0}
    return [tuple(json.loads(row[side]) if row[side] else None for side in ("before", "after")) for row in rows]  # type: ignore[misc]


def test_partial_updates_are_the_list_of_what_changes_and_minimal_images_have_only_their_columns(
    servers: ServerFactory,
) -> None:
    server = servers("mysql97").start(
        options=[
            "--binlog-row-metadata=FULL",
            "--binlog-row-image=MINIMAL",
            "--binlog-row-value-options=PARTIAL_JSON",
        ]
    )
    server.execute_many(
        [
            "CREATE DATABASE one",
            "CREATE TABLE one.t (id INT UNSIGNED PRIMARY KEY, a JSON, plain INT, b JSON)",
            """INSERT INTO one.t VALUES (1, '{"k": "a long enough text to be worth it", "n": [1, 2]}', 5, '[1]')""",
        ]
    )
    found = images_of(
        server,
        [
            "UPDATE t SET a = JSON_SET(a, '$.k', 'shorter', '$.n[1]', 2.5, '$.new', JSON_OBJECT('x', NULL)), b = '[2]'",
            "UPDATE t SET a = JSON_REMOVE(a, '$.k'), plain = 6",
            "DELETE FROM t",
        ],
    )
    changes, removal, deletion = found
    assert changes[0] == {"id": 1}
    assert changes[1] == {
        "a": {
            "$diffs": [
                {"op": "replace", "path": "$.k", "value": "shorter"},
                {"op": "replace", "path": "$.n[1]", "value": 2.5},
                {"op": "insert", "path": "$.new", "value": {"x": None}},
            ]
        },
        "b": [2],
    }
    assert removal == ({"id": 1}, {"a": {"$diffs": [{"op": "remove", "path": "$.k"}]}, "plain": 6})
    assert deletion == ({"id": 1}, None)


def test_noblob_images_leave_out_what_did_not_change_and_several_tables_change_in_one_statement(
    servers: ServerFactory,
) -> None:
    server = servers("mariadb").start(options=["--binlog-row-metadata=FULL", "--binlog-row-image=NOBLOB"])
    server.execute_many(
        [
            "CREATE DATABASE one",
            "CREATE TABLE one.t (id INT PRIMARY KEY, n INT, big BLOB, word TEXT CHARACTER SET latin1)",
            "CREATE TABLE one.s (id INT PRIMARY KEY, u BIGINT UNSIGNED, e ENUM('x','ü') CHARACTER SET latin1)",
            "INSERT INTO one.t VALUES (1, 2, x'00', 'é')",
            "INSERT INTO one.s VALUES (1, 18446744073709551615, 'ü')",
        ]
    )
    found = images_of(
        server,
        ["UPDATE t SET n = 3", "UPDATE t SET word = 'è'", "UPDATE t, s SET t.n = 4, s.e = 'x'", "DELETE FROM s"],
    )
    assert found[:2] == [
        ({"id": 1, "n": 2}, {"id": 1, "n": 3}),
        ({"id": 1, "n": 3}, {"id": 1, "n": 3, "word": "è"}),
    ]
    assert sorted(found[2:4], key=lambda images: len(images[0])) == [
        ({"id": 1, "n": 3}, {"id": 1, "n": 4}),
        ({"id": 1, "u": 18446744073709551615, "e": "ü"}, {"id": 1, "u": 18446744073709551615, "e": "x"}),
    ]
    assert found[4] == ({"id": 1, "u": 18446744073709551615, "e": "x"}, None)


def test_types_whose_columns_nobody_tells_anything_about_are_read_as_far_as_the_binlog_goes(
    servers: ServerFactory,
) -> None:
    server = servers("mysql56").start()
    server.sql("CREATE DATABASE one")
    found = images_of(
        server,
        [
            "CREATE TABLE t (a INT UNSIGNED, b VARCHAR(9) CHARACTER SET latin1, c VARCHAR(9) CHARACTER SET utf8, "
            "d ENUM('x', 'y'), e SET('x', 'y'), f BINARY(4))",
            "INSERT INTO t VALUES (4294967295, 'é', 'é', 'y', 'x,y', x'ff00')",
        ],
        uncertain=True,
    )
    assert found == [
        (None, {"@1": -1, "@2": {"base64": "6Q=="}, "@3": "é", "@4": 2, "@5": 3, "@6": {"base64": "/w=="}})
    ]
