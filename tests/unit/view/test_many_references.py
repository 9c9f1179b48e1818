"""What is known of foreign keys changes with each definition: as if made anew, and for little also in a large schema."""

import random
from collections.abc import Sequence

import pytest

from protocol.sql.tables.source_table import CASCADE, RESTRICT, SET_NULL, ForeignKey, TableName
from relay.source_tables.references import References
from relay.view.rules.tables.table_engines import TableEngines

TABLES = [(schema, name) for schema in ("d", "D") for name in ("a", "b", "B", "c", "e")]


def key_to(parent: TableName, on_delete: str = CASCADE) -> ForeignKey:
    return ForeignKey((), *parent, (), on_delete)


def test_references_that_change_one_by_one_say_what_they_say_made_anew() -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # pytest shows it when the test fails
    chosen = random.Random(seed)
    keys: dict[TableName, tuple[ForeignKey, ...]] = {}
    changed = References(keys)
    for _ in range(400):
        child = chosen.choice(TABLES)
        after = tuple(
            key_to(chosen.choice(TABLES), chosen.choice((CASCADE, SET_NULL, RESTRICT)))
            for _number in range(chosen.randrange(4))
        )
        changed.change(child, keys.get(child, ()), after)
        keys[child] = after
        anew = References(keys)
        assert set(changed.acting_parents) == set(anew.acting_parents)
        assert set(changed.deep_parents) == set(anew.deep_parents)
        lower = {(schema.lower(), name.lower()) for schema, name in TABLES}
        assert set(anew.deep_parents) >= {table for table in lower if anew.left_unfinished(table)}
        for table in TABLES:
            assert changed.changed_with(table) == anew.changed_with(table)
            assert changed.reached_from(table) == anew.reached_from(table)
            assert changed.left_unfinished(table) == anew.left_unfinished(table)


def test_a_definition_among_thousands_with_foreign_keys_looks_at_its_own_tables_alone() -> None:
    """On the event loop, where it is the newest: also a temporary table, which comes and goes all the time."""
    engines = TableEngines()
    for number in range(3000):
        keys = [("", key_to(("d", f"t{max(number - 1, 0)}")))]
        engines.create(("d", f"t{number}"), "InnoDB", "5.6.24", keys=keys)
    known = engines.references
    looked: list[TableName] = []
    really = References._acting

    def acting(references: References, parent: TableName) -> Sequence[object]:
        looked.append(parent)
        return really(references, parent)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(References, "_acting", acting)
        engines.create(("d", "t3000"), "InnoDB", "5.6.24", keys=[("", key_to(("d", "t2999")))])
        engines.create_temporary(1, ("d", "t"), "InnoDB", "5.6.24")
        assert engines.references is known and ("d", "t2999") in engines.references.acting_parents
    assert len(looked) < 20


@pytest.mark.parametrize("order", [(CASCADE, SET_NULL), (SET_NULL, CASCADE)])
def test_a_table_that_refers_twice_passes_the_cascade_on_in_whatever_order_it_does(order: tuple[str, str]) -> None:
    """DELETE of several tables is judged by it: rows of `e` go with rows of `p`."""
    p, c, e = ("d", "p"), ("d", "c"), ("d", "e")
    keys = {c: [key_to(p, rule) for rule in order], e: [key_to(c)]}
    assert References(keys).reached_from(p) == {c, e}
