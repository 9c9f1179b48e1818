"""The lexer reads a statement as the server that logged it does, or says that it cannot be sure."""

import tracemalloc

import pytest

from protocol.sql.lexer import LITERAL_ROWS, NotSure, SqlToken, TokenKind, quotation_stop, sql_tokens
from protocol.sql.sql_mode import ANSI_QUOTES, NO_BACKSLASH_ESCAPES

MYSQL_56 = "5.6.24-log"
MYSQL_57 = "5.7.44"
MYSQL_97 = "9.7.4"
MARIADB = "10.11.19-MariaDB-log"


def read(text: str, sql_mode: int = 0, server: str = MYSQL_97) -> list[str]:
    """The texts of the tokens, without the one at the end."""
    *tokens, end = sql_tokens(text, sql_mode, server)
    assert end == SqlToken(TokenKind.END, "", "", len(text), len(text))
    assert all(0 <= token.start < token.stop <= len(text) for token in tokens)
    return [token.text for token in tokens]


def kinds(text: str, sql_mode: int = 0) -> list[str]:
    return [token.kind.value for token in sql_tokens(text, sql_mode, MYSQL_97)]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("select a.b", ["select", "a", ".", "b"]),
        ("`a``b` 'it''s'", ["a`b", "it's"]),
        (r"'a\n\t\0\b\r\Z\'\\\x' '\%\_'", ["a\n\t\0\b\r\x1a'\\x", r"\%\_"]),
        ('"a""b"', ['a"b']),
        ("1 1.5 .5 1e3 1.5E-3 0x1F 0b101", ["1", "1.5", ".5", "1e3", "1.5E-3", "0x1F", "0b101"]),
        ("0xyz 0b12 1a", ["0xyz", "0b12", "1a"]),
        ("a-- b", ["a"]),
        ("a--b", ["a", "-", "-", "b"]),
        ("a --\nb # c\nd", ["a", "b", "d"]),
        ("a /* b */ c", ["a", "c"]),
        ("größe $x _y", ["größe", "$x", "_y"]),
        ("", []),
    ],
)
def test_a_statement_is_cut_into_words_names_strings_and_numbers(text: str, tokens: list[str]) -> None:
    assert read(text) == tokens


def test_each_token_says_what_it_is_and_where() -> None:
    tokens = sql_tokens("Set `n` = 'it''s' , 5", 0, MYSQL_97)
    assert [(t.kind, t.upper, t.start, t.stop) for t in tokens] == [
        (TokenKind.WORD, "SET", 0, 3),
        (TokenKind.NAME, "", 4, 7),
        (TokenKind.SYMBOL, "=", 8, 9),
        (TokenKind.STRING, "", 10, 17),
        (TokenKind.SYMBOL, ",", 18, 19),
        (TokenKind.NUMBER, "", 20, 21),
        (TokenKind.END, "", 21, 21),
    ]


def test_double_quotes_are_names_with_ansi_quotes_and_strings_without() -> None:
    assert kinds('"a"', ANSI_QUOTES) == ["name", "end"]
    assert kinds('"a"') == ["string", "end"]
    assert read(r'"a\"', ANSI_QUOTES) == ["a\\"]


def test_a_backslash_is_only_that_with_no_backslash_escapes() -> None:
    assert read(r"'C:\' x", NO_BACKSLASH_ESCAPES) == ["C:\\", "x"]
    with pytest.raises(NotSure, match="a quotation that does not end"):
        read(r"'C:\' x")


@pytest.mark.parametrize(
    ("text", "server", "tokens"),
    [
        ("/*! a */ b", MYSQL_56, ["a", "b"]),
        ("/*!50600 a */ b", MYSQL_56, ["a", "b"]),
        ("/*!50700 a */ b", MYSQL_56, ["b"]),
        ("/*!90000 a */ b", MYSQL_97, ["a", "b"]),
        ("/*M! a */ b", MYSQL_97, ["b"]),
        ("/*M! a */ b", MARIADB, ["a", "b"]),
        ("/*M!101100 a */ b", MARIADB, ["a", "b"]),
        ("/*M!110000 a */ b", MARIADB, ["b"]),
        ("/*!50700 a */ b", MARIADB, ["b"]),
        ("/*!50600 a */ b", MARIADB, ["a", "b"]),
        ("/*!100100 a */ b", MARIADB, ["a", "b"]),
        ("/*!080000 a */ b", MYSQL_97, ["a", "b"]),
        ("/*! a /* b */ c */ d", MYSQL_97, ["a", "c", "d"]),
    ],
)
def test_comments_for_servers_are_read_as_the_server_reads_them(text: str, server: str, tokens: list[str]) -> None:
    assert read(text, server=server) == tokens


@pytest.mark.parametrize(
    ("text", "server", "why"),
    [
        ("/* a", MYSQL_97, "a comment that does not end"),
        ("/*! a", MYSQL_97, "a comment for the server that does not end"),
        ("/*!50700 a /* b */ */", MYSQL_56, "has others in it"),
        ("/*!50600 a */", "", "it is not known which the server has"),
        ("/*!506 a */", MYSQL_56, "it is not known which the server has"),
        ("/*!050700 a */", MYSQL_57, "whose version the server reads otherwise"),
        ("'a", MYSQL_97, "a quotation that does not end"),
        ("1" * 1025, MYSQL_97, "a number that is too long"),
        ("a" * 1025, MYSQL_97, "a word that is too long"),
        ("," * 200_001, MYSQL_97, "too long"),
        ("'" + r"\n" * 2_000_001 + "'", MYSQL_97, "too long"),
    ],
    ids=lambda value: value[:20],
)
def test_what_a_server_may_read_otherwise_is_said_to_be_unsure(text: str, server: str, why: str) -> None:
    with pytest.raises(NotSure, match=why):
        read(text, server=server)


def test_a_long_string_is_read_in_little_memory() -> None:
    text = "it''s \\'a\\' text " * 1_000 + "a" * (4 << 20)
    tracemalloc.start()
    try:
        tokens = sql_tokens(f"SELECT '{text}'", 0, MYSQL_56)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert tokens[1].text == text.replace("''", "'").replace("\\'", "'")
    assert peak < 4 * len(text)


def test_a_hexadecimal_number_of_any_length_is_one_token() -> None:
    digits = "0x" + "AF" * 100_000
    assert read(f"{digits},1") == [digits, ",", "1"]


def test_quotations_end_at_their_own_mark() -> None:
    assert quotation_stop("'a''b'c", 0, plain=True) == 6
    assert quotation_stop(r"x'a\'b'", 1, plain=False) == 7


@pytest.mark.parametrize(
    ("row", "stop"),
    [
        ("(1, 'a', NULL), (2", 16),
        ("(-1.5e3,0xAF,_binary 'x',x'00',DEFAULT)", 39),
        ("(NOW())", None),
        ("(1, t.a)", None),
        ("(1a)", None),
    ],
)
def test_a_row_of_literals_is_found_whole_or_not_at_all(row: str, stop: int | None) -> None:
    found = LITERAL_ROWS[False, False].match(row)
    assert (found and found.end()) == stop


def test_a_double_quoted_value_is_no_literal_with_ansi_quotes() -> None:
    assert LITERAL_ROWS[False, False].match('("a")')
    assert LITERAL_ROWS[False, True].match('("a")') is None
    assert LITERAL_ROWS[True, False].match(r"('C:\')")
