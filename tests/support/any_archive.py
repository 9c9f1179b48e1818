"""Any archive of an old MySQL source, as hypothesis draws it, and what a view must make of each of its transactions: a slow model.

The source's events and the view's result are written by hand, side by side, for each kind of transaction.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple
from uuid import UUID

from hypothesis import strategies as st

from protocol.binlog.gtid_event import decode_gtid
from protocol.gtid.codec import encode_gtid_set
from protocol.gtid.gtid_set import GtidSet
from protocol.wire import lenenc_int
from relay.view.rules.settings import ViewSettings
from tests.support.binlog_builder import MYSQL_56_LENGTHS
from tests.support.event_stream import format_body, query_body, raw_event
from tests.support.view_making import UUID_OF_VIEW, marked

SOURCE_UUID: Final = UUID("0d8d0d4a-1111-11ee-9c63-0f4e3d1f5a16")
MYSQL_97_LENGTHS: Final = bytes.fromhex(
    "000d0008000000000400040000006300041a08000000000000020000000a0a0a2a2a001234000a280000"
)
STATUS: Final = b"\0\0\0\0\0\x01" + struct.pack("<Q", 0) + b"\x06\x03std\x04\x08\0\x08\0\x08\0"
QUERY, XID, MAP, ANONYMOUS, GTID, INCIDENT, ROWS_QUERY = 2, 16, 19, 34, 33, 26, 29
_POST_OF_LOAD: Final = struct.Struct("<IIIB")

Event = tuple[int, bytes]
"""A type and a body."""
Piece = int | str | tuple[int, str]
"""A piece of a transaction of the view: the source's event of that number, a statement of the view's own, or the event with another
text."""
Groups = list[list[Piece]]


@dataclass(frozen=True)
class Wanted:
    """The settings that a model uses. `has_gtid` says whether the transaction has one in the view."""

    gtids: Literal["assign", "anonymous", "keep"]
    engines: Literal["keep", "innodb"]
    accounts: Literal["skip", "keep"]
    target: str
    explicit: bool
    has_gtid: bool = True

    @property
    def version(self) -> tuple[int, int]:
        major, minor = self.target.removeprefix("mysql-").split(".")
        return int(major), int(minor)

    @property
    def is_consistent(self) -> bool:
        """True if a replica refuses what cannot have one GTID: 5.7 and later give their own numbers to transactions without."""
        return self.has_gtid and (self.gtids != "anonymous" or self.version >= (5, 7))

    @property
    def as_the_source(self) -> bool:
        """True if a transaction that needs no GTID is left as it is."""
        return not self.has_gtid and self.engines == "keep"

    @property
    def adds_explicit(self) -> bool:
        return self.version >= (8, 0)

    def settings(self) -> ViewSettings:
        return ViewSettings(
            "v", self.gtids, UUID_OF_VIEW, self.target, self.engines, self.accounts, explicit_timestamps=self.explicit
        )


Model = Callable[[Wanted], Groups | None]
"""The view's result; None if it stops before the transaction."""


@dataclass(frozen=True)
class Transaction:
    """A transaction of the source. `head` is a GTID event of the source's own, before `events`."""

    name: str
    events: tuple[Event, ...]
    model: Model | None
    head: Event | None = None
    timestamp: int = 1_700_000_000
    server_id: int = 1

    def expected(self, wanted: Wanted) -> Groups | None:
        """Return the view's result; None if it stops before the transaction."""
        if self.model is None:
            return self.is_same
        return self.model(replace(wanted, has_gtid=wanted.gtids != "keep" or self.head is not None))

    @property
    def is_same(self) -> Groups:
        """The result if nothing is changed."""
        return [list(range(len(self.events)))]

    @property
    def all_events(self) -> list[Event]:
        return [*([] if self.head is None else [self.head]), *self.events]


class GtidLayout(NamedTuple):
    """The layout of GTID events. With `has_length` they contain time, transaction_length and version; `trailer` is the number of
    checksum bytes after an event."""

    has_length: bool
    trailer: int


