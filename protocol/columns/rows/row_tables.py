# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The plans of the tables that rows events name: made from a Table_map, and from what its owner knows of the table."""

import cython

from protocol.binlog.schema.column_description import decode_columns
from protocol.binlog.schema.table_columns import decode_table_columns

SLOT_RAW = cython.declare(cython.int, 1)
SLOT_RAW_LENGTH = cython.declare(cython.int, 2)
SLOT_SCHEMA = cython.declare(cython.int, 3)
SLOT_SCHEMA_LENGTH = cython.declare(cython.int, 4)
SLOT_TABLE = cython.declare(cython.int, 5)
SLOT_TABLE_LENGTH = cython.declare(cython.int, 6)
SLOT_WIDTHS = cython.declare(cython.int, 8)
SLOT_MARK = cython.declare(cython.int, 11)  # the plan's number
MOST_PLANS = 4096
MOST_ARENA = 1 << 24


class RowTables:
    """Puts the plan's number into the slot of each Table_map. `asks`: of a Table_map not seen before somebody must tell what
    he knows; `asked` is then schema, table and the type codes.
    """

    def __init__(self, tables, plans, asks):
        self.tables = tables
        self.plans = plans
        self.asks = asks
        self.asked = None
        self.malformed = False
        self.id_size = 6
        self.mariadb = False
        self.slot = 0
        self.numbers = {}

    def begin_file(self, id_size, mariadb):
        """Another file, whose Table_maps have ids of `id_size` bytes."""
        self.id_size = id_size
        self.mariadb = mariadb
        self.forget()

    def forget(self):
        """All Table_maps and what was made of them."""
        self.tables.reset()
        self.plans.reset()
        self.numbers = {}

    def are_too_many(self):
        """Whether they should be forgotten when no transaction needs them."""
        return self.plans.count > MOST_PLANS or self.plans.arena_used > MOST_ARENA

    def make_plan(self):
        """The plan of the Table_map in `slot`; False: `asked` first. `malformed`: its optional metadata are cut."""
        raw = self.tables.slots[self.slot + SLOT_RAW]
        body = bytes(self.tables.arena[raw : raw + self.tables.slots[self.slot + SLOT_RAW_LENGTH]])
        # A server gives a table another id when its definition changed; what is known elsewhere may be other then.
        key = body if self.asks else body[self.id_size :]
        self.malformed = False
        number = self.numbers.get(key)
        if number is not None:
            self.tables.slots[self.slot + SLOT_MARK] = number
            return True
        known = decode_table_columns(body, self.id_size, self.mariadb)
        self.malformed = known.optional_malformed
        widths = self.tables.slots[self.slot + SLOT_WIDTHS]
        self.widths = bytes(self.tables.arena[widths : widths + 4 * len(known.columns)])
        self.columns = known.columns
        self.key = key
        if not self.asks:
            self.add_plan(None)
            return True
        schema = self.tables.slots[self.slot + SLOT_SCHEMA] - raw
        table = self.tables.slots[self.slot + SLOT_TABLE] - raw
        self.asked = (
            body[schema : schema + self.tables.slots[self.slot + SLOT_SCHEMA_LENGTH]],
            body[table : table + self.tables.slots[self.slot + SLOT_TABLE_LENGTH]],
            bytes([column.type for column in known.columns]),
        )
        return False

    def describe(self, description):
        """Answers what was asked. False: it has not as many columns as the Table_map, so none is used. Raises: Malformed."""
        columns = decode_columns(description)
        fits = len(columns) == len(self.columns)
        self.add_plan(columns if fits else None)
        return fits

    def add_plan(self, described):
        """Makes the plan, with what is `described` or None."""
        number = self.plans.add(self.columns, self.widths, described)
        self.numbers[self.key] = number
        self.tables.slots[self.slot + SLOT_MARK] = number
        self.asked = None
