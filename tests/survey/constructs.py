"""The constructs of expressions that the survey asks for: operators, casts, and every function of the source's version."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from protocol.sql.server_functions import functions_of


@dataclass(frozen=True)
class Construct:
    """A construct with a number of arguments. Each of `forms` is the text of it, with {0}, {1} … as the arguments.

    `is_variadic`: more arguments are allowed, which are judged by those that were tried. `further` are texts for an argument,
     by its
    place, beside the values of all classes. `is_aggregate`: it is called over the table of rows. `is_predicate`: see `limits`.
    """

    name: str
    arity: int
    forms: tuple[str, ...]
    is_variadic: bool = False
    further: tuple[tuple[int, tuple[str, ...]], ...] = ()


UNITS: Final = (
    "MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "SECOND_MICROSECOND",
     "MINUTE_MICROSECOND",
    "MINUTE_SECOND", "HOUR_MICROSECOND", "HOUR_SECOND", "HOUR_MINUTE", "DAY_MICROSECOND", "DAY_SECOND", "DAY_MINUTE", "DAY_HOUR",
    "YEAR_MONTH",
)  # fmt: skip
_SIMPLE_UNITS: Final = UNITS[:9]
_OPERATORS: Final = (
    "+", "-", "*", "/", "%", "DIV", "=", "<=>", "<>", "<", "<=", ">", ">=", "AND", "OR", "XOR", "&", "|", "^", "<<", ">>", "LIKE",
    "NOT LIKE", "REGEXP", "NOT REGEXP", "SOUNDS LIKE",
)  # fmt: skip
_BEFORE: Final = {
    "NOT": "NOT {0}",
    "!": "! ({0})",
    "unary -": "- ({0})",
    "unary +": "+ ({0})",
    "~": "~ {0}",
    "BINARY": "BINARY {0}",
}
_AFTER: Final = {
    "IS NULL": "({0} IS NULL)", "IS NOT NULL": "({0} IS NOT NULL)", "IS TRUE": "({0} IS TRUE)", "IS FALSE": "({0} IS FALSE)",
    "IS UNKNOWN": "({0} IS UNKNOWN)",
}  # fmt: skip
_CASTS: Final = {
    "SIGNED": ("SIGNED",), "UNSIGNED": ("UNSIGNED",), "CHAR": ("CHAR", "CHAR(3)", "CHAR CHARACTER SET latin1"),
    "BINARY": ("BINARY", "BINARY(4)"), "DATE": ("DATE",), "DATETIME": ("DATETIME", "DATETIME(3)"), "TIME": ("TIME", "TIME(3)"),
    "DECIMAL": ("DECIMAL", "DECIMAL(10,2)", "DECIMAL(65,30)"), "NCHAR": ("NCHAR",),
}  # fmt: skip
_NEW_CASTS: Final = {
    "YEAR": ("YEAR",),
    "DOUBLE": ("DOUBLE",),
    "FLOAT": ("FLOAT",),
    "REAL": ("REAL",),
    "JSON": ("JSON",),
}
_COLLATIONS: Final = (
    ("utf8", "utf8_general_ci"), ("utf8", "utf8_unicode_ci"), ("utf8", "utf8_bin"), ("latin1", "latin1_swedish_ci"),
    ("latin1", "latin1_bin"), ("utf8mb4", "utf8mb4_general_ci"), ("utf8mb4", "utf8mb4_unicode_ci"), ("utf8mb4", "utf8mb4_bin"),
    ("cp1251", "cp1251_general_ci"), ("latin2", "latin2_general_ci"), ("utf8", "utf8_german2_ci"), ("utf8",
     "utf8_unicode_520_ci"),
)  # fmt: skip
_BY_ARITY: Final[dict[tuple[int, ...], str]] = {
    (0,): "CURDATE CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURTIME LOCALTIME LOCALTIMESTAMP NOW PI UTC_DATE "
    "UTC_TIME UTC_TIMESTAMP",
    (1,): """ST_LONGFROMGEOHASH ABS ACOS AREA ASBINARY ASCII ASIN ASTEXT ASWKB ASWKT BIN BIT_COUNT BIT_LENGTH CEIL CEILING
     CENTROID CHARACTER_LENGTH
     CHARSET CHAR_LENGTH COERCIBILITY COLLATION COMPRESS COS COT CRC32 CURTIME DATE DAY DAYNAME DAYOFMONTH DAYOFWEEK
     DAYOFYEAR DEGREES DIMENSION ENDPOINT ENVELOPE EXP EXTERIORRING FLOOR FROM_BASE64 FROM_DAYS FROM_UNIXTIME GEOMETRYTYPE
     GEOMFROMTEXT GEOMFROMWKB GLENGTH HEX HOUR INET6_ATON INET6_NTOA INET_ATON INET_NTOA ISCLOSED ISEMPTY ISNULL ISSIMPLE
     IS_IPV4 IS_IPV4_COMPAT IS_IPV4_MAPPED IS_IPV6 LAST_DAY LCASE LENGTH LN LOG LOG10 LOG2 LOWER LTRIM MD5 MICROSECOND MINUTE
     MONTH MONTHNAME NOW NUMGEOMETRIES NUMINTERIORRINGS NUMPOINTS OCT OCTET_LENGTH OLD_PASSWORD ORD PASSWORD QUARTER QUOTE
     RADIANS RAND REVERSE ROUND RTRIM SECOND SEC_TO_TIME SHA SHA1 SIGN SIN SOUNDEX SPACE SQRT SRID STARTPOINT ST_AREA
     ST_ASBINARY ST_ASTEXT ST_ASWKB ST_ASWKT ST_CENTROID ST_DIMENSION ST_ENDPOINT ST_ENVELOPE ST_EXTERIORRING
     ST_GEOMCOLLFROMTEXT ST_GEOMCOLLFROMWKB ST_GEOMETRYTYPE ST_GEOMFROMTEXT ST_GEOMFROMWKB ST_ISCLOSED ST_ISEMPTY ST_ISSIMPLE
     ST_LENGTH ST_LINEFROMTEXT ST_LINEFROMWKB ST_NUMGEOMETRIES ST_NUMINTERIORRINGS ST_NUMPOINTS ST_POINTFROMTEXT
     ST_POINTFROMWKB ST_POLYFROMTEXT ST_POLYFROMWKB ST_SRID ST_STARTPOINT ST_X ST_Y TAN TIME TIMESTAMP TIME_TO_SEC TO_BASE64
     TO_DAYS TO_SECONDS TRIM UCASE UNCOMPRESS UNCOMPRESSED_LENGTH UNHEX UNIX_TIMESTAMP UPPER UTC_TIME UTC_TIMESTAMP WEEK
     WEEKDAY WEEKOFYEAR WEIGHT_STRING X Y YEAR YEARWEEK ST_BUFFER_STRATEGY ST_CONVEXHULL ST_ISVALID ST_VALIDATE ST_LATITUDE
     ST_LONGITUDE ST_SWAPXY GEOMETRYFROMTEXT GEOMETRYFROMWKB POINTFROMTEXT POINTFROMWKB LINEFROMTEXT LINEFROMWKB
     LINESTRINGFROMTEXT LINESTRINGFROMWKB POLYFROMTEXT POLYFROMWKB POLYGONFROMTEXT POLYGONFROMWKB MPOINTFROMTEXT
     MPOINTFROMWKB MULTIPOINTFROMTEXT MULTIPOINTFROMWKB MLINEFROMTEXT MLINEFROMWKB MULTILINESTRINGFROMTEXT
     MULTILINESTRINGFROMWKB MPOLYFROMTEXT MPOLYFROMWKB MULTIPOLYGONFROMTEXT MULTIPOLYGONFROMWKB GEOMCOLLFROMTEXT
     GEOMCOLLFROMWKB GEOMETRYCOLLECTIONFROMTEXT GEOMETRYCOLLECTIONFROMWKB ST_GEOMETRYFROMTEXT ST_GEOMETRYFROMWKB
     ST_GEOMETRYCOLLECTIONFROMTEXT ST_GEOMETRYCOLLECTIONFROMWKB ST_LINESTRINGFROMTEXT ST_LINESTRINGFROMWKB ST_POLYGONFROMTEXT
     ST_POLYGONFROMWKB ST_MLINEFROMTEXT ST_MLINEFROMWKB ST_MPOINTFROMTEXT ST_MPOINTFROMWKB ST_MPOLYFROMTEXT ST_MPOLYFROMWKB
     ST_ASGEOJSON ST_GEOMFROMGEOJSON CONVEXHULL BOUNDARY ISRING POINTONSURFACE ST_BOUNDARY ST_ISRING ST_POINTONSURFACE
     ENCRYPT DES_ENCRYPT DES_DECRYPT ANY_VALUE VECTOR_DIM VECTOR_TO_STRING STRING_TO_VECTOR TO_VECTOR FROM_VECTOR JSON_DEPTH
     JSON_LENGTH JSON_TYPE JSON_UNQUOTE JSON_QUOTE JSON_VALID JSON_KEYS JSON_PRETTY JSON_STORAGE_SIZE JSON_STORAGE_FREE
     JSON_COMPACT JSON_DETAILED JSON_LOOSE JSON_NORMALIZE JSON_OBJECT_TO_ARRAY BIN_TO_UUID UUID_TO_BIN IS_UUID FORMAT_BYTES
     FORMAT_PICO_TIME STATEMENT_DIGEST STATEMENT_DIGEST_TEXT CHR CRC32C LENGTHB LTRIM_ORACLE RTRIM_ORACLE TRIM_ORACLE
     NATURAL_SORT_KEY TO_CHAR COLUMN_CHECK COLUMN_JSON COLUMN_LIST VEC_FROMTEXT VEC_TOTEXT DECODE_ORACLE
     VALIDATE_PASSWORD_STRENGTH""",
    (2,): """BUFFER JSON_SCHEMA_VALIDATION_REPORT VEC_DISTANCE ADDDATE ADDTIME AES_DECRYPT AES_ENCRYPT ATAN ATAN2 CONTAINS
     CROSSES CRC32 DATEDIFF DATE_FORMAT DECODE DISJOINT ENCODE
     EQUALS EXTRACTVALUE FIND_IN_SET FORMAT FROM_UNIXTIME GEOMETRYN GEOMFROMTEXT GEOMFROMWKB IFNULL INSTR INTERIORRINGN
     INTERSECTS LEFT LOCATE LOG MAKEDATE MBRCONTAINS MBRDISJOINT MBREQUAL MBREQUALS MBRINTERSECTS MBROVERLAPS MBRTOUCHES
     MBRWITHIN MBRCOVEREDBY MBRCOVERS MOD  NULLIF OVERLAPS PERIOD_ADD PERIOD_DIFF POINT POINTN POW POWER REPEAT
     RIGHT ROUND SHA2 STRCMP STR_TO_DATE ST_BUFFER ST_CONTAINS ST_CROSSES ST_DIFFERENCE ST_DISJOINT ST_DISTANCE ST_EQUALS
     ST_GEOMETRYN ST_GEOMFROMTEXT ST_GEOMFROMWKB ST_INTERIORRINGN ST_INTERSECTION ST_INTERSECTS ST_OVERLAPS ST_POINTN
     ST_SYMDIFFERENCE ST_TOUCHES ST_UNION ST_WITHIN ST_POINTFROMTEXT SUBDATE SUBSTR SUBSTRING MID SUBTIME TIMEDIFF TIMESTAMP
     TIME_FORMAT TOUCHES TRUNCATE WEEK WITHIN YEARWEEK GTID_SUBSET GTID_SUBTRACT LPAD RPAD ST_DISTANCE_SPHERE ST_MAKEENVELOPE
     ST_SIMPLIFY ST_GEOHASH ST_LATFROMGEOHASH ST_POINTFROMGEOHASH ST_FRECHETDISTANCE ST_HAUSDORFFDISTANCE ST_SRID
     ST_TRANSFORM ST_LINEINTERPOLATEPOINT ST_LINEINTERPOLATEPOINTS ST_POINTATDISTANCE ST_X ST_Y ST_ASGEOJSON JSON_CONTAINS
     JSON_CONTAINS_PATH JSON_EXTRACT JSON_KEYS JSON_LENGTH JSON_MERGE JSON_MERGE_PATCH JSON_MERGE_PRESERVE JSON_REMOVE
     JSON_OBJECT JSON_ARRAY JSON_VALUE JSON_QUERY JSON_EXISTS JSON_EQUALS JSON_OVERLAPS JSON_SCHEMA_VALID JSON_DETAILED
     JSON_ARRAY_INTERSECT JSON_OBJECT_FILTER_KEYS JSON_KEY_VALUE REGEXP_INSTR REGEXP_LIKE REGEXP_SUBSTR NVL ADD_MONTHS
     SFORMAT TO_CHAR BIN_TO_UUID UUID_TO_BIN RPAD_ORACLE LPAD_ORACLE CRC32C SUBSTR_ORACLE VEC_DISTANCE_COSINE
     VEC_DISTANCE_EUCLIDEAN COLUMN_CREATE COLUMN_EXISTS COLUMN_DELETE""",
    (3,): """CONV COLUMN_ADD CONVERT_TZ FORMAT IF LOCATE LPAD MAKETIME MID REPLACE RPAD SUBSTR SUBSTRING SUBSTRING_INDEX ST_BUFFER
     ST_SIMPLIFY JSON_CONTAINS JSON_EXTRACT JSON_INSERT JSON_REPLACE JSON_SET JSON_ARRAY_APPEND JSON_ARRAY_INSERT JSON_SEARCH
     JSON_REMOVE JSON_CONTAINS_PATH REGEXP_REPLACE REGEXP_INSTR REGEXP_SUBSTR REGEXP_LIKE NVL2 REPLACE_ORACLE LPAD_ORACLE
     RPAD_ORACLE SUBSTR_ORACLE ST_DISTANCE_SPHERE ST_DISTANCE ST_GEOMFROMTEXT AES_ENCRYPT AES_DECRYPT UPDATEXML ST_RELATE
     JSON_MERGE_PATCH JSON_MERGE_PRESERVE EXPORT_SET ST_GEOHASH""",
    (4,): "INSERT EXPORT_SET REGEXP_REPLACE",
}  # fmt: skip
_VARIADIC: Final[dict[str, int]] = {
    "CONCAT": 1, "CONCAT_OPERATOR_ORACLE": 2, "CONCAT_WS": 2, "COALESCE": 1, "GREATEST": 2, "LEAST": 2, "ELT": 2, "FIELD": 2,
     "MAKE_SET": 2, "CHAR": 1,
    "INTERVAL": 2,
    "LINESTRING": 2, "MULTIPOINT": 1, "GEOMETRYCOLLECTION": 1, "GEOMCOLLECTION": 1, "POLYGON": 1, "MULTILINESTRING": 1,
    "MULTIPOLYGON": 1,
    "JSON_ARRAY": 1,
}  # fmt: skip
"""Functions of any number of arguments, and the fewest."""
_FURTHER: Final[dict[str, dict[int, tuple[str, ...]]]] = {
    "DATE_FORMAT": {1: ("'%a %b %c %D %d %e %f %H %h %I %i %j %k'", "'%l %M %m %p %r %S %s %T %U %u %V %v %W %w %X %x %Y %y %%'",
                        "'%z'")},
    "TIME_FORMAT": {1: ("'%f %H %h %I %i %k %l %p %r %S %s %T'", "'%Y %m %d'")},
    "FROM_UNIXTIME": {1: ("'%Y-%m-%d %T.%f'", "'%W %w %X'")},
    "STR_TO_DATE": {1: ("'%Y-%m-%d'", "'%d.%m.%Y %H:%i'", "'%T'", "'%Y'", "'%a %b'", "'%Y-%m-%d %H:%i:%s.%f'")},
    "FORMAT": {2: ("'de_DE'", "'en_US'", "'fr_FR'", "'hi_IN'")},
    "CONV": {0: ("'ff'", "'-7'"), 1: ("2", "8", "10", "16", "36", "-10"), 2: ("2", "10", "16", "36", "-10", "-16")},
    "CONVERT_TZ": {1: ("'+00:00'", "'SYSTEM'"), 2: ("'+02:00'", "'-12:59'", "'+14:00'")},
    "REGEXP": {1: ("'a.b'", "'^.$'", "'^[a-c]+$'", "'[[:<:]]a'", "'[[:alpha:]]'", "'a|b'", "'b*'", "'(a)(b)?'", "'\\\\d'",
     "'a{1,2}'")},
    "NOT REGEXP": {1: ("'^..$'", "'a.b'", "'[^a]'")},
    "LIKE": {1: ("'%'", "'a_'", "'a\\\\%'", "'%b%'", "'A%'")},
    "SHA2": {1: ("224", "256", "384", "512")},
    "WEEK": {1: ("4", "5", "6", "7")},
    "YEARWEEK": {1: ("4", "5", "6", "7")},
    **{one: {0: ("'LINESTRING(0 0,1 1)'", "'POLYGON((0 0,4 0,4 4,0 4,0 0))'", "'GEOMETRYCOLLECTION(POINT(1 2))'",
             "'POINT(100 200)'"),
         1: ("0", "4326")} for one in ("GEOMFROMTEXT", "ST_GEOMFROMTEXT", "ASTEXT")},
    **{one: {0: ("'  a  '", "'\\t a \\n'")} for one in ("LTRIM", "RTRIM", "TRIM")},
    **{one: {0: ("'10.0.5.9'", "'::1'", "'127.1'", "'::ffff:10.0.0.1'")} for one in ("INET_ATON", "INET6_ATON", "IS_IPV4",
     "IS_IPV6")},
    **{one: {0: ("'<a><b>1</b><b>2</b></a>'",), 1: ("'/a/b'", "'/a/b[2]'", "'count(/a/b)'")} for one in ("EXTRACTVALUE",
     "UPDATEXML")},
    **{one: {0: ("'{\"b\": 1.0, \"a\": [true, null, \"x\"], \"a\": 3}'",),
             1: ("'$'", "'$.a'", "'$.a[0]'", "'$.*'", "'$[last]'", "'$.b'")}
       for one in ("JSON_EXTRACT", "JSON_VALUE", "JSON_QUERY", "JSON_EXISTS", "JSON_REMOVE", "JSON_KEYS", "JSON_LENGTH",
       "JSON_SET",
         "JSON_INSERT",
         "JSON_REPLACE", "JSON_ARRAY_APPEND", "JSON_ARRAY_INSERT")},
    "JSON_CONTAINS_PATH": {1: ("'one'", "'all'"), 2: ("'$.a'", "'$[0]'")},
    "JSON_SEARCH": {1: ("'one'", "'all'")},
    "REGEXP_REPLACE": {1: ("'a'", "'(a)(b)'"), 2: ("'x'", "'$1'", "'\\\\1'")},
    "GET_FORMAT": {0: ("'EUR'", "'USA'", "'JIS'", "'ISO'", "'INTERNAL'")},
    "UNCOMPRESS": {0: ("COMPRESS('abc')",)},
    "UNCOMPRESSED_LENGTH": {0: ("COMPRESS('abc')",)},
    "FROM_BASE64": {0: ("'YWJj'", "'YW Jj\\n'", "'YWJ'")},
    **{one: {0: ("x'0101000000000000000000F03F0000000000000040'",)} for one in ("GEOMFROMWKB", "ST_GEOMFROMWKB")},
}  # fmt: skip
_SPECIAL: Final[dict[str, tuple[tuple[int, str], ...]]] = {
    "TRIM": ((2, "TRIM(LEADING {0} FROM {1})"), (2, "TRIM(TRAILING {0} FROM {1})"), (2, "TRIM(BOTH {0} FROM {1})")),
    "POSITION": ((2, "POSITION({0} IN {1})"),),
    "GET_FORMAT": ((1, "GET_FORMAT(DATE, {0})"), (1, "GET_FORMAT(DATETIME, {0})"), (1, "GET_FORMAT(TIME, {0})")),
    "CHAR": ((1, "CHAR({0} USING utf8)"), (1, "CHAR({0} USING latin1)")),
    "TIMESTAMPADD": tuple((2, f"TIMESTAMPADD({unit}, {{0}}, {{1}})") for unit in _SIMPLE_UNITS),
    "TIMESTAMPDIFF": tuple((2, f"TIMESTAMPDIFF({unit}, {{0}}, {{1}})") for unit in _SIMPLE_UNITS),
    "WEIGHT_STRING": ((1, "WEIGHT_STRING({0} AS CHAR(3))"), (1, "WEIGHT_STRING({0} AS BINARY(3))")),
    "ATAN": ((1, "ATAN({0})"),),
    "FORMAT": (),
    "SUBSTRING": ((2, "SUBSTRING({0} FROM {1})"), (3, "SUBSTRING({0} FROM {1} FOR {2})")),
    "NAME_CONST": ((1, "NAME_CONST('name', {0})"),),
    "COLUMN_GET": ((2, "COLUMN_GET({0}, {1} AS CHAR)"),),
    "JSON_VALUE": ((2, "JSON_VALUE({0}, {1})"),),
}  # fmt: skip
_INTERVALS: Final = {
    "INTERVAL +": "({{0}} + INTERVAL {{1}} {unit})", "INTERVAL -": "({{0}} - INTERVAL {{1}} {unit})",
    "DATE_ADD()": "DATE_ADD({{0}}, INTERVAL {{1}} {unit})", "DATE_SUB()": "DATE_SUB({{0}}, INTERVAL {{1}} {unit})",
    "ADDDATE() INTERVAL": "ADDDATE({{0}}, INTERVAL {{1}} {unit})", "SUBDATE() INTERVAL": "SUBDATE({{0}}, INTERVAL {{1}} {unit})",
}  # fmt: skip
AGGREGATES: Final = (
    "COUNT", "SUM", "MIN", "MAX", "AVG", "GROUP_CONCAT", "BIT_AND", "BIT_OR", "BIT_XOR", "STD", "STDDEV", "STDDEV_POP",
     "STDDEV_SAMP",
    "VARIANCE", "VAR_POP", "VAR_SAMP", "JSON_ARRAYAGG",
)  # fmt: skip
LEFT_OUT: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("CONNECTION_ID", "CURRENT_USER", "SESSION_USER", "SYSTEM_USER", "USER", "CURRENT_ROLE", "DATABASE", "SCHEMA", "VERSION",
         "FOUND_ROWS", "ROW_COUNT", "LAST_INSERT_ID", "ROLES_GRAPHML", "ICU_VERSION", "PS_CURRENT_THREAD_ID", "PS_THREAD_ID"),
        "it is of the session or of the server",
    ),
    **dict.fromkeys(
        ("UUID", "UUID_SHORT", "SYSDATE", "RANDOM_BYTES", "SYS_GUID", "UUID_V4", "UUID_V7", "ENCRYPT"),
        "it gives another value at each call"
    ),
    **dict.fromkeys(
        ("BENCHMARK", "SLEEP", "GET_LOCK", "RELEASE_LOCK", "RELEASE_ALL_LOCKS", "IS_FREE_LOCK", "IS_USED_LOCK", "LOAD_FILE",
         "MASTER_POS_WAIT", "SOURCE_POS_WAIT", "MASTER_GTID_WAIT", "WAIT_FOR_EXECUTED_GTID_SET",
         "WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS", "BINLOG_GTID_POS",
         "WSREP_LAST_SEEN_GTID", "WSREP_LAST_WRITTEN_GTID", "WSREP_SYNC_WAIT_UPTO_GTID", "DECODE_HISTOGRAM", "ETAG", "KDF"),
        "it is for its effect, or reads what is of the server alone",
    ),
    **dict.fromkeys(
        ("CUME_DIST", "DENSE_RANK", "FIRST_VALUE", "LAG", "LAST_VALUE", "LEAD", "NTH_VALUE", "NTILE", "PERCENT_RANK", "RANK",
         "ROW_NUMBER", "MEDIAN", "PERCENTILE_CONT", "PERCENTILE_DISC", "GROUPING", "JSON_TABLE", "MATCH", "DEFAULT", "ROWNUM",
         "LASTVAL",
         "NEXTVAL", "SETVAL",         "JSON_OBJECTAGG", "ST_COLLECT", "JSON_DUALITY_OBJECT"),
        "it needs more than arguments, and is not surveyed",
    ),
}  # fmt: skip
"""Functions that the survey does not ask for, with the reason."""


def constructs_of(version: str) -> Iterator[Construct]:
    """Return what a server of this version has, but for what is left out."""
    yield from _operators()
    yield from _casts("mariadb" in version.lower() or not version.startswith("5."))
    have = functions_of(version)
    for arities, names in _BY_ARITY.items():
        for name in names.split():
            if name in have and name not in LEFT_OUT and name not in _VARIADIC:
                yield from (
                    Construct(f"{name}()", arity, (_call(name, arity), *_special(name, arity)), further=_further(name))
                    for arity in arities
                )
    plain = {(name, arity) for arities, names in _BY_ARITY.items() for name in names.split() for arity in arities}
    for name, special in _SPECIAL.items():
        for arity in sorted({arity for arity, _form in special}):
            if name in have and (name, arity) not in plain and name not in _VARIADIC:
                yield Construct(f"{name}()", arity, tuple(_special(name, arity)), further=_further(name))
    for name, fewest in _VARIADIC.items():
        if name in have or name == "INTERVAL":
            for arity in range(fewest, 4):
                forms = (_call(name, arity), *_special(name, arity))
                yield Construct(f"{name}()", arity, forms, is_variadic=arity == 3, further=_further(name))
    for name in AGGREGATES:
        if name in have:
            yield Construct(f"{name}()", 1, (f"{name}({{0}})",))


def _operators() -> Iterator[Construct]:
    for sign in _OPERATORS:
        yield Construct(sign, 2, (f"({{0}} {sign} {{1}})",), further=_further(sign))
    for name, form in (*_BEFORE.items(), *_AFTER.items()):
        yield Construct(name, 1, (form,))
    for name in ("BETWEEN", "NOT BETWEEN"):
        yield Construct(name, 3, (f"({{0}} {name} {{1}} AND {{2}})",))
    for name in ("IN", "NOT IN"):
        yield Construct(name, 2, (f"({{0}} {name} ({{1}}))",))
        yield Construct(name, 3, (f"({{0}} {name} ({{1}}, {{2}}))",), is_variadic=True)
    yield Construct("CASE", 2, ("(CASE WHEN {0} THEN {1} END)",))
    yield Construct("CASE", 3, ("(CASE WHEN {0} THEN {1} ELSE {2} END)",))
    yield Construct("CASE value", 3, ("(CASE {0} WHEN {1} THEN {2} END)",))
    for unit in UNITS:
        yield Construct(f"EXTRACT({unit})", 1, (f"EXTRACT({unit} FROM {{0}})",))
    for name, form in _INTERVALS.items():
        yield Construct(name, 2, tuple(form.format(unit=unit) for unit in UNITS))


def _casts(is_new: bool) -> Iterator[Construct]:
    for name, types in ((_CASTS | _NEW_CASTS) if is_new else _CASTS).items():
        forms = [f"CAST({{0}} AS {one})" for one in types] + [f"CONVERT({{0}}, {one})" for one in types[:1]]
        yield Construct(f"CAST AS {name}", 1, tuple(forms))
    charsets = sorted({charset for charset, _collation in _COLLATIONS})
    yield Construct("CONVERT USING", 1, tuple(f"CONVERT({{0}} USING {charset})" for charset in charsets))
    yield Construct(
        "COLLATE",
        1,
        tuple(f"(CONVERT({{0}} USING {charset}) COLLATE {collation})" for charset, collation in _COLLATIONS),
    )
    compared = tuple(
        f"(CONVERT({{0}} USING {charset}) COLLATE {collation} {sign} CONVERT({{1}} USING {charset}))"
        for charset, collation in _COLLATIONS
        for sign in ("=", "<", "LIKE")
    )
    yield Construct("COLLATE, compared", 2, compared)
    for name in ("UPPER", "LOWER"):
        cased = tuple(
            f"{name}(CONVERT({{0}} USING {charset}) COLLATE {collation})" for charset, collation in _COLLATIONS
        )
        yield Construct(f"{name}() COLLATE", 1, cased)


def _call(name: str, arity: int) -> str:
    if name in ("CURRENT_DATE", "UTC_DATE") and not arity:
        return f"{name}()"
    return f"{name}({', '.join(f'{{{at}}}' for at in range(arity))})"


def _special(name: str, arity: int) -> list[str]:
    return [form for wanted, form in _SPECIAL.get(name, ()) if wanted == arity]


def _further(name: str) -> tuple[tuple[int, tuple[str, ...]], ...]:
    return tuple(_FURTHER.get(name, {}).items())
