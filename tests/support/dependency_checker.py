"""A slow check, from the definition, that transactions that a binlog allows to run together touch no key value in common.

    python -m tests.support.dependency_checker FILE...

A replica may run a group beside those before it whose sequence_number is higher than its last_committed. Two groups collide if both
write one value of a unique key, or one row of a table without any; or if one writes a value that foreign keys name and the other is a
row that names it. Values are equal if a real MySQL 9.7 considers them equal. What foreign keys change as well belongs to the group.
Everything except rows must run alone, and so must rows of tables that nothing before defines. The binlogs are read from the first
definition on. Exit status 1 means that something was found.
"""

import argparse
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from deploy.servers import SERVERS
from tests.support.key_judge import KeyJudge, TableName
from tests.support.logged_rows import Row, Value
from tests.support.numbered_groups import Group, groups_of, waits_for_all
from tests.support.row_history import RowHistory, TrueChange

UNIQUE, REFERENCE, ROW = "unique", "reference", "row"
# A claim may be made without one of these, to see the consequences.
FOREIGN_KEYS, CASCADES, COLLATIONS, PREFIXES, PRIMARY, SECONDARY, ROWS_WITHOUT_KEYS, STATEMENTS = RULES = (
    "foreign keys",
    "cascades",
    "collations",
    "prefixes",
    "primary keys",
    "secondary keys",
    "rows without keys",
    "statements",
)
EXPRESSIONS, ROW_ORDER = "expressions", "order of rows"
"""These are like RULES, for tables that random work does not have."""
_LOGS_CASCADES: Final = (9, 6)
"""From this MySQL on the server enforces foreign keys and logs what they change; before it InnoDB did, without logging it."""
_NAME: Final = r"(?:`?(\w+)`?\s*\.\s*)?`?(\w+)`?"
_RENAMED: Final = re.compile(rf"{_NAME}\s+TO\s+{_NAME}", re.IGNORECASE)
_MADE_ANEW: Final = re.compile(
    rf"\s*(?:TRUNCATE(?:\s+TABLE)?|CREATE\s+(?:OR\s+REPLACE\s+)?TABLE(?!\s+IF))\s+{_NAME}", re.IGNORECASE
)


class Claim(NamedTuple):
    """A value that a group touches. `kind` is UNIQUE, REFERENCE or ROW; `key` is the key's name, or the columns that foreign keys
    name."""

    kind: str
    table: TableName
    key: object
    value: tuple[object, ...]

    def __str__(self) -> str:
        return f"{self.kind} {'.'.join(self.table)} {self.key} {self.value}"


@dataclass(slots=True)
class ClaimedGroup:
    """A group with its claims; True means that it writes the value. With `stands_alone` it is not rows only, or too long, or of unknown
    tables. `cascaded_rows` are those of foreign keys."""

    group: Group
    claims: dict[Claim, bool] = field(default_factory=dict)
    stands_alone: bool = False
    cascaded_rows: int = 0

    def add(self, claim: Claim, writes: bool) -> None:
        """Add one claim."""
        self.claims[claim] = self.claims.get(claim, False) or writes


@dataclass(frozen=True, slots=True)
class Violation:
    """Two groups that may run together and must not; `why` says why."""

    first: Group
    second: Group
    why: str

    def __str__(self) -> str:
        return f"{self.second} may run beside {self.first}: {self.why}"


class Largest(NamedTuple):
    """The largest group that a view examines: its bytes, and how many values it claims."""

    bytes: int
    claims: int


