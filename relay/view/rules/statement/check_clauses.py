"""CHECK (…) of a definition, which MySQL before 8.0.16 reads and forgets, and newer servers enforce.

Taken out, and not made NOT ENFORCED: newer servers refuse some expressions that older ones read (3812 to 3815), want names that no
other table of the schema has (3822), and drop no column that a constraint names (3959).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from protocol.sql.edits import TextEdit
from protocol.sql.lexer import NotSure, SqlToken, TokenKind
from relay.view.rules.statement.logged_query import LoggedQuery, is_word
from relay.view.rules.statement.removed_words import removed_words
from relay.view.rules.statement.statement_words import StatementWords

_SELECTS: Final = ("SELECT", "WITH", "VALUES", "TABLE")
_BEHIND_ACTIONS: Final = ("PARTITION", "REMOVE")


class _Range(NamedTuple):
    """Tokens [start, stop) of the statement."""

    start: int
    stop: int


def without_checks(query: LoggedQuery) -> list[TextEdit]:
    """What takes each CHECK out of CREATE TABLE or ALTER TABLE, with its name and its comma. Raises: NotSure."""
    words = StatementWords(query)
    clauses: list[_Range] = []
    if words.accept("CREATE"):
        words.accept("OR", "REPLACE")
        words.accept("TEMPORARY")
        words.expect("TABLE")
        words.accept("IF", "NOT", "EXISTS")
        words.table_name()
        if words.word() == "(" and words.word(1) not in ("LIKE", "(", *_SELECTS):
            clauses = _of_list(words)
    elif words.accept("ALTER"):
        words.accept_any("ONLINE", "OFFLINE", "IGNORE")
        words.expect("TABLE")
        words.table_name()
        clauses = _of_actions(words)
    found = [edit for one in _joined(clauses) for edit in removed_words(query, words.tokens[one.start : one.stop])]
    return sorted(found)


def _of_list(words: StatementWords) -> list[_Range]:
    """The clauses in a list of columns and keys in brackets, all of it where it has nothing else; the cursor is behind it."""
    opened = words.at
    words.expect("(")
    elements: list[_Range] = []
    while True:
        elements.append(_element(words))
        if words.accept(")"):
            break
        words.expect(",")
    kept = [not _is_check(words.tokens, one.start) for one in elements]
    if not any(kept):
        return [_Range(opened, words.at)]
    found: list[_Range] = []
    for one, stays in zip(elements, kept, strict=True):
        found += _of_column(words.tokens, one) if stays else [_whole(words.tokens, one)]
    return found + _commas(elements, kept)


def _of_actions(words: StatementWords) -> list[_Range]:
    """The clauses in the actions of ALTER TABLE, and those actions that are nothing else."""
    actions: list[_Range] = []
    kept: list[bool] = []
    found: list[_Range] = []
    while not words.ended:
        start = words.at
        adds = words.accept("ADD")
        if adds and _is_check(words.tokens, words.at):
            behind = _behind_check(words.tokens, words.at)
            words.at = behind
            if not words.ended and words.word() not in (",", *_BEHIND_ACTIONS):
                raise NotSure(f"{words.peek().text} behind CHECK")
            found.append(_Range(start, behind))
            kept.append(False)
        elif adds and _opens_list(words):
            inside = _of_list(words)
            everything = inside == [_Range(inside[0].start, words.at)] if inside else False
            found += [_Range(start, words.at)] if everything else inside
            kept.append(not everything)
        else:
            found += _of_column(words.tokens, _Range(start, _element(words).stop))
            kept.append(True)
        _element(words)  # PARTITION BY … behind the last action
        actions.append(_Range(start, words.at))
        if not words.accept(","):
            break
    if not words.ended:
        raise NotSure(f"{words.peek().text} behind ALTER TABLE")
    return found + _commas(actions, kept)


def _opens_list(words: StatementWords) -> bool:
    """Takes the words between ADD and a list of columns, where there is one."""
    if words.word() == "COLUMN" and words.word(1) == "(":
        words.take()
    return words.word() == "("


def _element(words: StatementWords) -> _Range:
    """Up to the comma or the bracket behind it; the cursor is there."""
    start = words.at
    while not words.ended and words.word() not in (",", ")"):
        if words.word() == "(":
            words.skip_brackets()
        else:
            words.take()
    return _Range(start, words.at)


def _commas(elements: Sequence[_Range], kept: Sequence[bool]) -> list[_Range]:
    """Those that go with elements that do not stay: the one in front, or behind where nothing that stays is in front."""
    found = []
    for number, stays in enumerate(kept):
        if stays or len(kept) == 1:
            continue
        if any(kept[:number]):
            found.append(_Range(elements[number].start - 1, elements[number].start))
        elif number + 1 < len(kept):
            found.append(_Range(elements[number].stop, elements[number].stop + 1))
    return found


def _is_check(tokens: Sequence[SqlToken], at: int) -> bool:
    """Whether [CONSTRAINT [name]] CHECK ( stands there."""
    return _check_at(tokens, at) is not None


def _check_at(tokens: Sequence[SqlToken], at: int) -> int | None:
    """Where CHECK stands in [CONSTRAINT [name]] CHECK (, which begins at `at`."""
    if is_word(tokens[at], "CONSTRAINT"):
        at += 1
        is_name = tokens[at].kind is TokenKind.NAME or (
            tokens[at].kind is TokenKind.WORD and not (is_word(tokens[at], "CHECK") and tokens[at + 1].upper == "(")
        )
        at += is_name
    return at if at + 1 < len(tokens) and is_word(tokens[at], "CHECK") and tokens[at + 1].upper == "(" else None


def _behind_check(tokens: Sequence[SqlToken], at: int) -> int:
    """Behind the clause that begins there, with [NOT] ENFORCED. Raises: NotSure."""
    check = _check_at(tokens, at)
    assert check is not None
    depth, at = 0, check + 1
    while True:
        if tokens[at].kind is TokenKind.END:
            raise NotSure("a CHECK that does not end")
        depth += {"(": 1, ")": -1}.get(tokens[at].upper, 0)
        at += 1
        if not depth:
            break
    if is_word(tokens[at], "ENFORCED"):
        return at + 1
    return at + 2 if is_word(tokens[at], "NOT") and is_word(tokens[at + 1], "ENFORCED") else at


def _whole(tokens: Sequence[SqlToken], element: _Range) -> _Range:
    """An element that is such a clause. Raises: NotSure where something else stands in it."""
    if _behind_check(tokens, element.start) != element.stop:
        raise NotSure(f"{tokens[_behind_check(tokens, element.start)].text} behind CHECK")
    return element


def _of_column(tokens: Sequence[SqlToken], element: _Range) -> list[_Range]:
    """The clauses in the definition of a column."""
    found: list[_Range] = []
    at, depth = element.start, 0
    while at < element.stop:
        if not depth and tokens[at - 1].upper != "." and _is_check(tokens, at):
            behind = _behind_check(tokens, at)
            found.append(_Range(at, behind))
            at = behind
            continue
        depth += {"(": 1, ")": -1}.get(tokens[at].upper, 0)
        at += 1
    return found


def _joined(ranges: Sequence[_Range]) -> list[_Range]:
    """Neighbours as one, in order."""
    made: list[_Range] = []
    for one in sorted(ranges):
        if made and made[-1].stop == one.start:
            made[-1] = _Range(made[-1].start, one.stop)
        else:
            made.append(one)
    return made
