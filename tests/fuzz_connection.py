"""Fuzzes the source's side of a connection: logins, TLS requests, statements, commands, acknowledgements, garbage.

    python -m tests.fuzz_connection [--seconds N] [--seed S]

A case is a conversation as a client could have it, with a few of its bytes changed, cut into reads anywhere. What must
hold: no exception; the same conversation for any cuts; nobody logs in without the password; nothing is said after the end;
what is sent are whole packets, and no more than the input allows; input that waits is bounded; each case takes little time.
A case that breaks one of these is written to tests/corpus/broken_connections/, where the tests replay it.
"""

import functools
import itertools
import json
import random
import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from protocol.auth.account import Account
from protocol.auth.accounts import Accounts
from protocol.auth.authenticator import CACHING_SHA2, ED25519, NATIVE, Channel
from protocol.auth.caching_sha2 import sha2_token
from protocol.auth.credentials import Credentials
from protocol.auth.native import native_token
from protocol.auth.rsa_key import RsaKey
from protocol.auth.sha_crypt import sha256_crypt
from protocol.capabilities import OFFERED, Capability
from protocol.errors import AnsweredError, ErrorCode, StatementRefused
from protocol.framing import frame_payload
from protocol.resultset import Rows
from protocol.source_side.connection_events import (
    CheckRequested,
    Closed,
    DumpRequested,
    Event,
    LoggedIn,
    StatementRequested,
    TlsRequested,
)
from protocol.source_side.connection_states import State
from protocol.source_side.connection_terms import LoginTerms
from protocol.source_side.machine import SourceSide
from protocol.statements import Done, GivenAnswer, SourceFacts, StatisticsText
from protocol.statements.requests import Request, ShowStatistics
from protocol.wire import lenenc_bytes
from tests.support.fuzzing import broken_cases, fuzz_command

FINDINGS: Final = Path(__file__).resolve().parent / "corpus" / "broken_connections"
PASSWORD, WRONG = "right", "wrong"
SALT: Final = b"twenty bytes of salt"
# What the machine draws as random bytes makes every challenge the same.
SCRAMBLE: Final = b"!" * 20
ROUNDS: Final = 1000
CASE_LIMIT_S: Final = 5.0
# Of one command: the largest answer here is a list of all variables.
ANSWER_LIMIT_BYTES: Final = 65536
FACTS: Final = (
    SourceFacts("mysql", "5.6.24-log", 1, "d1e2f3a4-0000-1111-2222-333344445555", "CRC32", semi_sync=True),
    SourceFacts("mysql", "9.7.4", 1, "d1e2f3a4-0000-1111-2222-333344445555", "NONE"),
    SourceFacts("mariadb", "10.11.19-MariaDB-log", 1, None, "CRC32", semi_sync=True),
)
STATEMENTS: Final = (
    "SELECT UNIX_TIMESTAMP()",
    "SELECT @@GLOBAL.SERVER_ID, @@version_comment AS c LIMIT 1",
    "SET @master_heartbeat_period = 1000000, @source_heartbeat_period = 1000000",
    "SET @master_binlog_checksum= @@global.binlog_checksum",
    "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci",
    "SET @slave_uuid= 'd1e2f3a4-0000-1111-2222-333344445556'",
    "SET @rpl_semi_sync_slave= 1, @rpl_semi_sync_replica = 1",
    "SELECT binlog_gtid_pos('mysql-bin.000001',4)",
    "SHOW GLOBAL VARIABLES LIKE 'server\\_%'",
    "SHOW VARIABLES WHERE variable_name IN ('a', 'version')",
    "SHOW BINLOG EVENTS IN 'mysql-bin.000001' FROM 4 LIMIT 1,2",
    "SHOW /* comment */ SLAVE STATUS; -- end",
    "show full processlist",
    "SHOW GLOBAL STATUS LIKE 'Threads%'",
    "PURGE BINARY LOGS BEFORE NOW() - INTERVAL 3 DAY",
    "PURGE MASTER LOGS TO 'mysql-bin.000002'",
    "CHANGE MASTER TO MASTER_HOST='h', MASTER_PORT=3306, MASTER_PASSWORD='p', MASTER_LOG_FILE='f', MASTER_LOG_POS=4",
    "CHANGE REPLICATION SOURCE TO SOURCE_HOST='h', SOURCE_SSL=1 FOR CHANNEL ''",
    "START SLAVE IO_THREAD",
    "STOP REPLICA",
    "KILL CONNECTION 3",
    "FLUSH BINARY LOGS",
    "SELECT @@global.read_only&@@global.innodb_read_only read_only",
    "SELECT SUBSTRING_INDEX(host, ':', 1) h, COUNT(*), SUM(time) FROM information_schema.processlist p GROUP BY h LIMIT 2",
    "SELECT a.x, (SELECT MAX(`y`) FROM performance_schema.global_status) FROM (SELECT * FROM c.d) a JOIN b USING (e)",
    "SELECT GET_LOCK('a', 10) AS Value",
    "DO RELEASE_LOCK('a')",
    "SHOW FULL COLUMNS FROM `a`.`b` LIKE 'c%'",
    "SHOW VARIABLES WHERE Variable_name REGEXP '^a(b|[c-d]+)*$'",
    "/*!40101 SET @x = 'it''s' */",
)


