"""The lexer reads a statement as the server that logged it does, or says that it cannot be sure."""

import tracemalloc

import pytest

from protocol.sql.byte_text import blank_of, byte_text, is_wide
from protocol.sql.lexer import (
    ReadAs,
    SqlText,
    SqlToken,
    TokenKind,
    UnsupportedSyntax,
    sql_text,
    sql_tokens,
    tokens_inside,
    with_variables,
)
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


def read_as(text: str, **how: object) -> SqlText:
    return sql_text(text, ReadAs(**{"server_version": MYSQL_56, **how}))  # type: ignore[arg-type]


def words(text: str, **how: object) -> list[str]:
    return [token.text for token in read_as(text, **how).tokens[:-1]]


def texts(text: str) -> list[str]:
    """Kind and text of each token, as `word a`."""
    return [f"{token.kind.value} {token.text}" for token in sql_tokens(text, 0, MYSQL_97)[:-1]]


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
    with pytest.raises(UnsupportedSyntax, match="a quotation that does not end"):
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
    with pytest.raises(UnsupportedSyntax, match=why):
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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0x1F", ["number 0x1F"]),
        ("0x1Fg 0X1F 0x", ["word 0x1Fg", "word 0X1F", "word 0x"]),
        ("0b01 0b2 0B01", ["number 0b01", "word 0b2", "word 0B01"]),
        ("1a 1_0 1$ 1e", ["word 1a", "word 1_0", "word 1$", "word 1e"]),
        ("1 1.5 .5 1e5 1.5E-3", ["number 1", "number 1.5", "number .5", "number 1e5", "number 1.5E-3"]),
        ("1.a", ["number 1.", "word a"]),
        ("1\x80 2\xe9", ["word 1\x80", "word 2\xe9"]),
    ],
)
def test_numbers_end_where_servers_end_them(text: str, found: list[str]) -> None:
    assert texts(text) == found


@pytest.mark.parametrize("name", ["1a", "5", "5e3", "0x1F", "0b01"])
def test_right_after_a_name_and_a_point_a_name_begins_whatever_it_begins_with(name: str) -> None:
    assert texts(f"t.{name}") == ["word t", "symbol .", f"word {name}"]
    # after a quoted name, and after a blank, servers read a number, and refuse it
    if name not in ("0x1F", "0b01"):
        assert texts(f"`t`.{name}")[1].startswith("number .")
        assert texts(f"t .{name}")[1].startswith("number .")


def test_a_lenient_reading_takes_a_quotation_with_millions_of_escapes() -> None:
    text = "'" + "\\'" * 1_000_001 + "'"
    assert len(words(text, is_lenient=True)) == 1


def test_a_nul_is_left_out_at_the_end_and_a_sign_elsewhere() -> None:
    assert texts("a\0") == texts("a \0 \n") == ["word a"]
    assert texts("a\0b") == ["word a", "symbol \0", "word b"]


# ---- character sets -------------------------------------------------------------------------------------------------------


def test_a_blank_beyond_ascii_is_one_for_clients_of_its_sets() -> None:
    assert words("a\xa0b") == ["a\xa0b"]
    assert words("a\xa0b 1\xa0+\xa02", blank=blank_of("latin1")) == ["a", "b", "1", "+", "2"]
    assert words("a\xffb\xa0", blank=blank_of("cp852")) == ["a", "b\xa0"]
    assert blank_of("utf8mb4") == blank_of(None) == ""


def test_characters_of_several_bytes_hide_no_quotation_mark() -> None:
    assert is_wide("gbk") and not is_wide("utf8mb4")
    assert byte_text(b"'\x95\\'", "sjis") == "'\xe9\xe9'"
    assert byte_text(b"'\xb1\\n'", "sjis") == "'\xb1\\n'"
    assert byte_text(b"\xc3\xa4", "utf8mb4") == "\xc3\xa4"


# ---- comments -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "version", "found"),
    [
        ("a --\x01b\nc", MYSQL_56, "a c"),
        ("a /*M!50700 b */ c", MARIADB, "a b c"),
        ("a /*m! b */ c", MARIADB, "a c"),
        ("a /*+ b */ c", MYSQL_97, "a c"),
        ("a /* /* b */ c", MYSQL_97, "a c"),
        ("a /*!999999 /* b */ c */ d", MYSQL_97, "a d"),
        ("a /*!999999 /* b /* c */ d */ e", MYSQL_97, "a e"),
        ("a /*M!999999 /* b */ c", MYSQL_97, "a c"),
        ("2 */* a */ 3", MYSQL_97, "2 * 3"),
        ("a */ b", MYSQL_97, "a * / b"),
    ],
)
def test_comments_end_where_the_server_ends_them(text: str, version: str, found: str) -> None:
    assert words(text, server_version=version) == found.split()


