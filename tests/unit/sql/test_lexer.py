"""The words of statements. All that is here of servers was tried on MySQL 5.6.24 and 9.7.4, MariaDB 10.11.19 and 11.8.9."""

import pytest

from protocol.sql.byte_text import blank_of, byte_text, is_wide
from protocol.sql.lexer import NotSure, ReadAs, SqlText, sql_text, sql_tokens, tokens_inside, with_variables
from protocol.sql.sql_mode import ANSI_QUOTES, NO_BACKSLASH_ESCAPES

MYSQL_56, MYSQL_97, MARIADB = "5.6.24-log", "9.7.4", "10.11.19-MariaDB-log"


def texts(text: str, sql_mode: int = 0, version: str = MYSQL_56) -> list[str]:
    """Kind and text of each token, as `word a`."""
    return [f"{token.kind.value} {token.text}" for token in sql_tokens(text, sql_mode, version)[:-1]]


def read(text: str, **how: object) -> SqlText:
    return sql_text(text, ReadAs(**{"server_version": MYSQL_56, **how}))  # type: ignore[arg-type]


def words(text: str, **how: object) -> list[str]:
    return [token.text for token in read(text, **how).tokens[:-1]]


# ---- words, numbers, quotations -------------------------------------------------------------------------------------------


def test_each_token_has_its_place_and_the_last_one_is_the_end() -> None:
    found = sql_tokens("a  `b`", 0, MYSQL_56)
    assert [(token.kind.value, token.upper, token.start, token.stop) for token in found] == [
        ("word", "A", 0, 1),
        ("name", "", 3, 6),
        ("end", "", 6, 6),
    ]


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


def test_a_backslash_escapes_in_strings_alone_and_where_the_mode_does_not_forbid_it() -> None:
    assert texts(r"'a\'b\n\%\x'") == ["string a'b\n\\%x"]
    assert texts(r"'a\'", NO_BACKSLASH_ESCAPES) == ["string a\\"]
    assert texts(r'"a\"b"') == ['string a"b']
    assert texts(r'"a\" b', ANSI_QUOTES) == ["name a\\", "word b"]
    assert texts(r"`a\`") == ["name a\\"]
    assert texts("'a''b' \"c\"\"d\" `e``f`") == ["string a'b", 'string c"d', "name e`f"]


@pytest.mark.parametrize("text", ["'a", '"a', "`a", "/* a", "/*! a", "a" * 1026, "1" * 1024, "a " * 200_001])
def test_what_has_no_end_or_is_too_long_is_not_sure(text: str) -> None:
    with pytest.raises(NotSure):
        sql_tokens(text, 0, MYSQL_56)


def test_a_quotation_with_millions_of_escapes_is_not_sure() -> None:
    text = "'" + "\\'" * 1_000_001 + "'"
    with pytest.raises(NotSure):
        sql_tokens(text, 0, MYSQL_56)
    assert len(words(text, is_lenient=True)) == 1


def test_a_long_hexadecimal_number_is_one_token() -> None:
    digits = "0x" + "F" * 200_000
    assert texts(digits) == [f"number {digits}"]


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
        ("a # b\nc -- d\ne --\nf /* g */ h", MYSQL_56, "a c e f h"),
        ("a --b", MYSQL_56, "a - - b"),
        ("a --\x01b\nc", MYSQL_56, "a c"),
        ("a /*! b */ c", MYSQL_56, "a b c"),
        ("a /*!50000 b */ c", MYSQL_56, "a b c"),
        ("a /*!50700 b */ c", MYSQL_56, "a c"),
        ("a /*!50700 b */ c", MARIADB, "a c"),
        ("a /*!100100 b */ c", MARIADB, "a b c"),
        ("a /*M!50700 b */ c", MARIADB, "a b c"),
        ("a /*M! b */ c", MYSQL_97, "a c"),
        ("a /*m! b */ c", MARIADB, "a c"),
        ("a /*!090000 b */ c", MYSQL_97, "a b c"),
        ("a /*+ b */ c", MYSQL_97, "a c"),
        ("a /* /* b */ c", MYSQL_97, "a c"),
        ("a /*!999999 /* b */ c */ d", MYSQL_97, "a d"),
        ("a /*!999999 /* b /* c */ d */ e", MYSQL_97, "a e"),
        ("a /*M!999999 /* b */ c", MYSQL_97, "a c"),
        ("a /*! /* b */ c */ d", MYSQL_97, "a c d"),
        ("2 */* a */ 3", MYSQL_97, "2 * 3"),
        ("a */ b", MYSQL_97, "a * / b"),
    ],
)
def test_comments_are_read_as_their_server_reads_them(text: str, version: str, found: str) -> None:
    assert words(text, server_version=version) == found.split()


@pytest.mark.parametrize(
    ("text", "version"),
    [("/*!50000 a */", ""), ("/*!0 */ a", MYSQL_97), ("/*!1000001 */ a", MYSQL_97), ("/*!100100 a */", MYSQL_56)],
)
def test_a_version_that_is_not_known_or_read_otherwise_is_not_sure(text: str, version: str) -> None:
    with pytest.raises(NotSure):
        sql_tokens(text, 0, version)


def test_comments_of_any_server_are_read_where_that_is_asked_for() -> None:
    assert words("a /*!999999 b */ /*M! c */ /*!0d */ /* e */", any_server=True) == ["a", "b", "c", "d"]


def test_comments_are_told_with_their_marks_and_places() -> None:
    text = "a /*!50000 b /* c */ */ /*M!100100 d */ /*+ e */ /*!50700 f */"
    found = [(text[one.start : one.stop], one.mark, one.version, one.is_read) for one in read(text).comments]
    assert found == [
        ("/*!50000 b /* c */ */", "!", 50000, True),
        ("/* c */", "", 0, False),
        ("/*M!100100 d */", "M!", 100100, False),
        ("/*+ e */", "+", 0, False),
        ("/*!50700 f */", "!", 50700, False),
    ]
    assert text[read(text).comments[0].body :].startswith(" b")


def test_words_in_comments_are_found_by_their_places() -> None:
    text = "a /*!50000 b /*! c */ d */ e /*! f */"
    found = read(text)
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
    made = read(text, folds_rows=True)
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
    made = read("a b c", is_lenient=True, most=2)
    assert [token.text for token in made.tokens] == ["a", "b", ""]
    assert not made.is_whole
