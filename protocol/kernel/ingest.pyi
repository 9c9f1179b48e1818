from array import array
from typing import Final

NEED_MORE: Final[int]
ROTATE: Final[int]
PACKET_ERR: Final[int]
PACKET_EOF: Final[int]
TABLE_FULL: Final[int]
STORED_ROTATE: Final[int]
BAD_CRC: Final[int]
BAD_LENGTH: Final[int]
BAD_SEQUENCE: Final[int]
BAD_POSITION: Final[int]
BAD_PACKET: Final[int]
BAD_FORMAT: Final[int]
NO_FORMAT: Final[int]
ENCRYPTED: Final[int]
BAD_EVENT: Final[int]
NO_SEMI_SYNC: Final[int]
STATUS_NAMES: Final[dict[int, str]]
ROW: Final[int]
INDEX_GAP: Final[int]
ENTRY_SIZE: Final[int]
MAX_WHOLE: Final[int]
HEAD: Final[int]
MAX_EVENT: Final[int]

class Ingest:
    packets: Final[bool]
    stamp: Final[bool]
    prefix: Final[int]
    announced_checksum: bool
    old_format: bool
    detailed: bool
    position: int
    boundary: int
    group_start: int
    in_event: bool
    checksum: int
    binlog_version: int
    cut_group: bool
    sequence: int
    produced: int
    consumed: int
    packet_start: int
    packet_stop: int
    rotate_position: int
    rotate_name: bytes
    status: int
    bad_type: int
    events: int
    groups: int
    violations: int
    unknown: int
    heartbeats: int
    acks: int
    ack_position: int
    position_jumps: int
    disagreements: int
    late_damage: int
    timestamp: int
    first_timestamp: int
    server_id: int
    created: int
    table_rows: int
    definitions: int

    def __init__(self, packets: bool = False, stamp: bool = False, prefix: int = 1) -> None: ...
    @property
    def in_group(self) -> bool: ...
    @property
    def error_text(self) -> str: ...
    def begin_file(self, position: int, group_start: int = -1) -> None: ...
    def feed(self, buf: bytearray | memoryview, start: int, stop: int) -> int: ...
    def read_format(self, buf: bytearray | memoryview, start: int, stop: int) -> bool: ...
    def set_table(self, table: array[int] | None, tolerant: bool = False) -> None: ...
    def post_lengths(self) -> bytes: ...
    def take_entries(self) -> bytes: ...
    def take_violations(self) -> list[tuple[int, int, int, int, int, int]]: ...
    def take_unknown_types(self) -> list[tuple[int, int]]: ...
    def take_definitions(self) -> list[int]: ...
