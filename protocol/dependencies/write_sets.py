# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The rows that each transaction changes, as numbers, and the newest earlier transaction with which it shares some.

As in MySQL's WRITESET, each value of a unique key is a number, and each value of a foreign key is that of the row that it names. Two
transactions that have a number in common may not run together, unless both only name the row. Unknown facts make a transaction wait
for more, and never for less: see `add_plan`.

Everything in an event is untrusted: the walk of the rows compares each length with the event's end.
"""

from array import array

import cython

from protocol.columns.tables import ImageColumns, TableMaps

if not cython.compiled:
    from protocol.columns.codes.column_codes import *
    from protocol.columns.tables import inserts_rows, is_packed, same_bytes, table_id, updates_rows
    from protocol.dependencies.write_set_codes import *
    from protocol.kernel.codes import *
    from protocol.kernel.pure import Bytes, load16, load24, load32, load64, longs_of, signed64


def mixed(number: int, value: int) -> int:
    """Return a number of 64 bits made of two."""
    number = ((number ^ value) * WRITE_SET_MIX) & U64_MAX
    return number ^ (number >> 29)


def mixed_bytes(number: int, p: Bytes, at: int, end: int) -> int:
    """Return a number of 64 bits made of one, and of p[at:end] and its length."""
    number = mixed(number, end - at)
    while at + 8 <= end:
        number = mixed(number, load64(p, at))
        at += 8
    if at < end:
        value = 0
        shift = 0
        while at < end:
            value = value | p[at] << shift
            shift += 8
            at += 1
        number = mixed(number, value)
    return number


class WriteSets:
    """Write sets of the transactions of one file, in their order: `begin_group`, `take_event` for each event, then `finish_group`.

    `serial` is why nothing may run beside the group, SERIAL_NOT if something may; `coarse` is why it may wait for more than its rows
    need. `told_table` is the number under which the table that is the cause is counted, NOT_TOLD if none is. With SET_PLAN, `wanted`
    is the slot of the table whose plan is missing; -1: there is no room for it.
    """

    def __init__(self, most_keys: int = 100_000) -> None:
        """Remember at most `most_keys` numbers; beyond that all are forgotten, and later transactions wait for all before."""
        if most_keys < 1:
            raise ValueError(f"{most_keys} numbers cannot be remembered")
        self.maps = TableMaps()
        self.plan_room = 1 << 12
        self.plan_bytes = bytearray(self.plan_room * 8)
        self.plans = longs_of(self.plan_bytes)
        self.plans_used = 0
        self.value_bytes = bytearray(MOST_COLUMNS * 16)
        self.values = longs_of(self.value_bytes)
        self.write_bytes = bytearray(MOST_GROUP_KEYS * 8)
        self.writes = longs_of(self.write_bytes)
        self.read_bytes = bytearray(MOST_GROUP_KEYS * 8)
        self.reads = longs_of(self.read_bytes)
        self.old_bytes = bytearray(MOST_COLUMNS * 16)
        self.old_values = longs_of(self.old_bytes)  # of the image before, of an update
        self.most_keys = most_keys
        # At most half of the slots contain current numbers, and a quarter outdated ones.
        self.slots = 1 << (2 * (most_keys + 2 * MOST_GROUP_KEYS)).bit_length()
        self.history_bytes = bytearray(self.slots * HISTORY_SIZE * 8)
        self.history = longs_of(self.history_bytes)
        self.wanted = -1
        self.group_number = 0
        self.before_named = False
        self.key_number = 0
        self.key_untold = False
        self.begin_file(8)

    def begin_file(self, map_post: int) -> None:
        """Begin another file, whose Table_maps have a post-header of `map_post` bytes. Nothing before it is waited for."""
        self.maps.begin_file(map_post)
        self.plans_used = 0
        self.floor = 0
        self.forget_keys()
        self.begin_group()

    def forget_keys(self) -> None:
        for i in range(self.slots):
            self.history[i * HISTORY_SIZE] = 0
        self.held = 0
        self.known = 0

    def forget_plans(self) -> None:
        """Forget the plans: tables may differ from now on, so each is asked for again."""
        self.maps.forget()
        self.plans_used = 0

    def add_plan(self, plan: "array[int]") -> None:
        """Add the plan of the table in slot `wanted`: PLAN_ and KEY_ numbers as in write_set_codes.py.

        Raises: ValueError for one that names columns that the table does not have, or is cut.
        """
        slot = self.wanted
        if slot < 0:
            raise ValueError("no plan is wanted")
        columns = self.maps.slots[slot + SLOT_COLUMNS]
        check_plan(plan, columns)
        while self.plans_used + 1 + len(plan) > self.plan_room:
            self.grow_plans()
        # A plan follows the number of the last group that had the table's map.
        self.plans[self.plans_used] = 0
        for i in range(len(plan)):
            self.plans[self.plans_used + 1 + i] = plan[i]
        self.maps.slots[slot + SLOT_MARK] = self.plans_used + 1
        self.plans_used += 1 + len(plan)
        self.wanted = -1

    def grow_plans(self) -> None:
        kept = bytes(self.plan_bytes)
        self.plan_room = self.plan_room * 2
        self.plan_bytes = bytearray(self.plan_room * 8)
        self.plan_bytes[: len(kept)] = kept
        self.plans = longs_of(self.plan_bytes)

    def make_room(self) -> None:
        """Make room for a Table_map that had none: with SET_PLAN and `wanted` -1."""
        self.maps.grow()

    def wanted_map(self) -> bytes:
        """Return the body of the Table_map whose plan is wanted."""
        at = self.maps.slots[self.wanted + SLOT_RAW]
        return bytes(self.maps.arena_bytes[at : at + self.maps.slots[self.wanted + SLOT_RAW_LENGTH]])

    # ---- a group ----

    def begin_group(self) -> None:
        """Begin another group, of which the next events are."""
        self.maps.between_groups()
        if self.plans_used > MOST_PLAN_NUMBERS:
            self.maps.forget()
            self.plans_used = 0
        self.group_number += 1
        self.write_count = 0
        self.read_count = 0
        self.serial = SERIAL_NOT
        self.coarse = SERIAL_NOT
        self.told_table = NOT_TOLD
        self.wanted = -1

    def make_serial(self, why: int) -> None:
        """Let nothing run beside the group, because of changes that are not examined here."""
        if self.serial == SERIAL_NOT:
            self.serial = why

    def finish_group(self, sequence: int) -> int:
        """Return the number of the last group that must be done before group `sequence` begins, which ends here. The first of a file,
        and one that nothing may run beside, wait for all before them.
        """
        if self.serial != SERIAL_NOT or sequence <= 1:
            self.begin_anew(sequence)
            return sequence - 1
        last = self.floor
        for i in range(self.write_count):
            at = self.find(self.writes[i])
            if self.history[at] and self.history[at + HISTORY_ANY] > last:
                last = self.history[at + HISTORY_ANY]
        for i in range(self.read_count):
            at = self.find(self.reads[i])
            if self.history[at] and self.history[at + HISTORY_WRITER] > last:
                last = self.history[at + HISTORY_WRITER]
        for i in range(self.write_count):
            at = self.place_of(self.writes[i])
            self.history[at + HISTORY_WRITER] = sequence
            self.history[at + HISTORY_ANY] = sequence
        for i in range(self.read_count):
            at = self.place_of(self.reads[i])
            self.history[at + HISTORY_ANY] = sequence
        if self.known > self.most_keys:
            self.begin_anew(sequence)
        return last

    def begin_anew(self, sequence: int) -> None:
        """Let all later groups wait for group `sequence` and all before it. Earlier knowledge
        does not count any more: a copy that begins here gets the same waits.
        """
        self.floor = sequence
        self.known = 0
        if self.held > self.slots >> 2:
            self.forget_keys()

    def find(self, number: int) -> int:
        """Return where the number is in the history, or would be."""
        mask = self.slots - 1
        i = (number ^ (number >> 32)) & mask
        while self.history[i * HISTORY_SIZE] != 0 and self.history[i * HISTORY_SIZE] != number:
            i = (i + 1) & mask
        return i * HISTORY_SIZE

    def place_of(self, number: int) -> int:
        at = self.find(number)
        if self.history[at] == 0:
            self.history[at] = number
            self.history[at + HISTORY_WRITER] = 0
            self.history[at + HISTORY_ANY] = 0
            self.held += 1
            self.known += 1
        elif self.history[at + HISTORY_ANY] <= self.floor:
            self.history[at + HISTORY_WRITER] = 0
            self.known += 1
        return at

    def add_write(self, number: int) -> None:
        value = signed64(number)
        if value == 0:
            value = 1
        if self.write_count and self.writes[self.write_count - 1] == value:
            return
        if self.write_count == MOST_GROUP_KEYS:
            self.make_serial(SERIAL_LARGE)
            return
        self.writes[self.write_count] = value
        self.write_count += 1

    def add_read(self, number: int) -> None:
        value = signed64(number)
        if value == 0:
            value = 1
        if self.read_count and self.reads[self.read_count - 1] == value:
            return
        if self.read_count == MOST_GROUP_KEYS:
            self.make_serial(SERIAL_LARGE)
            return
        self.reads[self.read_count] = value
        self.read_count += 1

    # ---- its events ----

    def take(self, src: Bytes, start: int, stop: int, post: int) -> int:
        """Take a Table_map or rows event in src[start:stop], without checksum: SET_TAKEN or SET_PLAN.

        `post` is its post-header's length in the format description. Raises: IndexError for a bad range.
        """
        if start < 0 or stop > len(src) or stop - start < HEADER_SIZE:
            raise IndexError(f"range {start}:{stop} outside a buffer of {len(src)} bytes, or less than a header")
        if cython.compiled:
            return self.take_event(cython.address(src[0]), start, stop, post)
        return self.take_event(memoryview(src).cast("B"), start, stop, post)

    def take_event(self, p: Bytes, at: int, end: int, post: int) -> int:
        """Take an event in p[at:end] like `take`."""
        t = p[at + EVENT_TYPE_AT]
        if t == TABLE_MAP_EVENT:
            return self.take_map(p, at, end)
        self.take_rows(p, at, end, t, post)
        return SET_TAKEN

    def take_map(self, p: Bytes, at: int, end: int) -> int:
        """Take the Table_map at p[at:end], without checksum: SET_TAKEN or SET_PLAN."""
        if self.serial != SERIAL_NOT:
            return SET_TAKEN
        if self.knows_map(p, at + HEADER_SIZE, end):
            return SET_TAKEN
        slot = self.maps.take_map(p, at + HEADER_SIZE, end)
        if slot == NO_ROOM:
            self.wanted = -1
            return SET_PLAN
        if slot < 0:
            self.make_serial(SERIAL_MALFORMED)
        elif self.maps.slots[slot + SLOT_MARK] < 0:
            self.wanted = slot
            return SET_PLAN
        return SET_TAKEN

    def knows_map(self, p: Bytes, body: int, end: int) -> bool:
        """Return whether the Table_map with this body needs no plan any more. Its flags may differ from before: one statement refers
        to the table by a foreign key, and the next does not. Another map of that number in one group makes the group serial.
        """
        id_size = self.maps.id_size
        if end - body < id_size + 2:
            return False
        slot = self.maps.find(table_id(p, body, id_size))
        if slot < 0 or self.maps.slots[slot + SLOT_MARK] < 0:
            return False
        group = self.maps.slots[slot + SLOT_MARK] - 1
        raw = self.maps.slots[slot + SLOT_RAW]
        behind = id_size + 2
        if self.maps.slots[slot + SLOT_RAW_LENGTH] == end - body and same_bytes(
            p, body + behind, self.maps.arena, raw + behind, end - body - behind
        ):
            self.plans[group] = self.group_number
            return True
        if self.plans[group] == self.group_number:
            self.make_serial(SERIAL_MALFORMED)
            return True
        return False

    def take_rows(self, p: Bytes, at: int, end: int, t: int, post: int) -> None:
        """Take the rows event of type `t` at p[at:end], without checksum; `post` is its post-header's length."""
        if self.serial != SERIAL_NOT:
            return
        if is_packed(t) or t == PARTIAL_UPDATE_ROWS_EVENT:
            self.make_serial(SERIAL_OTHER)
            return
        r = self.maps.begin_rows(p, at, end, t, post)
        slot = self.maps.row_slot
        if r < 0 or slot < 0 or self.maps.before.width > self.maps.slots[slot + SLOT_COLUMNS]:
            self.make_serial(SERIAL_MALFORMED)
            return
        plan = self.maps.slots[slot + SLOT_MARK]
        updates = updates_rows(t)
        inserts = inserts_rows(t)
        if plan < 0:
            self.make_serial(SERIAL_MALFORMED)
            return
        coarse_table = self.told_table
        self.told_table = self.plans[plan + PLAN_TABLE]
        if self.plans[plan + PLAN_FLAGS] & PLAN_SERIAL:
            self.make_serial(SERIAL_TABLE)
            return
        if not inserts and not updates and self.plans[plan + PLAN_FLAGS] & PLAN_CASCADES_DELETE:
            self.make_serial(SERIAL_CASCADE)
            return
        if r == end:  # rows of unknown content and number
            self.make_serial(SERIAL_VALUE)
        while r < end and self.serial == SERIAL_NOT:
            start = r
            r = self.walk_image(self.maps.before, p, r, end)
            if r >= 0:
                self.take_keys(p, plan, self.maps.before, ROW_NEW if inserts else ROW_BEFORE if updates else ROW_OLD)
                if updates:
                    self.keep_image()
                    r = self.walk_image(self.maps.after, p, r, end)
                    if r >= 0:
                        self.take_keys(p, plan, self.maps.after, ROW_AFTER)
            if r <= start:
                self.make_serial(SERIAL_MALFORMED)
        if self.serial == SERIAL_NOT and (self.coarse == SERIAL_NOT or coarse_table != NOT_TOLD):
            self.told_table = coarse_table

    def walk_image(self, columns: ImageColumns, p: Bytes, at: int, end: int) -> int:
        """Note where each column's value is in the image at `at`; return where that ends, -1: it cannot be walked."""
        widths = self.maps.slots[self.maps.row_slot + SLOT_WIDTHS]
        bits = columns.bits
        bitmap = columns.at
        nulls = at
        at += (columns.present + 7) >> 3
        if at > end:
            return -1
        k = 0
        for i in range(columns.width):
            if not bits[bitmap + (i >> 3)] >> (i & 7) & 1:
                self.values[2 * i] = VALUE_ABSENT
                continue
            if p[nulls + (k >> 3)] >> (k & 7) & 1:
                self.values[2 * i] = VALUE_NULL
                k += 1
                continue
            k += 1
            w = widths + i * 4
            code = self.maps.arena[w]
            size = 0
            if code == 0:
                size = self.maps.arena[w + 1] | self.maps.arena[w + 2] << 8
            elif code > 4 or at + code > end:
                return -1
            elif code == 1:
                size = p[at]
            elif code == 2:
                size = load16(p, at)
            elif code == 3:
                size = load24(p, at)
            else:
                size = load32(p, at)
            at += code
            if size > end - at:
                return -1
            self.values[2 * i] = at
            self.values[2 * i + 1] = at + size
            at += size
        for i in range(columns.width, self.maps.slots[self.maps.row_slot + SLOT_COLUMNS]):
            self.values[2 * i] = VALUE_ABSENT
        return at

    def keep_image(self) -> None:
        """Keep the walked image as the one before, of an update whose other image comes."""
        values = self.values
        self.values = self.old_values
        self.old_values = values

    def take_keys(self, p: Bytes, plan: int, columns: ImageColumns, role: int) -> None:
        """Add the numbers of the row whose image was walked."""
        keys = self.plans[plan + PLAN_KEYS]
        at = plan + PLAN_HEAD
        named = False
        for _ in range(keys):
            flags = self.plans[at + KEY_FLAGS]
            parts = self.plans[at + KEY_PARTS]
            state = self.key_state(p, at)
            number = self.key_number
            skipped = False
            if state == STATE_UNKNOWN and self.key_untold and (role == ROW_BEFORE or role == ROW_AFTER):
                # If images are not full, an update does not contain a key whose columns did not change. A value that it contains, and
                # that is not comparable, is another matter.
                skipped = not self.changes_key(self.maps.after, at)
            if skipped:
                named = named or (role == ROW_AFTER and self.before_named)
            elif state == STATE_KNOWN:
                if flags & KEY_READS:
                    self.add_read(number)
                else:
                    self.add_write(number)
                self.add_read(self.plans[at + KEY_CLASS])
                named = named or flags & KEY_NAMES_ROW != 0
            elif state != STATE_NULL:
                self.add_write(self.plans[at + KEY_CLASS])
                if self.coarse == SERIAL_NOT:
                    self.coarse = SERIAL_COMPARED
                named = named or flags & KEY_NAMES_ROW != 0
            if flags & KEY_CASCADES_UPDATE and role == ROW_AFTER and self.rewrites_key(p, at):
                self.make_serial(SERIAL_CASCADE)
                return
            at += KEY_HEAD + parts * PART_SIZE
        if not named:
            self.add_write(self.plans[plan + PLAN_NAMELESS])
            if self.coarse == SERIAL_NOT:
                self.coarse = SERIAL_KEYLESS
        if role == ROW_BEFORE:
            self.before_named = named

    def changes_key(self, columns: ImageColumns, at: int) -> bool:
        """Return whether the update's images after the change, of `columns`, have a column of the key at `at`."""
        part = at + KEY_HEAD
        for _ in range(self.plans[at + KEY_PARTS]):
            c = self.plans[part + PART_COLUMN]
            if c < columns.width and columns.bits[columns.at + (c >> 3)] >> (c & 7) & 1:
                return True
            part += PART_SIZE
        return False

    def rewrites_key(self, p: Bytes, at: int) -> bool:
        """Return whether the update whose images were walked may change the bytes of a value of the key at `at`, which rows may name:
        also to bytes that are equal for the server, which a foreign key copies to those rows all the same.
        """
        part = at + KEY_HEAD
        rewritten = self.plans[at + KEY_PARTS] == 0
        for _ in range(self.plans[at + KEY_PARTS]):
            c = self.plans[part + PART_COLUMN]
            old = self.old_values[2 * c]
            new = self.values[2 * c]
            if old == VALUE_NULL:
                return False
            if self.plans[part + PART_FORM] == FORM_NONE:
                rewritten = True  # the binlog's value of a virtual column is not certain
            elif new != VALUE_ABSENT and not rewritten:  # absent: it did not change
                size = self.values[2 * c + 1] - new
                rewritten = (
                    old < 0
                    or new < 0
                    or self.old_values[2 * c + 1] - old != size
                    or not same_bytes(p, old, p, new, size)
                )
            part += PART_SIZE
        return rewritten

    def key_state(self, p: Bytes, at: int) -> int:
        """Return STATE_KNOWN, with the number of the key's value in the image in `key_number`, STATE_NULL or STATE_UNKNOWN.

        STATE_NULL: a part of it is NULL. `key_untold`: a part is not in the image, and would be if an update changed it: this
        excludes a virtual column.
        """
        number = self.plans[at + KEY_NUMBER] & U64_MAX
        parts = self.plans[at + KEY_PARTS]
        part = at + KEY_HEAD
        unknown = parts == 0
        absent = False
        never = False
        for _ in range(parts):
            c = self.plans[part + PART_COLUMN]
            start = self.values[2 * c]
            if start == VALUE_NULL:
                return STATE_NULL
            never = never or self.plans[part + PART_FORM] == FORM_NONE
            if start == VALUE_ABSENT:
                unknown = True
                absent = True
            elif not unknown:
                end = self.values[2 * c + 1]
                form = self.plans[part + PART_FORM]
                prefix = self.plans[part + PART_PREFIX]
                if form == FORM_RAW:
                    number = mixed_bytes(number, p, start, end)
                elif form == FORM_BINARY:
                    if prefix and end - start > prefix:
                        end = start + prefix
                    while end > start and p[end - 1] == 0:
                        end -= 1
                    number = mixed_bytes(number, p, start, end)
                elif form == FORM_EXACT or form == FORM_FOLDED:
                    unknown = not self.take_text(p, start, end, number, form, prefix)
                    number = self.key_number
                elif form == FORM_REAL or form == FORM_DECIMAL:
                    number = self.number_of_zeros(p, start, end, number, form)
                else:
                    unknown = True
            part += PART_SIZE
        self.key_number = number
        self.key_untold = absent and not never
        return STATE_UNKNOWN if unknown else STATE_KNOWN

    def take_text(self, p: Bytes, start: int, end: int, number: int, form: int, prefix: int) -> bool:
        """Put the text into `key_number`; False: it is not comparable."""
        if form == FORM_FOLDED or prefix:
            for i in range(start, end):
                if p[i] < 32 or p[i] > 126:
                    return False
        if prefix and end - start > prefix:
            end = start + prefix
        while end > start and p[end - 1] == 32:
            end -= 1
        if form == FORM_EXACT:
            self.key_number = mixed_bytes(number, p, start, end)
            return True
        number = mixed(number, end - start)
        for i in range(start, end):
            c = p[i]
            if 97 <= c <= 122:
                c -= 32
            number = mixed(number, c)
        self.key_number = number
        return True

    def number_of_zeros(self, p: Bytes, start: int, end: int, number: int, form: int) -> int:
        """Return the number of a float, double or decimal: both zeros have one number."""
        negative = end > start
        if form == FORM_REAL:
            for i in range(start, end - 1):
                if p[i] != 0:
                    negative = False
            if negative and p[end - 1] == 0x80:
                return mixed(number, 0)
            for i in range(start, end):
                if p[i] != 0:
                    return mixed_bytes(number, p, start, end)
            return mixed(number, 0)
        for i in range(start + 1, end):
            if p[i] != 0xFF:
                negative = False
        if negative and p[start] == 0x7F:
            return mixed(number, 0)
        if end == start or p[start] != 0x80:
            return mixed_bytes(number, p, start, end)
        for i in range(start + 1, end):
            if p[i] != 0:
                return mixed_bytes(number, p, start, end)
        return mixed(number, 0)


