"""What is typed for a filter."""

import pytest

from relay.commands.arguments import timestamp
from relay.commands.outcome import CommandFailed


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-01-01", 1_767_225_600),
        ("2026-01-01T01:00:00+01:00", 1_767_225_600),
        ("20260101", 1_767_225_600),
        ("1767225600", 1_767_225_600),
        ("0", 0),
        ("12345678", 12_345_678),  # no date: there is no 56th month
    ],
)
def test_a_time_is_iso_text_a_date_of_eight_digits_or_seconds(text: str, seconds: int) -> None:
    assert timestamp("--since", text) == seconds


def test_anything_else_is_refused_with_an_example() -> None:
    with pytest.raises(CommandFailed, match="--since yesterday: write a time such as"):
        timestamp("--since", "yesterday")
