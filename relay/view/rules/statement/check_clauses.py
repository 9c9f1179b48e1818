"""CHECK (…) of a definition, which MySQL before 8.0.16 reads and ignores, and newer servers enforce.

It is removed, and not made NOT ENFORCED: newer servers refuse some expressions that older ones read (3812 to 3815), want names that no
other table of the schema has (3822), and drop no column that a constraint names (3959).
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

from protocol.sql.edits import TextEdit
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.tables.ddl_statement import Action, CheckClause, ElementList, needs
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.statement.removed_words import removed_words

_AFTER_ACTIONS: Final = ("", ",", ";", "PARTITION", "REMOVE")


class _Range(NamedTuple):
    """Tokens [start, stop) of the statement."""

    start: int
    stop: int


def without_checks(query: LoggedQuery) -> list[TextEdit]:
    """Return the edits that remove each CHECK from CREATE or ALTER TABLE, with name and comma. Raises: UnsupportedSyntax."""
    made = query.definition
    if made is None:
        return []
    needs(made, "CHECK")
    if not made.written.checks:
        return []
    checks = _Checks(query, made.written.checks)
    if made.written.listed is not None:
        clauses = checks.of_list(made.written.listed)
    else:
        clauses = checks.of_actions(made.written.actions)
    return sorted(edit for one in _joined(clauses) for edit in removed_words(query, query.tokens[one.start : one.stop]))


class _Checks:
    def __init__(self, query: LoggedQuery, checks: Sequence[CheckClause]) -> None:
        self._tokens = query.tokens
        self._checks = checks

    def of_list(self, listed: ElementList) -> list[_Range]:
        """Return the clauses in a list of columns and keys, all of it where it contains nothing else."""
        elements = [self._range(one.start, one.stop) for one in listed.elements]
        checks = [self._within(one.start, one.stop) for one in listed.elements]
        kept = [not self._own(found) for found in checks]
        if not any(kept):
            return [self._range(listed.start, listed.stop)]
        found: list[_Range] = []
        for one, inside, stays in zip(elements, checks, kept, strict=True):
            clauses = [self._range(check.start, check.stop) for check in inside]
            if not stays and clauses != [one]:
                raise UnsupportedSyntax("words after CHECK")
            found += clauses
        return found + _commas(elements, kept)

    def of_actions(self, actions: Sequence[Action]) -> list[_Range]:
        """Return the clauses in the actions of ALTER TABLE, and those actions that contain nothing else."""
        kept: list[bool] = []
        found: list[_Range] = []
        for action in actions:
            inside = self._within(action.start, action.stop)
            clauses = [self._range(check.start, check.stop) for check in inside]
            stays = True
            if action.listed is not None:
                clauses = self.of_list(action.listed)
                stays = clauses != [self._range(action.listed.start, action.listed.stop)]
            elif self._own(inside):
                stays = False
                if self._tokens[clauses[0].stop].upper not in _AFTER_ACTIONS:
                    raise UnsupportedSyntax("words after CHECK")
            if not stays:
                clauses = [_Range(self._at(action.start), clauses[0].stop)]
            found += clauses
            kept.append(stays)
        return found + _commas([self._range(one.start, one.stop) for one in actions], kept)

    def _at(self, place: int) -> int:
        """Return the token that begins there, or the first one after it."""
        return bisect_left(self._tokens, place, key=lambda token: token.start)

    def _range(self, start: int, stop: int) -> _Range:
        return _Range(self._at(start), self._at(stop))

    def _within(self, start: int, stop: int) -> Sequence[CheckClause]:
        first, last = (bisect_left(self._checks, place, key=lambda check: check.start) for place in (start, stop))
        return self._checks[first:last]

    @staticmethod
    def _own(checks: Sequence[CheckClause]) -> bool:
        """Return True if the element is such a clause, and no column that has some."""
        return bool(checks) and not checks[0].of_column


def _commas(elements: Sequence[_Range], kept: Sequence[bool]) -> list[_Range]:
    """Return the commas that are removed with their elements: the one before, or after where nothing that stays is before."""
    found = []
    stayed = False
    for number, stays in enumerate(kept):
        if not stays and len(kept) > 1:
            if stayed:
                found.append(_Range(elements[number].start - 1, elements[number].start))
            elif number + 1 < len(kept):
                found.append(_Range(elements[number].stop, elements[number].stop + 1))
        stayed = stayed or stays
    return found


def _joined(ranges: Sequence[_Range]) -> list[_Range]:
    """Return adjacent ranges as one, in order."""
    made: list[_Range] = []
    for one in sorted(ranges):
        if made and made[-1].stop == one.start:
            made[-1] = _Range(made[-1].start, one.stop)
        else:
            made.append(one)
    return made