class DependencyChecker:
    """A reader of binlogs, one after the other, from the first on. `leave_out` names RULES, for claims that are to be incomplete."""

    def __init__(self, judge: KeyJudge, leave_out: Collection[str] = (), largest: Largest | None = None) -> None:
        """Create it; a group larger than `largest` must run alone."""
        self._judge = judge
        self.history: Final = RowHistory(judge)
        self._left_out = frozenset(leave_out)
        self._largest = largest
        self.groups = self.large_groups = 0
        self.unknown_tables: set[TableName] = set()
        """Tables that no statement before their rows defines: their rows' claims are unknown, so such groups must run alone."""

    @property
    def unknown_rows(self) -> int:
        """How many rows were changed of which nothing was known before: what they collide with is unknown."""
        return self.history.unknown

    def claims(self, path: Path) -> Iterator[ClaimedGroup]:
        """Yield the groups of the next binlog with what each claims."""
        for group in groups_of(path):
            self.groups += 1
            claimed = ClaimedGroup(group)
            for schema, text in group.statements:
                if STATEMENTS not in self._left_out:
                    claimed.stands_alone = True
                self._define(schema, text)
            self.history.begin_group(cascades=group.version < _LOGS_CASCADES)
            for row in group.rows:
                name = (row.table.schema, row.table.name)
                if name not in self.history.tables:
                    claimed.stands_alone = True
                    self.unknown_tables.add(name)
                    continue
                for change in self.history.apply(row):
                    self._claim(claimed, change)
            if self._largest is not None and (
                group.length > self._largest.bytes or len(claimed.claims) > self._largest.claims
            ):
                claimed.stands_alone = True
                self.large_groups += 1
            yield claimed

    def violations(self, path: Path, *, alone: bool = True) -> Iterator[Violation]:
        """Yield collisions in the next binlog. With `alone` also those of what runs beside a group that is not rows only."""
        yield from collisions(self.claims(path), alone=alone)

    def _define(self, schema: str, text: str) -> None:
        if not self._judge.define(schema, text):
            return
        renamed: dict[TableName, TableName] = {}
        if re.match(r"\s*RENAME\s+TABLES?\s", text, re.IGNORECASE):
            for old_schema, old, new_schema, new in _RENAMED.findall(text.split(None, 2)[2]):
                name = (old_schema or schema, old)
                first = next((one for one, now in renamed.items() if now == name), name)
                renamed[first] = (new_schema or schema, new)
        made = _MADE_ANEW.match(text)
        emptied = {(made[1] or schema, made[2])} if made is not None else set()
        self.history.redefine(self._judge.tables(), emptied, renamed)

    def _claim(self, claimed: ClaimedGroup, change: TrueChange) -> None:
        table = change.table
        claimed.cascaded_rows += change.cascaded
        if change.cascaded and CASCADES in self._left_out:
            return
        images = [image for image in (change.before, change.after) if image is not None]
        for number, (name, parts) in enumerate(table.uniques.items()):
            if (SECONDARY if number else PRIMARY) in self._left_out:
                continue
            for image in images:
                value = self._values(change, tuple((part.column, part.prefix) for part in parts), image)
                if value is not None:
                    claimed.add(Claim(UNIQUE, table.name, name, value), True)
        for key in table.expressions if EXPRESSIONS not in self._left_out else ():
            for image in images:
                for number_of_value in self.history.expression_values(key, image):
                    claimed.add(Claim(UNIQUE, table.name, key.name, (number_of_value,)), True)
        if table.in_order and ROW_ORDER not in self._left_out:
            claimed.add(Claim(ROW, table.name, "order", ()), True)
        if not table.identity and ROWS_WITHOUT_KEYS not in self._left_out:
            # It does not matter which of two equal rows is changed, nor that both are added.
            for row, writes in ((change.before, True), (change.after, False)):
                if row is not None:
                    claimed.add(Claim(ROW, table.name, "", row), writes)
        if FOREIGN_KEYS in self._left_out:
            return
        for reference in table.references:
            for image in images:
                named = self._values(change, tuple((column, 0) for column in reference.columns), image)
                if named is not None:
                    claimed.add(Claim(REFERENCE, reference.parent, reference.parent_columns, named), False)
        for columns in {reference.parent_columns for reference in table.children}:
            if len(images) == 2 and _of(images[0], columns) == _of(images[1], columns):
                continue
            for image in images:
                own = self._values(change, tuple((column, 0) for column in columns), image)
                if own is not None:
                    claimed.add(Claim(REFERENCE, table.name, columns, own), True)

    def _values(self, change: TrueChange, parts: tuple[tuple[int, int], ...], image: Row) -> tuple[object, ...] | None:
        if PREFIXES in self._left_out:
            parts = tuple((column, 0) for column, _prefix in parts)
        found = self.history.key_values(change.table, parts, image)
        if found is not None and COLLATIONS in self._left_out:
            return tuple(repr(image[column]) for column, _prefix in parts)
        return found