@dataclass(frozen=True)
class SourceBinlog:
    """One file. If `ending` is `cut`, a last transaction has no end because the source crashed; if it is `open`, it is still
    written."""

    name: str
    transactions: tuple[Transaction, ...]
    checksum: bool
    ending: Literal["rotate", "stop", "cut", "open"]
    created: bool
    version: str
    previous: str = ""
    """The content of its Previous_gtids event; without a GTID in the archive there is no such event."""
    has_previous: bool = False

    @property
    def numbered_version(self) -> int:
        """The version as GTID events contain it."""
        return {"5": 50562, "6": 50624, "7": 90704}[self.version[2]]

    @property
    def is_old(self) -> bool:
        """True if its server knew no checksums, no GTIDs and no rows of version 2."""
        return self.version.startswith("5.5")

    def data(self) -> tuple[bytes, list[int]]:
        """Return the file with the archive's marks, and the offsets where each transaction begins and where the last ends."""
        made = bytearray(b"\xfebin")

        def add(kind: int, body: bytes, timestamp: int = 1_700_000_000, server_id: int = 1, flags: int = 0) -> None:
            event = raw_event(
                kind,
                body,
                offset=len(made),
                checksum=self.checksum or (kind == 15 and not self.is_old),
                timestamp=timestamp,
                server_id=server_id,
                flags=flags,
            )
            made.extend(event)

        lengths, algorithm = (MYSQL_56_LENGTHS[:27], None) if self.is_old else (MYSQL_56_LENGTHS, int(self.checksum))
        if self.version.startswith("9"):
            lengths = MYSQL_97_LENGTHS
        add(15, format_body(self.version, lengths, algorithm, created=1_700_000_000 * self.created))
        if self.has_previous:
            add(35, encode_gtid_set(GtidSet.from_text(self.previous)), flags=0x80)
        places = [len(made)]
        for one in self.transactions:
            for kind, body in one.all_events:
                add(kind, body, one.timestamp, one.server_id, 8 if body.endswith((b"\0BEGIN", b"\0COMMIT")) else 0)
            places.append(len(made))
        if self.ending == "cut":
            for kind, body in (query("BEGIN"), (MAP, table_map("i"))):
                add(kind, body)
        elif self.ending == "rotate":
            number = int(self.name.rpartition(".")[2]) + 1
            add(4, struct.pack("<Q", 4) + f"mysql-bin.{number:06d}".encode())
        elif self.ending == "stop":
            add(3, b"")
        return marked(made), places


def query(text: str, *, schema: str = "d", error: int = 0, thread: int = 7) -> Event:
    """Return a statement."""
    body = bytearray(query_body(text, schema.encode(), STATUS))
    body[0:4], body[9:11] = thread.to_bytes(4, "little"), error.to_bytes(2, "little")
    return QUERY, bytes(body)


def load(text: str) -> Event:
    """Return LOAD DATA after its blocks."""
    _, body = query(text)
    return 18, body[:13] + _POST_OF_LOAD.pack(1, 9, 15, 0) + body[13:]


def table_map(table: str, schema: str = "d") -> bytes:
    names = bytes([len(schema)]) + schema.encode() + b"\0" + bytes([len(table)]) + table.encode() + b"\0"
    return struct.pack("<IHH", 42, 0, 1) + names + b"\x01\xfc\x01\x02\x01"


def rows(kind: int, size: int, *, last: bool = True) -> Event:
    """Return rows with an image of `size` bytes: of version 1 (23–25) or 2 (30–32)."""
    data = (
        b"\x01"
        + b"\xff" * (1 + (kind in (24, 31)))
        + b"\0"
        + struct.pack("<H", size)
        + bytes(i * 31 & 255 for i in range(size))
    )
    return kind, struct.pack("<IHH", 42, 0, int(last)) + (b"\x02\0" if kind >= 30 else b"") + data


END: Final = (XID, bytes(8))
BEGIN, COMMIT, ROLLBACK = query("BEGIN"), query("COMMIT"), query("ROLLBACK")


def made(name: str, *events: Event, model: Model | None = None) -> Transaction:
    """Return a kind of transactions; without a model a view leaves it as it is."""
    return Transaction(name, events, model)


def own(*pieces: Piece) -> list[Piece]:
    """Return a transaction with the view's own BEGIN and COMMIT around what stayed."""
    return ["BEGIN", *pieces, "COMMIT"]


