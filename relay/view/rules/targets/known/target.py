"""The events and values that a version of MySQL can read in a binlog."""

from dataclasses import dataclass
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.columns.codes import column_codes as codes

_TEMPORAL_2: Final = frozenset((codes.FIELD_TIMESTAMP2, codes.FIELD_DATETIME2, codes.FIELD_TIME2))
_OLD_TYPES: Final = frozenset(
    (*range(codes.FIELD_DECIMAL, codes.FIELD_BIT + 1), *range(codes.FIELD_NEWDECIMAL, codes.FIELD_GEOMETRY + 1))
)
_MODES_32: Final = (1 << 32) - 1

NewClause = tuple[tuple[str, ...], tuple[int, int], str]
"""(adjacent words, the first version that knows them, their name for people)."""


@dataclass(frozen=True, slots=True)
class Target:
    """A replica's version, represented by the oldest release of its series that is meant.

    `highest_event` is the last known type code, `highest_status` the last known code of a Query's status variables. `gtid_bytes` is the
    size of a Gtid event's body; 0: it has none; 255: as the source wrote it. `column_types` are those that a Table_map may contain.
    `sql_modes` are the known bits. `utf8mb4_default` is the collation of utf8mb4 where none is named and the event does not say it.
    """

    name: str
    version: tuple[int, int]
    highest_event: int
    highest_status: int
    gtid_bytes: int
    column_types: frozenset[int]
    sql_modes: int
    utf8mb4_default: int

    @property
    def title(self) -> str:
        """The name for people: `MySQL 5.6`."""
        return f"MySQL {self.version[0]}.{self.version[1]}"

    @property
    def comment_version(self) -> int:
        """The highest number of a version comment that every release of the series executes."""
        return self.version[0] * 10_000 + self.version[1] * 100


_5_5: Final = _OLD_TYPES
_5_6: Final = _OLD_TYPES | _TEMPORAL_2
_5_7: Final = _5_6 | {codes.FIELD_JSON}

TARGETS_BY_NAME: Final = {
    target.name: target
    for target in (
        Target("mysql-5.5", (5, 5), EventType.HEARTBEAT, 11, 0, _5_5, _MODES_32, 45),
        Target("mysql-5.6", (5, 6), EventType.PREVIOUS_GTIDS, 13, 25, _5_6, _MODES_32, 45),
        Target("mysql-5.7", (5, 7), EventType.XA_PREPARE, 16, 42, _5_7, _MODES_32, 45),
        # 8.0.20 and later: Transaction_payload; 8.0.26 and later: Heartbeat_v2
        Target("mysql-8.0", (8, 0), EventType.HEARTBEAT_V2, 20, 255, _5_7, (1 << 33) - 1, 255),
        Target("mysql-8.4", (8, 4), EventType.GTID_TAGGED, 20, 255, _5_7, (1 << 33) - 1, 255),
        Target("mysql-9.7", (9, 7), EventType.GTID_TAGGED, 255, 255, _5_7 | {codes.FIELD_VECTOR}, (1 << 64) - 1, 255),
    )
}
"""The targets by the name in `ViewSettings.target`. What 5.6 reads was tried on 5.6.24; what 5.5, 5.7, 8.0 and 8.4 read is from their
sources: none of them was run."""
