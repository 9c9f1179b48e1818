"""The lexers with each other over random SQL: where they differ is decided and written down, or it is a fault."""

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[feed]'")

from tests.sql_verdicts import lexers
from tests.sql_verdicts.differences import Difference, found_differences, listed_differences
from tests.sql_verdicts.leads import blind, listed_leads
from tests.sql_verdicts.random_sql import RandomSql
from tests.sql_verdicts.setting import Setting

_TEXTS = 150


def _as_bytes_of_utf8(text: str) -> str:
    """One character for each byte, as statements are read."""
    return text.encode().decode("latin-1")


def unlisted(seed: int, texts: int, pieces: int = 4) -> list[str]:
    """Differences that no row explains."""
    rows, drawn = listed_differences(), RandomSql(seed)
    return [
        f"{found.lexer} {found.setting} {found.refuses} at {found.at} of {found.text!r}"
        for _ in range(texts)
        for found in found_differences(_as_bytes_of_utf8(drawn.text(pieces)))
        if not any(row.explains(found) for row in rows)
    ]


@pytest.mark.parametrize("pieces", [1, 4])
def test_lexers_differ_in_what_is_listed_and_in_nothing_else(pieces: int) -> None:
    assert unlisted(pieces, _TEXTS, pieces) == []


@pytest.mark.parametrize("row", listed_differences(), ids=lambda row: row.name.replace(" ", "-"))
def test_each_listed_difference_is_there(row: Difference) -> None:
    explained = {found.lexer for found in found_differences(row.input) if row.explains(found)}
    assert explained, row.name


@pytest.mark.parametrize(
    ("text", "expected"), listed_leads(), ids=lambda one: ascii(one) if isinstance(one, str) else ""
)
def test_readers_of_the_first_word_are_blind_for_what_is_listed(text: str, expected: list[str]) -> None:
    assert blind(text) == expected


def test_every_reader_of_the_first_word_sees_it_where_nothing_is_before_it() -> None:
    assert blind("") == []


def test_a_lexer_that_reads_a_comment_otherwise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = lexers.LEXERS["names"]

    def hashes_are_words(text: str, setting: Setting) -> str:
        return real(text.replace("#", "a"), setting)

    monkeypatch.setitem(lexers.LEXERS, "names", hashes_are_words)
    assert any(line.startswith("names") for line in unlisted(1, 100, 1))