def collisions(groups: Iterator[ClaimedGroup], *, alone: bool = True) -> Iterator[Violation]:
    """Yield the groups of one binlog that may run together and claim a value in common that one of them writes."""
    wrote: dict[Claim, Group] = {}
    named: dict[Claim, Group] = {}
    before: Group | None = None
    stood_alone: Group | None = None
    for claimed in groups:
        group = claimed.group
        ended = group.last_committed
        if before is not None and waits_for_all(group, before):
            ended = before.sequence_number
        if alone and claimed.stands_alone and before is not None and ended < before.sequence_number:
            yield Violation(before, group, f"it stands alone: {group.what}")
        if alone and stood_alone is not None and ended < stood_alone.sequence_number:
            yield Violation(stood_alone, group, f"that stands alone: {stood_alone.what}")
        for claim, writes in claimed.claims.items():
            for first in (wrote.get(claim), named.get(claim) if writes else None):
                if first is not None and first.sequence_number > ended:
                    yield Violation(first, group, str(claim))
        for claim, writes in claimed.claims.items():
            (wrote if writes else named)[claim] = group
        if claimed.stands_alone:
            stood_alone = group
        before = group


def number_faults(path: Path) -> Iterator[str]:
    """Yield the faults in the numbers of a view's file: they must count from 1 in each file, without gaps, and parents must exist."""
    for expected, group in enumerate(groups_of(path), 1):
        if group.sequence_number != expected:
            yield f"{group}: the sequence_number is not {expected}"
        if not (expected > 1) <= group.last_committed < group.sequence_number:
            yield f"{group}: the last_committed is not from {int(expected > 1)} to {expected - 1}"


def fitting_numbers(groups: Iterator[ClaimedGroup]) -> list[tuple[int, int]]:
    """Return (last_committed, sequence_number) for the groups of one binlog, from 1 on: as parallel as their claims allow."""
    wrote: dict[Claim, int] = {}
    named: dict[Claim, int] = {}
    numbers: list[tuple[int, int]] = []
    floor = 0
    for sequence, claimed in enumerate(groups, 1):
        parent = max(floor, int(sequence > 1))
        if claimed.stands_alone:
            parent = sequence - 1
            floor = sequence
        for claim, writes in claimed.claims.items():
            parent = max(parent, wrote.get(claim, 0), named.get(claim, 0) if writes else 0)
        for claim, writes in claimed.claims.items():
            (wrote if writes else named)[claim] = sequence
        numbers.append((parent, sequence))
    return numbers


def check_dependencies(judge: KeyJudge, paths: Sequence[Path], *, alone: bool = True) -> int:
    """Return how many groups of a view's files were checked; for `alone` see `violations`. Raises: AssertionError with the first
    faults."""
    judge.forget()
    checker = DependencyChecker(judge)
    found: list[str] = []
    for path in paths:
        found += number_faults(path)
        found += map(str, checker.violations(path, alone=alone))
    assert not found, f"{len(found)} faults:\n" + "\n".join(found[:10])
    assert not checker.unknown_tables, f"nothing before defines {checker.unknown_tables}"
    assert not checker.unknown_rows, f"{checker.unknown_rows} rows were changed that nothing before tells of"
    return checker.groups


def _of(row: Row, columns: tuple[int, ...]) -> list[Value]:
    return [row[column] for column in columns]


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--beside-statements", action="store_true", help="statements may run beside other groups")
    chosen = parser.parse_args()
    found = 0
    with SERVERS["mysql97"]() as server, KeyJudge(server.start()) as judge:
        checker = DependencyChecker(judge)
        for path in chosen.files:
            for fault in [*number_faults(path), *checker.violations(path, alone=not chosen.beside_statements)]:
                print(fault)
                found += 1
    print(f"{checker.groups} groups, {found} faults, {checker.unknown_rows} changed rows that nothing before tells of")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
