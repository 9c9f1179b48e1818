"""A slow second opinion on boundaries, written from the rules' tables alone, by which the kernel and the parser are judged.

It knows nothing of how the kernel works: it looks at whole events, keeps an opener and a state, and reads the tables.
"""

import re
import struct
from dataclasses import dataclass, field
from typing import Final

NOT_DEFINED, IGNORE, SELF, START, INSIDE, END = range(6)
NAMES: Final = (
    "Not Defined",
    "Ignore Boundary",
    "Self Contained",
    "Start Transaction",
    "Inside Transaction",
    "End Transaction",
)

# The parser's table, columns Not Defined, Self Contained, Start, Inside, End.
_COLUMNS: Final = (NOT_DEFINED, SELF, START, INSIDE, END)
_ROWS: Final = {
    SELF: ("ok", "ok", "error", "error", "ok"),
    START: ("ok", "ok", "error", "error", "ok"),
    INSIDE: ("error", "error", "ok", "ok", "error"),
    END: ("error", "error", "ok", "ok", "error"),
}

ALWAYS_IGNORE: Final = {15, 28, 161, 164}
ALWAYS_SELF: Final = {1, 3, 7, 35, 27, 41}
MYSQL_GTIDS: Final = {33, 34, 42}
SEEDS: Final = {5, 13, 14}
ROWS: Final = {20, 21, 22, 23, 24, 25, 30, 31, 32, 39, 166, 167, 168, 169, 170, 171}
MAPS: Final = {19, 29, 160}  # what may come before the rows of a statement
LOAD_BEGINS: Final = {17, 8}
LOAD_ENDS: Final = {10, 11}
KNOWN: Final = (
    ALWAYS_IGNORE | ALWAYS_SELF | MYSQL_GTIDS | SEEDS | ROWS | MAPS | LOAD_BEGINS | LOAD_ENDS
    | {2, 4, 6, 9, 12, 16, 18, 26, 36, 37, 38, 40, 162, 163, 165, 172}
)  # fmt: skip


_GAP: Final = r"(?:[ \t\n\v\f\r\x80-\xff]|/\*(?!M?!).*?\*/|/\*M?!\d*|\*/|(?:--(?=[\0-\x20]|\Z)|#)[^\n]*)+"


@dataclass(frozen=True)
class Judged:
    """The judgement of the rules on one event: its boundary, and the violation (from, to) to report, if there is one."""

    boundary: int
    violation: tuple[int, int] | None
    in_group: bool


def statement_text(event: bytes) -> str:
    """Return the SQL text of a Query event without checksum, after its status variables and schema. Post-header: 13, or 11."""
    (schema_length,) = struct.unpack_from("<B", event, 19 + 8)
    (status_length,) = struct.unpack_from("<H", event, 19 + 11)
    return event[19 + 13 + status_length + schema_length + 1 :].decode("latin-1")


def statement_class(text: str) -> str:
    """Return begin, commit, rollback, xa start, xa commit, xa rollback, inner (leaves any transaction as it is) or other."""
    upper = re.sub(rf"\A{_GAP}", "", text, flags=re.DOTALL).upper()
    for word in ("BEGIN", "COMMIT"):
        if re.fullmatch(rf"{word}({_GAP}|;)*", upper, re.DOTALL):
            return word.lower()
    if upper.startswith("ROLLBACK"):
        # 5.0 and 5.1 log the user's own spelling: ROLLBACK [WORK] TO [SAVEPOINT] s
        return "inner" if re.match(rf"ROLLBACK({_GAP}WORK)?{_GAP}TO", upper, re.DOTALL) else "rollback"
    for word in ("START", "COMMIT", "ROLLBACK"):
        if re.match(rf"XA{_GAP}{word}", upper, re.DOTALL):
            return f"xa {word.lower()}"
    if re.match(rf"SAVEPOINT{_GAP}|XA{_GAP}END", upper, re.DOTALL):
        return "inner"
    return "other"


