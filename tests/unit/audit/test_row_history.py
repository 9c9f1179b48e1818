"""One row's history: what names it, which changes are of it, and what each did."""

import random

import pytest

from relay.audit.history.lives import Key, KeyedChange, Move, Order, keys_of_lives, lives_of
from relay.audit.history.row_asked import RowAsked, parse_row
from relay.audit.jobs.row_history import changed_columns
from relay.commands.outcome import CommandFailed


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("42", (("", "42"),)),
        ("abc", (("", "abc"),)),
        ('"42"', (("", "42"),)),
        ("12345678901234567890.10", (("", "12345678901234567890.10"),)),
        ('{"id": 42}', (("id", "42"),)),
        ('{"order": 1, "part": "b"}', (("order", "1"), ("part", "b"))),
    ],
)
def test_a_key_is_a_value_or_columns_with_values(key: str, expected: tuple[tuple[str, str], ...]) -> None:
    assert parse_row("shop.orders", key) == RowAsked("shop", "orders", expected)


@pytest.mark.parametrize("key", ["", "{}", "null", '{"id": null}', "[1]", '{"id": {"a": 1}}'])
def test_what_is_no_key_is_refused_with_an_example(key: str) -> None:
    with pytest.raises(CommandFailed, match="such as"):
        parse_row("shop.orders", key)


def test_a_table_needs_its_database() -> None:
    with pytest.raises(CommandFailed, match=r"such as shop\.orders"):
        parse_row("orders", "42")


def test_a_value_alone_is_of_the_primary_key_if_that_has_one_column() -> None:
    row = parse_row("shop.orders", "42")
    assert row.with_columns(("number",)).key == (("number", "42"),)
    named = parse_row("shop.orders", '{"a": 1}')
    assert named.with_columns(None) is named
    for primary_key, why in (
        (None, "nobody told the primary key"),
        ((), "has no primary key"),
        (("a", "b"), "has 2 columns"),
    ):
        with pytest.raises(CommandFailed, match=why):
            row.with_columns(primary_key)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (None, '{"id": 1, "a": null}', "id = 1, a = NULL"),
        ('{"id": 1, "a": "x"}', None, "id = 1, a = x"),
        ('{"id": 1, "a": 1.50, "b": 2}', '{"id": 1, "a": 1.5, "b": 2}', "a: 1.50 → 1.5"),
        ('{"id": 1}', '{"a": "new"}', "a → new"),
        ('{"id": 1}', '{"id": 1}', "the same values"),
        (None, None, ""),
    ],
)
def test_a_change_tells_the_values_that_are_others(before: str | None, after: str | None, told: str) -> None:
    assert changed_columns(before, after) == told


def history(key: Key, changes: list[KeyedChange]) -> dict[Order, int]:
    """As the audit does it: only changes with a key that may be of the row are looked at."""
    moves = [
        Move(one.at, one.before, one.after) for one in changes if one.before and one.after and one.before != one.after
    ]
    keys = keys_of_lives(key, moves)
    return lives_of(
        key, (one for one in changes if one.before in keys or one.after in keys or not (one.before or one.after))
    )


def change(at: int, before: int | None, after: int | None) -> KeyedChange:
    return KeyedChange((0, at, 0), None if before is None else (str(before),), None if after is None else (str(after),))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([(None, 42), (42, 42), (7, 7), (42, None)], {0: 1, 1: 1, 3: 1}),
        ([(None, 1), (1, 42), (42, 5), (5, None)], {0: 1, 1: 1, 2: 1, 3: 1}),  # both ways
        ([(None, 42), (42, None), (None, 42)], {0: 1, 1: 1, 2: 2}),  # the key is given to another row
        ([(None, 1), (1, None), (None, 1), (1, 42)], {2: 1, 3: 1}),  # the first with key 1 was another row
        ([(42, 42), (42, None)], {0: 1, 1: 1}),  # inserted before the archive
        ([(None, 42), (None, None), (None, 42)], {0: 1, 2: 2}),  # TRUNCATE
        ([(42, 43), (41, 42), (40, 41), (42, None), (43, None)], {0: 1, 1: 2, 2: None, 3: 2, 4: 1}),  # SET id = id + 1
        ([(None, 7)], {}),
    ],
)
def test_a_row_is_followed_by_its_keys(
    changes: list[tuple[int | None, int | None]], expected: dict[int, int | None]
) -> None:
    made = [change(at, before, after) for at, (before, after) in enumerate(changes)]
    found = history(("42",), made)
    assert {at[1]: life for at, life in found.items()} == {at: life for at, life in expected.items() if life}


def test_random_histories_are_those_of_rows_that_know_who_they_are() -> None:
    """Rows with an identity of their own, which the audit does not see, change keys at random."""
    for seed in range(300):
        chance = random.Random(seed)
        row_with: dict[int, int] = {}
        changes, owners, had = [], [], set()
        for at in range(60):
            kind, key = chance.random(), chance.randint(1, 5)
            if kind < 0.05:
                row_with.clear()
                changes.append(change(at, None, None))
                owners.append(None)
            elif key not in row_with:
                row_with[key] = at  # its identity
                changes.append(change(at, None, key))
                owners.append(at)
            elif kind < 0.2:
                changes.append(change(at, key, None))
                owners.append(row_with.pop(key))
            else:
                target = chance.choice([key, *(one for one in range(1, 6) if one not in row_with)])
                row_with[target] = row_with.pop(key)
                changes.append(change(at, key, target))
                owners.append(row_with[target])
            if 3 in {int(one[0]) for one in (changes[-1].before, changes[-1].after) if one}:
                had.add(owners[-1])
        found = history(("3",), changes)
        assert {at[1] for at in found} == {at for at, owner in enumerate(owners) if owner in had and owner is not None}
        by_life = {found[one.at]: owner for one, owner in zip(changes, owners, strict=True) if one.at in found}
        assert len(by_life) == len(had)
        assert all(
            by_life[found[one.at]] == owner for one, owner in zip(changes, owners, strict=True) if one.at in found
        )