def unless_as_source(events: Sequence[Event], groups: Groups) -> Model:
    return lambda wanted: [list(range(len(events)))] if wanted.as_the_source else groups


# --- kinds of transactions ---------------------------------------------------------------------------------------------------

_kinds: Final = st.sampled_from([23, 24, 25, 30, 31, 32])
_sizes: Final = st.one_of(st.integers(1, 200), st.integers(1000, 5000))


def _of_rows(parts: list[tuple[int, int]], end: Event) -> Transaction:
    events = [BEGIN]
    for kind, size in parts:
        events += [(MAP, table_map("i")), rows(kind, size)]
    return made("rows", *events, end)


row_transactions: Final = st.builds(
    _of_rows, st.lists(st.tuples(_kinds, _sizes), min_size=1, max_size=5), st.sampled_from([END, COMMIT])
)
_insert: Final = query("INSERT INTO i VALUES (1)")
_texts: Final = st.one_of(
    st.integers(0, 3000).map(lambda size: f"INSERT INTO i VALUES ('{'x' * size}')"),
    st.sampled_from([
        "update i SET a = 1 WHERE a = 2", "/* app */ delete FROM i WHERE a = 1", "REPLACE i VALUES (1)", "SAVEPOINT `s`",
        "INSERT INTO d.i SELECT 1",
    ]),
)  # fmt: skip
statement_transactions: Final = st.builds(
    lambda texts, end: made("statements", BEGIN, *(query(text) for text in texts), end),
    st.lists(_texts, min_size=1, max_size=4),
    st.sampled_from([END, COMMIT]),
)


def _create_select() -> Transaction:
    events = (BEGIN, query("CREATE TABLE s (a BLOB)"), (MAP, table_map("s")), rows(30, 20), END)
    return made("create select", *events, model=unless_as_source(events, [[1], own(2, 3)]))


def _rolled_back_to() -> Transaction:
    events = (BEGIN, _insert, query("SAVEPOINT s"), query("DELETE FROM i"), query("ROLLBACK TO s"), END)
    return made("rolled back to", *events, model=unless_as_source(events, [own(1)]))


def _rows_alone() -> Transaction:
    events = ((MAP, table_map("i")), rows(23, 30))
    return made("rows without BEGIN", *events, model=unless_as_source(events, [own(0, 1)]))


def _accounts(*events: Event) -> Transaction:
    def model(wanted: Wanted) -> Groups:
        return [["BEGIN", "COMMIT"]] if wanted.accounts == "skip" else [list(range(len(events)))]

    return made("accounts", *events, model=model)


def _temporary() -> Transaction:
    events = (BEGIN, query("CREATE TEMPORARY TABLE w (a INT)"), _insert, END)

    def model(wanted: Wanted) -> Groups:
        refused = wanted.version < (8, 0) and wanted.gtids != "anonymous" and wanted.has_gtid
        return [[1], own(2)] if refused else [[0, 1, 2, 3]]

    return made("temporary table", *events, model=model)


def _isam_definition() -> Transaction:
    text = "CREATE TABLE n (a INT, t TIMESTAMP) ENGINE=MyISAM"
    changed: Groups = [[(0, text.replace("MyISAM", "InnoDB"))]]
    return made("MyISAM", query(text), model=lambda wanted: changed if wanted.engines == "innodb" else [[0]])


def _select_into_isam() -> Transaction:
    text = "CREATE TABLE c ENGINE=MyISAM SELECT 1 AS a"

    def model(wanted: Wanted) -> Groups | None:
        if wanted.has_gtid:
            if wanted.version >= (8, 0) and wanted.engines == "keep":
                return None
            if wanted.version < (8, 0) and wanted.gtids != "anonymous":
                return None
        return [[(0, text.replace("MyISAM", "InnoDB"))]] if wanted.engines == "innodb" else [[0]]

    return made("create select into MyISAM", query(text), model=model)


