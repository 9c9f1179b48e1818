"""Commands that cost as much as possible: everything that one account may send, code and body, and what it has set before."""

import random
import struct
import uuid
from typing import Final

from protocol.errors import StatementRefused
from protocol.statements import SourceFacts, StatementSession, answer_statement
from tests.fuzz_connection import STATEMENTS, any_command

QUERY, PREPARE = b"\x03", b"\x16"
_OPTIONAL: Final = "a?" * 127
_CLASSES: Final = "[a-m]?[n-z_0-9]?" * 15
_PATTERNS: Final = "!%&/;=-,"
_JOINED: Final = "CONCAT(@v0, @v1, @v2, @v3)"
_TEXT_VARIABLES: Final = (
    "sql_mode",
    "lc_time_names",
    "default_storage_engine",
    "session_track_system_variables",
    "binlog_format",
)
_CHANGED: Final = b"'\"\\`;()*%\0\xff\xfb\xfc?@ "


def settings() -> list[bytes]:
    """Return what a client sets before: texts as long as the relay keeps them."""
    sets = ",".join(f"{uuid.UUID(int=number)}:1" for number in range(400))[:16000]
    texts = {"v0": sets, "v1": "," + sets, "v2": "ß" * 16000, "v3": "a" * 16000}
    variables = [f"SET SESSION {name} = '{'a' * length}'" for name in _TEXT_VARIABLES for length in (16384, 512)]
    return [
        QUERY + text.encode() for text in (*(f"SET @{name} = '{text}'" for name, text in texts.items()), *variables)
    ]


def session_of_long_variables() -> StatementSession:
    """Return a session in which `settings` were answered."""
    session = StatementSession(SourceFacts("mysql", "5.7.44-log", 3, "uuid", "CRC32"), 1)
    for command in settings():
        try:
            answer_statement(command[1:].decode(), session, 0.0, in_a_thread=True)
        except StatementRefused as error:
            assert error.number == 1231
    return session


def costly_commands() -> dict[str, bytes]:
    """Return the commands by name."""
    statements = {
        "REGEXP that may be anything": _where("REGEXP", [_OPTIONAL + end for end in "bcdefghi"]),
        "REGEXP of classes": _where("REGEXP", [_CLASSES + end for end in _PATTERNS]),
        "LIKE": _where("LIKE", ["%_" * 63 + end for end in "bcdefghi"]),
        "REGEXP on status": _where("REGEXP", [_CLASSES + end for end in _PATTERNS]).replace("VARIABLES", "STATUS"),
        "GTID_SUBTRACT": f"SELECT {_many('GTID_SUBTRACT(CONCAT(@v0, @v1), CONCAT(@v0, @v1))', 16)}",
        "case of long texts": f"SELECT {_many(f'UPPER(LOWER(UPPER(LOWER(UPPER(LOWER({_JOINED}))))))', 25)}",
        "long texts": f"SELECT {_many(_JOINED, 60)}",
        "dates": f"SELECT {_many(f'UNIX_TIMESTAMP({_JOINED})', 60)}",
        "nested IF": f"SELECT {_many('IF(IF(IF(IF(1=1,2,3)=1,2,3)=1,2,3)=1,1,1)', 20)}",
        "comparisons": "SELECT " + "1=" * 500 + "1",
        "parentheses": "SELECT " + "(" * 500 + "1" + ")" * 500 + " FROM information_schema.tables",
        "items": "SELECT " + "1," * 500 + "1",
        "IN list": "SELECT 1 FROM information_schema.tables WHERE version IN (" + "1," * 480 + "1)",
        "escapes": "SELECT '" + "\\a" * 32500 + "'",
        "open escapes": "SELECT '" + "\\a" * 32500,
        "quotes": "SELECT '" + "''" * 32500 + "'",
        "collations": "SHOW COLLATION WHERE " + " OR ".join(["Collation IN (" + "'x'," * 59 + "'y')"] * 7),
    }
    commands = {name: QUERY + statement.encode() for name, statement in statements.items()}
    return commands | {
        "prepared escapes": PREPARE + statements["escapes"].encode(),
        "prepared places": PREPARE + b"SELECT " + b"?," * 480 + b"?",
        "a megabyte of no characters": QUERY + b"\x81" * 1_000_000,
        "a database of a megabyte": b"\x02" + b"\x81" * 1_000_000,
        "a table of a megabyte": b"\x04" + b"\x81" * 1_000_000,
        "a replica of a megabyte": b"\x15" + b"\x81" * 1_000_000,
        "a value of a megabyte": b"\x17" + struct.pack("<IBI", 1, 0, 1) + b"\x81" * 1_000_000,
    }


def random_command(dice: random.Random) -> bytes:
    """Return a command of any kind, some of them long, all slightly changed. None of them ends the connection."""
    kind = dice.random()
    if kind < 0.3:
        command = QUERY + " ".join(dice.choice(STATEMENTS) for _ in range(dice.choice((1, 1, 2, 9)))).encode()
    elif kind < 0.6:
        command = dice.choice(list(costly_commands().values()))[: dice.choice((300, 3000, 70_000))]
    else:
        command = any_command(dice)
    changed = bytearray(command)
    for _ in range(dice.choice((0, 1, 1, 4, 40))):
        place = dice.randrange(1, len(changed) + 1)
        changed[place:place] = bytes([dice.choice(_CHANGED)]) * dice.choice((1, 1, 2, 50))
    return bytes(changed)


def _where(operator: str, patterns: list[str]) -> str:
    return "SHOW VARIABLES WHERE " + " OR ".join(f"Value {operator} '{pattern}'" for pattern in patterns)


def _many(expression: str, count: int) -> str:
    return ", ".join([expression] * count)
