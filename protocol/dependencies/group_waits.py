# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""For each transaction of a file, the number of the last one that must be done before it begins, and how many may run in parallel.

The write sets and the source both give such numbers, and the one that lets more run is taken: each of them is right alone. The
source's numbers are those of its own file. They are used as long as each is one more than the one before it; after a gap, such as a
transaction that became two, the next transaction waits for all before.
"""

from typing import Any

import cython

from protocol.dependencies.write_sets import WriteSets

if not cython.compiled:
    from protocol.dependencies.write_set_codes import *
    from protocol.kernel.pure import longs_of


class GroupWaits:
    """Waits of the transactions of one file, in their order: call `wait_of` for each, after `sets` took its events.

    Without `sets` rows are not read, and each waits for all before it. It counts calls since `take_counts`: `groups`; `beside`, those
    that need not wait for the one before them; `batches`, the steps in which all could be done, each of groups that may run together.
    """

    def __init__(self, sets: WriteSets | None) -> None:
        self.sets: Any = sets
        self.has_sets = sets is not None
        self.count_bytes = bytearray((MOST_TOLD_TABLES + 1) * SERIAL_CAUSES * 8)
        self.counts = longs_of(self.count_bytes)
        self.source_number = NOT_TOLD
        self.source_floor = 0
        self.groups = self.beside = self.batches = 0
        self.batch_first = 0
        self.floor_why = SERIAL_HISTORY
        self.floor_table = MOST_TOLD_TABLES

    def begin_file(self, map_post: int) -> None:
        """Begin another file, as `WriteSets.begin_file` does."""
        if self.has_sets:
            self.sets.begin_file(map_post)
        self.source_number = NOT_TOLD
        self.source_floor = 0
        self.batch_first = 0

    def begin_anew(self, sequence: int) -> None:
        """Let all later groups wait for group `sequence` and all before it. A copy that begins here gets the same waits."""
        if self.has_sets:
            self.sets.begin_anew(sequence)
        self.source_number = NOT_TOLD
        self.floor_why = SERIAL_HISTORY
        self.floor_table = MOST_TOLD_TABLES

    def is_anew(self, sequence: int) -> bool:
        """Return whether the waits of group `sequence` and later ones depend on nothing before it."""
        return not self.has_sets or (self.sets.floor == sequence - 1 and self.source_number < 0)

    def begin_serial(self, why: int) -> None:
        """Begin a group whose events are not read."""
        if self.has_sets:
            self.sets.begin_group()
            self.sets.make_serial(why)

    def wait_of(self, sequence: int, told: bool, last: int, number: int) -> int:
        """Return the number of the last group that must be done before group `sequence`. If `told`, the source's own number is
        `number`, and that of the last group is `last`. The result is 0 for a file's first group only: for replicas that is "all
        before".
        """
        found = sequence - 1
        if self.has_sets:
            found = self.sets.finish_group(sequence)
        told = told and 0 < number < MOST_NUMBER
        if not told or self.source_number < 0 or number != self.source_number + 1:
            self.source_floor = sequence - 1
        self.source_number = number if told else NOT_TOLD
        if told and 0 < last < number:
            wanted = sequence - (number - last)
            if wanted < self.source_floor:
                wanted = self.source_floor
            if wanted < found:
                found = wanted
        if found < 1:
            found = 1 if sequence > 1 else 0
        self.count(sequence, found)
        return found

    def count(self, sequence: int, found: int) -> None:
        table = MOST_TOLD_TABLES
        why = SERIAL_SOURCE
        if self.has_sets:
            if self.sets.told_table != NOT_TOLD:
                table = self.sets.told_table
            why = self.sets.serial
            if why == SERIAL_NOT and self.sets.floor == found:
                why = self.floor_why
                table = self.floor_table
            elif why == SERIAL_NOT:
                why = self.sets.coarse
                if why == SERIAL_NOT:
                    why = SERIAL_ROWS
            if self.sets.serial != SERIAL_NOT:
                self.floor_why = why
                self.floor_table = table
            elif self.sets.floor == sequence:
                self.floor_why = SERIAL_HISTORY
                self.floor_table = MOST_TOLD_TABLES
        self.groups += 1
        if self.batch_first == 0 or found >= self.batch_first:
            self.batches += 1
            self.batch_first = sequence
        if found < sequence - 1:
            self.beside += 1
        elif sequence > 1:
            self.counts[table * SERIAL_CAUSES + why] += 1

    def take_counts(self) -> list[tuple[int, int, int]]:
        """Return for groups that waited for the one before them: the table under which they are counted, the SERIAL_ cause, how many.
        All counts are reset.
        """
        told = []
        for at in range((MOST_TOLD_TABLES + 1) * SERIAL_CAUSES):
            if self.counts[at]:
                told.append((at // SERIAL_CAUSES, at % SERIAL_CAUSES, self.counts[at]))
                self.counts[at] = 0
        self.groups = self.beside = self.batches = 0
        return told