@dataclass
class Oracle:
    """A judge of the events of one stream in their order."""

    state: int = NOT_DEFINED
    quiet: bool = False  # a violation was reported and nothing good came since
    opener: str | None = None
    load_ids: set[int] = field(default_factory=set)

    @property
    def in_group(self) -> bool:
        return self.state in (START, INSIDE)

    def judge(self, event: bytes) -> Judged:
        """Judge an event: 19 bytes of header and the body, without checksum. It uses no mark that the event carries."""
        boundary, opener = self.look_up(event)
        violation = self.parse(boundary)
        if not self.in_group:
            self.opener = None
            self.load_ids.clear()
        elif opener is not None:
            self.opener = opener
        return Judged(boundary, violation, self.in_group)

    def parse(self, boundary: int) -> tuple[int, int] | None:
        """Run WL#4162's parser; what opens from Not Defined does so at once after an error."""
        if boundary == IGNORE:
            return None
        if _ROWS[boundary][_COLUMNS.index(self.state)] == "ok":
            self.state = boundary
            self.quiet = False
            return None
        violation = None if self.quiet else (self.state, boundary)
        if _ROWS[boundary][_COLUMNS.index(NOT_DEFINED)] == "ok":
            self.state = boundary
            self.quiet = False
        else:
            self.state = NOT_DEFINED
            self.quiet = True
        return violation

    def look_up(self, event: bytes) -> tuple[int, str | None]:
        """Return the table "by event type": the boundary, and the opener that rules from here on (None: as before)."""
        timestamp, kind, _server, _length, log_pos, flags = struct.unpack_from("<IBIIIH", event)
        inside = self.in_group
        artificial = bool(flags & 0x20) or (timestamp == 0 and log_pos == 0)
        if kind not in KNOWN or kind in ALWAYS_IGNORE:
            return IGNORE, None
        if kind in (4, 163):
            return (IGNORE if artificial else SELF), None
        if kind in ALWAYS_SELF:
            return SELF, None
        if kind == 26:
            return (END if inside else SELF), None
        if kind in MYSQL_GTIDS:
            return START, "gtid"
        if kind == 162:
            return START, "mariadb-standalone" if event[19 + 12] & 1 else "mariadb-trx"
        if kind == 2:
            return self.look_up_query(statement_class(statement_text(event)))
        if kind == 165:
            return self.look_up_query("other")
        if kind == 18:
            if self.opener == "load" and inside:
                return self.load_ended(event), None
            return self.look_up_query("other")
        if kind in SEEDS:
            return (INSIDE, None) if inside else (START, "seed")
        if kind in LOAD_BEGINS:
            if inside:
                if self.opener == "seed":  # 4.x writes the seeds before the file's first block
                    self.load_ids = {self.file_id(event)}
                    return INSIDE, "load"
                if self.opener == "load":
                    self.load_ids.add(self.file_id(event))
                return INSIDE, None
            self.load_ids = {self.file_id(event)}
            return START, "load"
        if kind in (6, 12):  # Self by itself; End where M1 or M2 of WL#4162 made a group of it
            if not inside:
                return SELF, None
            return (END if self.opener in ("gtid", "seed") else INSIDE), None
        if kind == 9:
            return INSIDE, None
        if kind in LOAD_ENDS:
            if inside and self.opener == "load":
                return self.load_ended(event), None
            return (INSIDE if inside else SELF), None
        if kind in MAPS:
            return (INSIDE, None) if inside else (START, "rows")
        if kind in ROWS:
            last = inside and self.opener in ("rows", "mariadb-standalone") and self.ends_statement(event)
            return (END if last else INSIDE), None
        if kind == 172:
            return INSIDE, None
        if kind in (16, 38, 40):
            return (INSIDE if inside and self.opener == "load" else END), None
        if kind in (36, 37):
            return (INSIDE if inside else SELF), None
        raise AssertionError(kind)

    def look_up_query(self, text: str) -> tuple[int, str | None]:
        inside, opener = self.in_group, self.opener
        if inside and opener == "load":
            # 4.x and 5.x write LOAD DATA's blocks as they read them: commits of other sessions come between
            return INSIDE, None
        if text in ("begin", "xa start"):
            return (INSIDE, "begin") if inside and opener == "gtid" else (START, "begin")
        if text in ("commit", "rollback"):
            return END, None
        if text == "inner":
            return (INSIDE if inside else SELF), None
        if not inside:
            return SELF, None
        if text == "xa rollback":
            return END, None
        return (INSIDE if opener in ("begin", "mariadb-trx", "rows") else END), None

    def load_ended(self, event: bytes) -> int:
        self.load_ids.discard(self.file_id(event))
        return INSIDE if self.load_ids else END

    @staticmethod
    def file_id(event: bytes) -> int:
        """Return the file id: Create_file has Load's post-header of 18 bytes before it, Execute_load_query Query's of 13."""
        at = {8: 19 + 18, 18: 19 + 13}.get(event[4], 19)
        return int(struct.unpack_from("<I", event, at)[0])

    @staticmethod
    def ends_statement(event: bytes) -> bool:
        """Return STMT_END_F of the flags after the table id of 6 bytes (4 in the first betas)."""
        return bool(struct.unpack_from("<H", event, 19 + 6)[0] & 1)
