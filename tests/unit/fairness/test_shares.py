"""What each group keeps where there is not room for all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.fairness.shares import fair_part


@pytest.mark.parametrize(
    ("items", "most", "kept"),
    [
        ("aab", 3, "aab"),
        ("aaaaab", 3, "aab"),
        ("baaaaa", 3, "baa"),
        ("aaaabbbbc", 5, "aabbc"),
        ("abc", 2, ""),
        ("", 0, ""),
    ],
)
def test_who_has_most_gives_up_its_last_ones(items: str, most: int, kept: str) -> None:
    assert "".join(fair_part(items, str, most)) == kept


@given(st.lists(st.sampled_from("abcdef"), max_size=60), st.integers(0, 40))
def test_no_more_than_there_is_room_for_and_nobody_loses_one_who_has_less_than_another_keeps(
    items: list[str], most: int
) -> None:
    kept = fair_part(items, str, most)
    assert len(kept) <= most or len(items) <= most
    counts = {group: (items.count(group), kept.count(group)) for group in set(items)}
    largest = max((after for _, after in counts.values()), default=0)
    assert all(before == after or after == largest for before, after in counts.values())