class Broken(Exception):
    """What must hold does not."""


@dataclass(frozen=True)
class Case:
    """One conversation. `sent`: the client's bytes, hexadecimal; `cuts`: where the reads end; `honest`: it may log in.

    `choices`: decides which server this is, and how it answers.
    """

    sent: str
    cuts: list[int]
    honest: bool
    choices: int


def save(case: Case, path: Path) -> None:
    """Writes the case to a file."""
    path.write_text(json.dumps(asdict(case)) + "\n")


def load(path: Path) -> Case:
    """The case that `save` wrote."""
    return Case(**json.loads(path.read_text()))


# ---- the server that is talked to ------------------------------------------------------------------------------------


@functools.cache
def rsa_key() -> RsaKey:
    """One for all cases."""
    return RsaKey.new()


@functools.cache
def stored_credentials() -> Credentials:
    """What a server would have stored: it takes a full authentication."""
    encoded = sha256_crypt(PASSWORD.encode(), SALT, ROUNDS)
    return Credentials.from_stored(f"$A${ROUNDS // 1000:03X}${SALT.decode()}{encoded.decode()}")


@functools.cache
def configured() -> tuple[Account, ...]:
    """One account of each kind."""
    password = Credentials.from_password(PASSWORD)
    return (
        Account("every", password, admin=True),
        Account("native", password, plugin=NATIVE),
        Account("sha2", password, plugin=CACHING_SHA2),
        Account("ed", password, plugin=ED25519),
        Account("stored", stored_credentials()),
        Account("tls", password, require_tls=True),
    )


def machine(case: Case) -> SourceSide:
    """A connection to a server of one of the kinds."""
    return SourceSide(
        connection_id=7,
        facts=FACTS[case.choices % len(FACTS)],
        login=LoginTerms(
            Accounts(configured(), secret=bytes(32), rsa_key=rsa_key), bytes, offer_tls=case.choices & 16 != 0
        ),
        host="127.0.0.1",
        now=0.0,
        wall_offset_s=1e9,
    )