ANYWHERE: Final[list[Transaction]] = [
    made("seeds", BEGIN, (5, b"\2" + bytes(8)), (13, bytes(16)), (14, b"\1\0\0\0a\1"), _insert, END),
    made("definition", query("CREATE TABLE t (a INT, t TIMESTAMP)")),
    made("drop", query("DROP TABLE IF EXISTS `t` /* generated by server */")),
    made("statement alone", _insert),
    made("temporary definition", query("CREATE TEMPORARY TABLE v (a INT)")),
    made("rows query", BEGIN, (ROWS_QUERY, b"\x05hello"), (MAP, table_map("i")), rows(30, 9), END),
    made("load", BEGIN, (17, b"\1\0\0\0a,b\n"), (9, b"\1\0\0\0" + b"x" * 50), load("LOAD DATA INFILE 'f' INTO TABLE i"), END),
    made("failed", BEGIN, _insert, query("INSERT INTO i VALUES (1)", error=1062), END),
    _create_select(),
    _rolled_back_to(),
    _rows_alone(),
    _accounts(query("GRANT SELECT ON d.* TO u")),
    _accounts(query("CREATE USER u")),
    _accounts(BEGIN, (MAP, table_map("user", "mysql")), rows(23, 40), COMMIT),
    _accounts(BEGIN, query("UPDATE mysql.user SET a = 1"), COMMIT),
    _temporary(),
    _isam_definition(),
    _select_into_isam(),
    made("incident", (INCIDENT, b"\1\0\0"), model=lambda wanted: None),
]  # fmt: skip


def _two_engines() -> Transaction:
    events = (BEGIN, _insert, query("INSERT INTO m VALUES (1)"), query("UPDATE i SET a = 2"), END)

    def model(wanted: Wanted) -> Groups:
        split = wanted.is_consistent and wanted.engines == "keep"
        return [own(1), own(2), own(3)] if split else [[0, 1, 2, 3, 4]]

    return made("two engines", *events, model=model)


def _rolled_back() -> Transaction:
    events = (BEGIN, _insert, query("INSERT INTO m VALUES (1)"), ROLLBACK)
    return made("rolled back", *events, model=unless_as_source(events, [own(2)]))


def _both_at_once() -> Transaction:
    events = (BEGIN, query("UPDATE i, m SET i.a = 1, m.a = 1"), END)

    def model(wanted: Wanted) -> Groups | None:
        refused = wanted.is_consistent and wanted.engines == "keep"
        return None if refused else [[0, 1, 2]]

    return made("both engines at once", *events, model=model)


WITH_MYISAM: Final[list[Transaction]] = [
    made("MyISAM rows", BEGIN, (MAP, table_map("m")), rows(30, 20), COMMIT),
    made("MyISAM statement", BEGIN, query("INSERT INTO m VALUES (1)"), COMMIT),
    made("MyISAM statement alone", query("INSERT INTO m VALUES (1)")),
    made(
        "MyISAM failed", BEGIN, query("INSERT INTO m VALUES (1), (1)", error=1062), COMMIT,
        model=lambda wanted: None if wanted.engines == "innodb" else [[0, 1, 2]],
    ),
    _two_engines(), _rolled_back(), _both_at_once(),
]  # fmt: skip
"""These need the table m, of MyISAM."""


# --- archives ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AnyArchive:
    """The files in order, and the settings of the view."""

    wanted: Wanted
    files: tuple[SourceBinlog, ...] = field(default=())


def _by_old_server(one: Transaction) -> Transaction:
    """Return the same as 5.5 writes it: rows of version 1, without their statement."""
    shorter = {kind: kind - 7 for kind in (30, 31, 32)}
    events = [(shorter.get(kind, kind), body[:8] + body[10:] if kind in shorter else body) for kind, body in one.events]
    return replace(one, events=tuple((kind, body) for kind, body in events if kind != ROWS_QUERY))


def _by_new_server(one: Transaction) -> Transaction:
    """Return the same as 9.7 writes it: rows of version 2."""
    longer = {kind: kind + 7 for kind in (23, 24, 25)}
    events = [
        (longer.get(kind, kind), body[:8] + b"\2\0" + body[8:] if kind in longer else body) for kind, body in one.events
    ]
    return replace(one, events=tuple(events))


