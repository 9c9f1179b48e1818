"""Words of a statement that are looked for, brackets that belong together, and edits."""

from protocol.sql.brackets import Brackets
from protocol.sql.edits import TextEdit, TokenEdits, edited
from protocol.sql.lexer import sql_tokens
from protocol.sql.sql_words import SqlWords


def of(text: str) -> SqlWords:
    return SqlWords(sql_tokens(text, 0, "9.7.4"))


def test_words_are_found_by_their_places() -> None:
    words = of("CREATE TABLE `T` (a INT DEFAULT 'X', b INT)")
    assert words.starts("CREATE", "TABLE") and not words.starts("TABLE")
    assert (words.word(0), words.word(2), words.word(-1), words.word(99)) == ("CREATE", "", "", "")
    assert (words.name(2), words.text_at(7), words.name(7), words.name(99)) == ("t", "x", "", "")
    assert list(words.places("INT")) == [5, 10]
    assert words.has("INT", "DEFAULT") and not words.has("INT", "INT")


def test_brackets_are_matched() -> None:
    brackets = Brackets(sql_tokens("f(a, (b), SELECT) (", 0, "9.7.4"))
    assert (brackets.closing(1), brackets.closing(4), brackets.closing(0)) == (9, 6, 0)
    assert brackets.closing(10) == 11  # nothing closes it
    assert [brackets.opening(at) for at in (0, 1, 2, 5, 6, 9)] == [-1, -1, 1, 4, 4, 1]
    assert brackets.holds(1, "SELECT") and not brackets.holds(4, "SELECT")
    assert of("f(a)").brackets.closing(1) == 3


def test_edits_are_made_in_the_order_of_the_text() -> None:
    edits = [TextEdit(2, 3, b"X"), TextEdit(0, 0, b"<"), TextEdit(0, 1, b"Y"), TextEdit(4, 4, b">")]
    assert edited(b"abcd", edits) == b"<YbXd>"
    assert edited(b"abcd", []) == b"abcd"


def test_edits_inside_of_what_is_cut_do_not_count() -> None:
    assert edited(b"abcd", [TextEdit(1, 3, b""), TextEdit(2, 3, b"X"), TextEdit(3, 3, b"Y")]) == b"aYd"


def changed(text: str) -> tuple[TokenEdits, bytes]:
    return TokenEdits(text.encode(), sql_tokens(text, 0, "9.7.4")), text.encode()


def test_words_are_replaced_and_texts_come_before_and_after_them() -> None:
    edits, raw = changed("a b c")
    assert not edits.is_changed
    edits.put(0, "X")
    edits.before(1, "(")
    edits.after(1, ")")
    assert edits.is_changed and edited(raw, edits.edits) == b"X (b) c"


def test_a_cut_takes_the_blanks_that_are_not_needed() -> None:
    for text, first, stop, made in [
        ("a b c", 1, 2, b"a c"),
        ("a b)", 1, 2, b"a)"),
        ("a b", 1, 2, b"a"),
        ("a(b)c", 1, 4, b"a c"),
        ("a b", 1, 1, b"a b"),
    ]:
        edits, raw = changed(text)
        edits.cut(first, stop)
        assert edited(raw, edits.edits) == made, text
    edits, raw = changed("a b c")
    edits.cut_before(2)
    assert edited(raw, edits.edits) == b"c"
