"""The two lexers with each other over random SQL, and what readers of the first word see through."""

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[feed]'")

from tests.sql_verdicts import compiled_digest
from tests.sql_verdicts.compiled_digest import digest_alike
from tests.sql_verdicts.leads import blind, listed_leads
from tests.sql_verdicts.random_sql import RandomSql
from tests.sql_verdicts.setting import MODES, SERVERS, Setting

_TEXTS = 150
_SETTINGS = [Setting(server, mode) for server in SERVERS for mode in MODES]


@pytest.mark.parametrize("pieces", [1, 4])
def test_the_compiled_digest_reads_comments_and_strings_as_the_lexer_does(pieces: int) -> None:
    drawn = RandomSql(pieces)
    texts = [drawn.text(pieces).encode().decode("latin-1") for _ in range(_TEXTS)]
    assert [(text, setting) for text in texts for setting in _SETTINGS if not digest_alike(text, setting)] == []


def test_a_digest_that_reads_a_comment_otherwise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = compiled_digest.sql_tokens
    assert digest_alike("a # b\nc", _SETTINGS[0])
    monkeypatch.setattr(compiled_digest, "sql_tokens", lambda text, *how: real(text.replace("#", "a"), *how))
    assert not digest_alike("a # b\nc", _SETTINGS[0])


@pytest.mark.parametrize(
    ("text", "expected"), listed_leads(), ids=lambda one: ascii(one) if isinstance(one, str) else ""
)
def test_readers_of_the_first_word_are_blind_for_what_is_listed(text: str, expected: list[str]) -> None:
    assert blind(text) == expected


def test_every_reader_of_the_first_word_sees_it_where_nothing_is_before_it() -> None:
    assert blind("") == []