def _head(kind: int, number: int, one: Transaction, layout: GtidLayout) -> Event:
    """Return the source's own GTID event in front of a transaction, as 5.7 writes it, or 9.7."""
    uuid = SOURCE_UUID.bytes if kind == GTID else bytes(16)
    body = b"\1" + uuid + struct.pack("<qBqq", number + 1 if kind == GTID else 0, 2, number, number + 1)
    if not layout.has_length:
        return kind, body
    body += (one.timestamp * 10**6 + 5).to_bytes(7, "little")
    whole = 19 + len(body) + 4 + layout.trailer + sum(19 + len(event[1]) + layout.trailer for event in one.events)
    length = lenenc_int(whole + 1) if whole + 1 <= 250 else lenenc_int(whole + 3)
    return kind, body + length + struct.pack("<I", 90704)


@st.composite
def archives(draw: st.DrawFn) -> AnyArchive:
    """Draw any archive: with and without checksums, tables without transactions, GTIDs of the source's own, cut ends."""
    wanted = draw(
        st.builds(
            Wanted,
            st.sampled_from(["assign", "anonymous", "keep"]),
            st.sampled_from(["keep", "innodb"]),
            st.sampled_from(["skip", "keep"]),
            st.sampled_from(["mysql-5.6", "mysql-5.7", "mysql-8.0", "mysql-9.7"]),
            st.booleans(),
        )
    )
    has_myisam = draw(st.booleans())
    versions = ["5.5.62-log", "5.6.24-log", "5.6.24-log", "9.7.4"]
    version = draw(st.sampled_from(versions if wanted.target == "mysql-9.7" else versions[:3]))
    is_old, is_new = version.startswith("5.5"), version.startswith("9")
    heads = [0] if is_old else draw(st.sampled_from([[0], [0], [0, ANONYMOUS], [0, ANONYMOUS, GTID]]))
    if is_new:
        heads = draw(st.sampled_from([[ANONYMOUS], [ANONYMOUS, GTID]]))
    special = st.sampled_from([*ANYWHERE, *(WITH_MYISAM if has_myisam else [])])
    kinds = st.one_of(row_transactions, statement_transactions, special, special)
    definitions = [
        "CREATE DATABASE d",
        "CREATE TABLE d.i (a BLOB) ENGINE=InnoDB",
        "CREATE TABLE d.m (a BLOB) ENGINE=MyISAM",
    ]
    first = [made("definition", query(text)) for text in definitions[: 2 + has_myisam]]
    if has_myisam and wanted.engines == "innodb":
        first[2] = replace(first[2], model=lambda wanted: [[(0, definitions[2].replace("MyISAM", "InnoDB"))]])
    files = []
    count = draw(st.integers(1, 3))
    number = 0
    executed: list[str] = []
    for at in range(count):
        checksum = draw(st.booleans()) and not is_old
        transactions = list(first) if not at else []
        for one in draw(st.lists(kinds, min_size=0 if at else 1, max_size=7)):
            number += 1
            one = _by_old_server(one) if is_old else _by_new_server(one) if is_new else one
            kind = draw(st.sampled_from(heads))
            # Servers with GTIDs write no rows without BEGIN, and no GTID for an incident.
            one = replace(
                one, timestamp=1_700_000_000 + draw(st.integers(0, 3)), server_id=draw(st.sampled_from([1, 7]))
            )
            layout = GtidLayout(is_new, 4 * checksum)
            head = _head(kind, number, one, layout) if kind and one.events[0][0] == QUERY else None
            groups = replace(one, head=head).expected(wanted)
            # A real GTID is for one transaction; and beside transactions without a GTID nothing is made of one with it.
            if (kind == GTID and groups is not None and len(groups) > 1) or (
                wanted.gtids == "keep" and groups != one.is_same
            ):
                head = None
            transactions.append(replace(one, head=head))
        last = at == count - 1
        endings: list[Literal["rotate", "stop", "cut", "open"]] = ["rotate", "stop", "cut"]
        ending = draw(st.sampled_from(["open", *endings] if last else endings))
        name = f"mysql-bin.{at + 1:06d}"
        created = draw(st.booleans())
        files.append(
            SourceBinlog(
                name, tuple(transactions), checksum, ending, created, version, ",".join(executed), heads != [0]
            )
        )
        executed += [
            f"{SOURCE_UUID}:{decode_gtid(one.head[1]).gno}" for one in transactions if one.head and one.head[0] == GTID
        ]
    return AnyArchive(wanted, tuple(files))