def test_comments_of_any_server_are_read_where_that_is_asked_for() -> None:
    assert words("a /*!999999 b */ /*M! c */ /*!0d */ /* e */", any_server=True) == ["a", "b", "c", "d"]


def test_comments_are_told_with_their_marks_and_places() -> None:
    text = "a /*!50000 b /* c */ */ /*M!100100 d */ /*+ e */ /*!50700 f */"
    found = [(text[one.start : one.stop], one.mark, one.version, one.is_read) for one in read_as(text).comments]
    assert found == [
        ("/*!50000 b /* c */ */", "!", 50000, True),
        ("/* c */", "", 0, False),
        ("/*M!100100 d */", "M!", 100100, False),
        ("/*+ e */", "+", 0, False),
        ("/*!50700 f */", "!", 50700, False),
    ]
    assert text[read_as(text).comments[0].body :].startswith(" b")


def test_words_in_comments_are_found_by_their_places() -> None:
    text = "a /*!50000 b /*! c */ d */ e /*! f */"
    found = read_as(text)
    assert [found.tokens[at].text for at in tokens_inside(found.tokens, found.comments)] == ["b", "c", "d", "f"]


# ---- variables ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@a + 1", ["variable @a", "symbol +", "number 1"]),
        ("@1a @a.5 @a.b", ["variable @1a", "variable @a.5", "variable @a.b"]),
        ("@'x y' @`z`.b", ["variable @x y", "variable @z", "symbol .", "word b"]),
        ("@@global.a", ["variable @@global.a"]),
        ("@@GLOBAL . a", ["variable @@GLOBAL", "symbol .", "word a"]),
        ("@ a @", ["symbol @", "word a", "symbol @"]),
        ("@@ a", ["symbol @", "symbol @", "word a"]),
        ("@(a)", ["symbol @", "symbol (", "word a", "symbol )"]),
    ],
)
def test_variables_are_put_together(text: str, found: list[str]) -> None:
    joined = with_variables(sql_tokens(text, 0, MYSQL_56))
    assert [f"{token.kind.value} {token.text}" for token in joined[:-1]] == found


# ---- rows of literals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found", "rows"),
    [
        ("INSERT t VALUES (1, 'a'), (x'41', NULL)", "INSERT t VALUES ( )", ["(1, 'a'), (x'41', NULL)"]),
        ("INSERT t VALUES (1), (f(2)), (3)", "INSERT t VALUES ( ) , ( f ( 2 ) ) , ( )", ["(1), ", "(3)"]),
        ("REPLACE t (a) VALUE (1) ;", "REPLACE t ( a ) VALUE ( ) ;", ["(1)"]),
        ("UPDATE t SET a = VALUES (1)", "UPDATE t SET a = VALUES ( 1 )", []),
        ("INSERT t SET a = (1)", "INSERT t SET a = ( 1 )", []),
        ("INSERT t SELECT (VALUES (1))", "INSERT t SELECT ( VALUES ( 1 ) )", []),
    ],
)
def test_rows_of_literals_become_a_pair_of_brackets(text: str, found: str, rows: list[str]) -> None:
    made = read_as(text, folds_rows=True)
    assert [token.text for token in made.tokens[:-1]] == found.split()
    assert [text[start:stop] for start, stop in made.rows] == rows


# ---- texts that were cut --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a 'b c", ["a", "b c"]),
        ("a /* b", ["a"]),
        ("a /*!50000 b", ["a", "b"]),
        ("a /*!1 b */", ["a", "b"]),
        ("1" * 1024, ["1" * 1024]),
        ("a" * 1026, ["a" * 1025, "a"]),
    ],
)
def test_a_lenient_reading_never_fails(text: str, found: list[str]) -> None:
    assert words(text, is_lenient=True) == found


def test_a_lenient_reading_stops_at_its_limit_and_says_so() -> None:
    made = read_as("a b c", is_lenient=True, most=2)
    assert [token.text for token in made.tokens] == ["a", "b", ""]
    assert not made.is_whole