def check_plan(plan: "array[int]", columns: int) -> None:
    """Check a plan. Raises: ValueError if it names columns beyond the first `columns`, or is cut."""
    if len(plan) < PLAN_HEAD:
        raise ValueError("the plan is cut")
    at = PLAN_HEAD
    if not 0 <= plan[PLAN_TABLE] <= MOST_TOLD_TABLES:
        raise ValueError(f"the plan is counted under {plan[PLAN_TABLE]}; at most {MOST_TOLD_TABLES} is possible")
    if not 0 <= plan[PLAN_KEYS] <= MOST_TABLE_KEYS:
        raise ValueError(f"{plan[PLAN_KEYS]} keys; at most {MOST_TABLE_KEYS} are possible")
    for _ in range(plan[PLAN_KEYS]):
        if at + KEY_HEAD > len(plan):
            raise ValueError("the plan is cut")
        parts = plan[at + KEY_PARTS]
        if parts < 0 or at + KEY_HEAD + parts * PART_SIZE > len(plan):
            raise ValueError("the plan is cut")
        for i in range(parts):
            part = at + KEY_HEAD + i * PART_SIZE
            if not 0 <= plan[part + PART_COLUMN] < columns or plan[part + PART_PREFIX] < 0:
                raise ValueError(f"the plan names column {plan[part + PART_COLUMN]} of {columns}")
        at += KEY_HEAD + parts * PART_SIZE
    if at != len(plan):
        raise ValueError("the plan is longer than its keys")
