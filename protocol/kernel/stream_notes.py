# cython: annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False
"""Places in a stream to report: violations of the boundary rules, unknown event types, statements that define tables."""

import cython

if not cython.compiled:
    from protocol.kernel.codes import *


class StreamNotes:
    """The notes are kept until they are taken, a limited number of each; their owner counts all of them."""

    def __init__(self) -> None:
        if not cython.compiled:
            self.violation_rows = [0] * (6 * MOST_NOTES)
            self.seen_unknown = bytearray(256)
            self.unknown_rows = [0] * 512
            self.definition_rows = [0] * MOST_NOTES
        for i in range(256):
            self.seen_unknown[i] = 0
        self.violation_count = self.unknown_count = self.definition_count = 0

    def add_violation(
        self, position: int, from_type: int, to_type: int, event_type: int, previous_type: int, previous_position: int
    ) -> None:
        """Add a violation, if it is one of the first MOST_NOTES."""
        if self.violation_count >= MOST_NOTES:
            return
        i = self.violation_count * 6
        self.violation_rows[i] = position
        self.violation_rows[i + 1] = from_type
        self.violation_rows[i + 2] = to_type
        self.violation_rows[i + 3] = event_type
        self.violation_rows[i + 4] = previous_type
        self.violation_rows[i + 5] = previous_position
        self.violation_count += 1

    def add_unknown(self, event_type: int, position: int) -> None:
        """Add a type once, with its first place."""
        if self.seen_unknown[event_type]:
            return
        self.seen_unknown[event_type] = 1
        if self.unknown_count < 256:
            self.unknown_rows[self.unknown_count * 2] = event_type
            self.unknown_rows[self.unknown_count * 2 + 1] = position
            self.unknown_count += 1

    def add_definition(self, position: int) -> None:
        """Add a place, if it is one of the first MOST_NOTES."""
        if self.definition_count < MOST_NOTES:
            self.definition_rows[self.definition_count] = position
            self.definition_count += 1

    def take_violations(self) -> list[tuple[int, int, int, int, int, int]]:
        """Return (position, from, to, event type, previous event type, previous position) of those since the last call."""
        rows = [
            (
                self.violation_rows[i],
                self.violation_rows[i + 1],
                self.violation_rows[i + 2],
                self.violation_rows[i + 3],
                self.violation_rows[i + 4],
                self.violation_rows[i + 5],
            )
            for i in range(0, 6 * self.violation_count, 6)
        ]
        self.violation_count = 0
        return rows

    def take_unknown_types(self) -> list[tuple[int, int]]:
        """Return (type, position of the first) of those that were seen for the first time since the last call."""
        rows = [(self.unknown_rows[i * 2], self.unknown_rows[i * 2 + 1]) for i in range(self.unknown_count)]
        self.unknown_count = 0
        return rows

    def take_definitions(self) -> list[int]:
        """Return the positions of those since the last call."""
        rows = [self.definition_rows[i] for i in range(self.definition_count)]
        self.definition_count = 0
        return rows
