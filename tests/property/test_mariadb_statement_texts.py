"""Texts of statements put together by chance: what needs nothing comes back as it is, what is translated needs nothing more."""

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from relay.view.rules.mariadb.statement_translation import translate_statement
from relay.view.stops.stop_reason import Untranslatable
from tests.support.mariadb_statements import MARIADB_10, MARIADB_11, context_of, told

Texts = st.SearchStrategy[str]
NAMES = st.sampled_from(("a", "b", "`c d`", "rank", "`row`", "system", "t1", "ünü", "window"))
PLAIN_NAMES = st.sampled_from(("a", "b", "`c d`", "`row`", "t1", "ünü"))
PLAIN_TYPES = st.sampled_from(
    ("INT", "int(11) unsigned", "VARCHAR(20)", "DECIMAL(10,2)", "timestamp(6)", "ENUM('x','y''z')", "TEXT", "BIT(3)")
)  # fmt: skip
TYPES = PLAIN_TYPES | st.sampled_from(
    ("UUID", "INET6", "INET4", "JSON", "VARCHAR(20) COMPRESSED", "TEXT", "CHAR(3) CHARACTER SET utf8mb3", "NCHAR(3)", "VECTOR(3)")
)  # fmt: skip
PLAIN_ENDS = st.sampled_from(("", " NOT NULL", " DEFAULT NULL", " COMMENT 'a, b) /*M! c */'", " INVISIBLE"))
ENDS = PLAIN_ENDS | st.sampled_from(
    (" DEFAULT uuid()", " DEFAULT length('x')", " AS (1) PERSISTENT", " /*M!100301 INVISIBLE */")
)
PLAIN_OPTIONS = st.sampled_from(
    ("", " ENGINE=InnoDB", " COMMENT='x' AUTO_INCREMENT=7", " DEFAULT CHARSET=latin1", " ROW_FORMAT=DYNAMIC")
)
OPTIONS = PLAIN_OPTIONS | st.sampled_from(
    (" ENGINE=Aria PAGE_CHECKSUM=1", " PAGE_COMPRESSED=1", " COLLATE=utf8mb4_uca1400_ai_ci", " WITH SYSTEM VERSIONING")
)  # fmt: skip
SPACES = st.sampled_from((" ", "  ", "\n", " /* x */ ", "\t"))


@st.composite
def creates(draw: st.DrawFn, names: Texts, types: Texts, ends: Texts, options: Texts) -> str:
    columns = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    space = draw(SPACES)
    elements = [f"{name}{space}{draw(types)}{draw(ends)}" for name in columns]
    if draw(st.booleans()):
        elements.append(f"{draw(st.sampled_from(('KEY', 'UNIQUE KEY', 'PRIMARY KEY')))} ({columns[0]})")
    return f"CREATE{space}TABLE{space}{draw(names)} ({f',{space}'.join(elements)}){draw(options)}"


@given(creates(PLAIN_NAMES, PLAIN_TYPES.filter(lambda kind: "TEXT" not in kind), PLAIN_ENDS, PLAIN_OPTIONS))
def test_a_definition_that_both_servers_read_comes_back_byte_for_byte(text: str) -> None:
    for version in (MARIADB_10, MARIADB_11):
        assert translate_statement(text.encode(), context_of(version), told()).texts == (text.encode(),)


@given(creates(NAMES, TYPES, ENDS, OPTIONS), st.sampled_from((MARIADB_10, MARIADB_11)))
def test_what_was_translated_needs_nothing_more(text: str, version: str) -> None:
    with contextlib.suppress(Untranslatable):
        for one in translate_statement(text.encode(), context_of(version), told()).texts:
            assert translate_statement(one, context_of(version), told()).texts == (one,)


@given(st.binary(max_size=60) | st.text(alphabet="CREATE TABLE t(a INT,`'\"/*!M-#\n\\;) ", max_size=80).map(str.encode))
def test_any_text_is_translated_or_stops_by_name(text: bytes) -> None:
    with contextlib.suppress(Untranslatable):
        assert translate_statement(text, context_of(), told()).texts is not None


@given(creates(NAMES, TYPES, ENDS, OPTIONS), st.integers(0, 200), st.sampled_from("'`\"();,/*! "))
def test_a_damaged_definition_is_translated_or_stops_by_name(text: str, at: int, damage: str) -> None:
    with contextlib.suppress(Untranslatable):
        translate_statement((text[:at] + damage + text[at:]).encode(), context_of(), told())