def answer_of(request: Request, case: Case) -> GivenAnswer | AnsweredError:
    """What a relay could say."""
    if isinstance(request, ShowStatistics):
        return StatisticsText("Uptime: 1")
    kinds: tuple[GivenAnswer | AnsweredError, ...] = (
        Done(),
        Rows(("a", "b"), ((1, None), (2, "x" * 300))),
        StatementRefused(ErrorCode.ER_UNKNOWN_ERROR, "no"),
    )
    return kinds[case.choices // 3 % len(kinds)]


@dataclass
class Conversation:
    """What came of a case. `comparable`: the same for any cuts, which what follows a dump request is not: what comes with
    it is there before the dump is accepted, or only then."""

    events: list[str]
    output: bytes
    logged_in: bool

    @property
    def comparable(self) -> tuple[list[str], bytes]:
        dump = next(
            (number for number, event in enumerate(self.events) if event.startswith(DumpRequested.__name__)), None
        )
        return (self.events, self.output) if dump is None else (self.events[: dump + 1], b"")


def converse(case: Case, pieces: list[bytes]) -> Conversation:
    """Has the conversation. Raises: Broken, or whatever the machine raises."""
    side = machine(case)
    said: list[str] = []
    output = bytearray(side.bytes_to_send())
    logged_in = ended = False
    received = 0
    waiting = list(pieces)
    while waiting:
        piece = waiting.pop(0)
        received += len(piece)
        events: list[Event] = side.receive(piece, 1.0)
        while events:
            event = events.pop(0)
            if ended:
                raise Broken(f"{event!r} after the end")
            said.append(type(event).__name__ if isinstance(event, TlsRequested | CheckRequested) else repr(event))
            if isinstance(event, TlsRequested):
                if case.choices & 32:
                    events += side.tls_failed("garbage")
                else:
                    side.tls_established(Channel("TLSv1.3", "cipher", client_certificate=case.choices & 64 != 0))
                    # Inside of TLS the same bytes would come.
                    waiting.insert(0, event.received)
            elif isinstance(event, CheckRequested):
                events += side.answer_check(event.work(), 1.0)
            elif isinstance(event, StatementRequested):
                events += side.answer(answer_of(event.request, case), 1.0)
            elif isinstance(event, DumpRequested) and side.state is State.DUMP_REQUESTED:
                if case.choices & 128:
                    events += side.refuse_dump(AnsweredError(ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG, "no"))
                else:
                    sequence = side.accept_dump(takes_acks=case.choices & 8 != 0)
                    if case.choices & 256:
                        events += side.end_dump(sequence, 1.0)
            elif isinstance(event, LoggedIn):
                logged_in = True
            elif isinstance(event, Closed):
                ended = True
        if ended and side.state is not State.CLOSED:
            raise Broken(f"{side.state} after the end")
        output += side.bytes_to_send()
        if len(output) > (received + 2) * ANSWER_LIMIT_BYTES:
            raise Broken(f"{len(output)} bytes in answer to {received}")
    return Conversation(said, bytes(output), logged_in)


def check(case: Case) -> None:
    """Raises Broken, or what the machine raises, if something that must hold does not."""
    started = time.monotonic()
    sent = bytes.fromhex(case.sent)
    whole = converse(case, [sent])
    cuts = sorted(cut % (len(sent) + 1) for cut in case.cuts)
    pieces = [sent[a:b] for a, b in itertools.pairwise([0, *cuts, len(sent)])]
    for others in (pieces, [bytes([byte]) for byte in sent[:3000]] + [sent[3000:]]):
        other = converse(case, others)
        if other.comparable != whole.comparable:
            raise Broken(f"other in {len(others)} reads: {other.comparable}, {whole.comparable}")
    if whole.logged_in and not case.honest:
        raise Broken("logged in without the password")
    _check_packets(whole.output)
    if time.monotonic() - started > CASE_LIMIT_S:
        raise Broken(f"took {time.monotonic() - started:.1f} s")


def _check_packets(output: bytes) -> None:
    offset = 0
    while offset < len(output):
        size = int.from_bytes(output[offset : offset + 3], "little")
        offset += 4 + size
    if offset != len(output):
        raise Broken(f"the output ends inside a packet: {output[-40:]!r}")


# ---- conversations ---------------------------------------------------------------------------------------------------


def make_case(dice: random.Random) -> Case:
    """A conversation, changed a little: the payloads inside of right packets, or any bytes."""
    honest, choices = dice.random() < 0.75, dice.randrange(1 << 9)
    login = list(_login(dice, choices, PASSWORD if honest else WRONG))
    commands = [(0, any_command(dice)) for _ in range(dice.randrange(8))]
    packets = [(number, bytearray(payload)) for number, payload in login + commands]
    for _ in range(dice.choice((0, 0, 1, 1, 2))):
        # Mostly commands: behind a broken login nothing comes.
        first = len(login) if dice.random() < 0.8 and commands else 0
        _change(dice, packets[dice.randrange(first, len(packets))][1])
    data = bytearray().join(frame_payload(bytes(payload), number) for number, payload in packets)
    if dice.random() < 0.3:
        _change(dice, data)
    if dice.random() < 0.02:
        data = bytearray(dice.randbytes(dice.randrange(200)))
    cuts = [dice.randrange(1 << 16) for _ in range(dice.randrange(5))]
    return Case(data.hex(), cuts, honest, choices)


def _login(dice: random.Random, choices: int, password: str) -> Iterator[tuple[int, bytes]]:
    """The packets of a login with their numbers: one that fits user and plugin, or anything."""
    number = 1
    capabilities = OFFERED
    odd = dice.random() < 0.25
    if odd:
        capabilities &= ~dice.choice(list(Capability))
    head = struct.pack("<IIB23x", capabilities | Capability.SSL, 1 << 24, dice.choice((8, 33, 255)))
    if (choices & 16 and not choices & 32 and dice.random() < 0.5) or (odd and dice.random() < 0.3):
        yield number, head
        number += 1
    user = dice.choice(("every", "native", "sha2", "ed", "stored", "tls", "nobody", "", "ü" * 40))
    plugin = dice.choice((NATIVE, CACHING_SHA2, ED25519, "dialog", ""))
    following = [dice.choice((NATIVE, CACHING_SHA2, ED25519, "clear", "key", "encrypted", "garbage")) for _ in range(3)]
    if not odd:
        user, plugin, following = dice.choice(
            (
                ("every", NATIVE, []),
                ("native", NATIVE, []),
                ("native", CACHING_SHA2, [NATIVE]),
                ("every", CACHING_SHA2, [CACHING_SHA2]),
                ("sha2", NATIVE, [CACHING_SHA2]),
                ("tls", NATIVE, []),
                ("stored", CACHING_SHA2, [CACHING_SHA2, "clear"]),
                ("stored", NATIVE, [CACHING_SHA2, "key", "encrypted"]),
                ("ed", NATIVE, [ED25519]),
            )
        )
    attributes = b"".join(lenenc_bytes(text) for text in (b"program_name", b"fuzz", b"_client_version", b"1"))
    body = head + user.encode() + b"\0" + lenenc_bytes(_token(dice, plugin, password))
    if capabilities & Capability.CONNECT_WITH_DB:
        body += b"db\0"
    yield number, body + plugin.encode() + b"\0" + lenenc_bytes(attributes)
    for kind in following:
        number += 2
        yield number, _token(dice, kind, password)


def _token(dice: random.Random, kind: str, password: str) -> bytes:
    if kind == NATIVE:
        return native_token(password, SCRAMBLE)
    if kind == CACHING_SHA2:
        return sha2_token(password.encode(), SCRAMBLE)
    if kind == "clear":
        return password.encode() + b"\0"
    if kind == "key":
        return b"\x02"
    if kind in ("encrypted", ED25519):
        return dice.randbytes(256 if kind == "encrypted" else 64)
    return dice.randbytes(dice.randrange(70))


def any_command(dice: random.Random) -> bytes:
    """A command as a client could send it, its code and its body."""
    kind = dice.random()
    if kind < 0.5:
        return b"\x03" + dice.choice(STATEMENTS).encode()
    if kind < 0.6:
        return b"\x15" + struct.pack("<IB", 77, 3) + b"hst" + struct.pack("<BBHII", 0, 0, 3306, 0, 0)
    if kind < 0.7:
        return b"\x12" + struct.pack("<IHI", 4, dice.randrange(8), 77) + b"mysql-bin.000001"
    if kind < 0.75:
        return b"\x1e" + struct.pack("<HII", 0, 77, 0) + struct.pack("<QI", 4, 8) + bytes(8)
    if kind < 0.78:
        return b"\x16SELECT ?, a FROM information_schema.tables WHERE b = ? LIMIT 2"
    if kind < 0.8:
        return b"\x17" + struct.pack("<IBI", 1, 0, 1) + b"\0\1\3\0\xfd\0\5\0\0\0\2ab"
    if kind < 0.83:
        return b"\xef" + struct.pack("<Q", dice.randrange(1 << 40)) + b"mysql-bin.000001"
    return bytes([dice.randrange(40)]) + dice.randbytes(dice.randrange(30))


def _change(dice: random.Random, data: bytearray) -> None:
    if not data:
        return
    at = dice.randrange(len(data))
    kind = dice.randrange(6)
    if kind == 0:
        data[at] ^= 1 << dice.randrange(8)
    elif kind == 1:
        data[at] = dice.choice((0, 1, 0x7F, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF))
    elif kind == 2:
        del data[at : at + dice.randrange(1, 20)]
    elif kind == 3:
        data[at:at] = dice.randbytes(dice.randrange(1, 20))
    elif kind == 4:
        del data[at:]
    else:
        data[at:at] = data[at : at + dice.randrange(1, 100)]


def run(seed: int, cases: int | None = None, seconds: float | None = None) -> Iterator[tuple[int, Case, str]]:
    """Tries cases until either limit; yields number, case and reason of each that breaks."""
    return broken_cases(seed, make_case, check, cases=cases, seconds=seconds)


if __name__ == "__main__":
    sys.exit(
        fuzz_command(
            "Fuzz a connection's handshake and commands.",
            lambda seed, seconds: run(seed, seconds=seconds),
            save,
            FINDINGS,
        )
    )
