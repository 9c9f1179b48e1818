"""The first look at a statement, and the kernel's looks at the same texts."""

import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.kernel.codes import S_BEGIN, S_COMMIT, S_OTHER, S_PART, S_ROLLBACK, S_XA_COMMIT, S_XA_ROLLBACK
from protocol.sql.control import Control, ControlStatement, control_of
from protocol.sql.kind import Purpose, StatementKind, kind_of
from protocol.sql.lexer import UnsupportedSyntax
from tests.sql_verdicts.random_sql import RandomStatements
from tests.support.kernel_builds import uncompiled_kernel

NOTES = [
    "", " \n\t", "/* ApplicationName=x */ ", "/**/\n", "-- x\n", "--\n", "# x\n ", "/*!40000 */", "/*!50001 *//*!*/", "/*M!100100 */",
    "\xa0", "/*+ x */", "/* " + "x" * 5000 + " */",
]  # fmt: skip
IN_KERNEL = {
    Control.BEGIN: S_BEGIN, Control.XA_START: S_BEGIN, Control.COMMIT: S_COMMIT, Control.ROLLBACK: S_ROLLBACK,
    Control.ROLLBACK_TO: S_PART, Control.SAVEPOINT: S_PART, Control.XA_END: S_PART, Control.XA_COMMIT: S_XA_COMMIT,
    Control.XA_ROLLBACK: S_XA_ROLLBACK, Control.RELEASE: S_OTHER, Control.XA_PREPARE: S_OTHER,
}  # fmt: skip
"""No server logs the last two as statements."""


@pytest.mark.parametrize("note", NOTES)
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("insert INTO t VALUES (1)", StatementKind(Purpose.ROWS, "INSERT")),
        ("(SELECT 1)", StatementKind(Purpose.ROWS, "SELECT")),
        ("CREATE TABLE t (a INT)", StatementKind(Purpose.DEFINITION, "CREATE", "TABLE")),
        ("ALTER\xa0TABLE t ADD b INT", StatementKind(Purpose.DEFINITION, "ALTER", "TABLE")),
        ("TRUNCATE t", StatementKind(Purpose.DEFINITION, "TRUNCATE")),
        ("RENAME TABLES a TO b", StatementKind(Purpose.DEFINITION, "RENAME", "TABLE")),
        ("CREATE OR REPLACE SCHEMA d", StatementKind(Purpose.DEFINITION, "CREATE", "DATABASE")),
        ("CREATE UNIQUE INDEX i ON t (a)", StatementKind(Purpose.DEFINITION, "CREATE", "INDEX")),
        ("DROP /*!40005 TEMPORARY */ TABLE t", StatementKind(Purpose.DEFINITION, "DROP", "TABLE", True)),
        ("CREATE DEFINER=`a b`@'%' SQL SECURITY INVOKER VIEW v AS SELECT 1", StatementKind(Purpose.DEFINITION, "CREATE", "VIEW")),
        ("CREATE DEFINER = CURRENT_USER() EVENT e DO CALL p", StatementKind(Purpose.DEFINITION, "CREATE", "EVENT")),
        ("DROP USER u", StatementKind(Purpose.ACCOUNTS, "DROP", "USER")),
        ("REVOKE ALL ON *.* FROM u", StatementKind(Purpose.ACCOUNTS, "REVOKE")),
        ("SET /* x */ PASSWORD FOR u = 'x'", StatementKind(Purpose.ACCOUNTS, "SET", "PASSWORD")),
        ("SET DEFAULT ROLE r TO u", StatementKind(Purpose.ACCOUNTS, "SET", "DEFAULT ROLE")),
        ("SET @a = 1", StatementKind(Purpose.OTHER, "SET")),
        ("BEGIN NOT ATOMIC SELECT 1; END", StatementKind(Purpose.OTHER, "BEGIN")),
        ("ANALYZE TABLE t", StatementKind(Purpose.OTHER, "ANALYZE")),
        ("ANALYZE FORMAT=JSON UPDATE t SET a = 1", StatementKind(Purpose.ROWS, "ANALYZE")),
        ("INSERTS", StatementKind(Purpose.OTHER, "INSERTS")),
        (";", StatementKind(Purpose.OTHER)),
    ],
)  # fmt: skip
def test_a_statement_is_known_by_its_first_words(note: str, text: str, kind: StatementKind) -> None:
    assert kind_of((note + text).encode("latin-1")) == kind


@pytest.mark.parametrize(
    ("version", "verb"),
    [("5.6.24-log", "UPDATE"), ("8.4.0", "INSERT"), ("10.11.6-MariaDB", "UPDATE"), ("", "")],
)
def test_an_executable_comment_is_read_as_its_server_reads_it(version: str, verb: str) -> None:
    assert kind_of(b"/*!80000 INSERT INTO t VALUES (1); */ UPDATE t SET a = 1", version).verb == verb


@pytest.mark.parametrize(("version", "verb"), [("5.6.24-log", "UPDATE"), ("10.11.6-MariaDB", "INSERT"), ("", "")])
def test_a_comment_for_mariadb_is_none_for_mysql(version: str, verb: str) -> None:
    assert kind_of(b"/*M! INSERT INTO t VALUES (1); */ UPDATE t SET a = 1", version).verb == verb


@pytest.mark.parametrize(
    "text", [b"/*!40000 ALTER TABLE t DISABLE KEYS */", b"/*!40000 ALTER TABLE t DISABLE KEYS */ -- x"]
)
def test_what_is_the_whole_statement_was_read_by_whatever_server(text: bytes) -> None:
    assert kind_of(text) == StatementKind(Purpose.DEFINITION, "ALTER", "TABLE")


@pytest.mark.parametrize("text", [b"/* no end", b"/*!99999 x", b"/*!1" * 100 + b" CREATE TABLE t (a INT)"])
def test_what_is_not_known_may_define_and_commit(text: bytes) -> None:
    kind = kind_of(text)
    assert kind == StatementKind(Purpose.UNSURE) and kind.may_define and kind.may_commit


@pytest.mark.parametrize("note", NOTES)
@pytest.mark.parametrize(
    ("text", "control", "name"),
    [
        ("BEGIN", Control.BEGIN, b""),
        ("begin work", Control.BEGIN, b""),
        ("START TRANSACTION READ ONLY", Control.BEGIN, b""),
        ("commit ;", Control.COMMIT, b""),
        ("ROLLBACK", Control.ROLLBACK, b""),
        ("ROLLBACK TO `a b` -- x", Control.ROLLBACK_TO, b"a b"),
        ("ROLLBACK -- x\n WORK TO SAVEPOINT s", Control.ROLLBACK_TO, b"s"),
        ('SAVEPOINT "a""b";', Control.SAVEPOINT, b'a"b'),
        ("RELEASE SAVEPOINT S", Control.RELEASE, b"s"),
        ("XA START X'78',X'',1", Control.XA_START, b"X'78',X'',1"),
        ("XA END X'78',X'',1", Control.XA_END, b"X'78',X'',1"),
        ("XA PREPARE X'78',X'',1", Control.XA_PREPARE, b"X'78',X'',1"),
        ("XA COMMIT X'78',X'',1 ONE PHASE", Control.XA_COMMIT, b"X'78',X'',1"),
        ("XA ROLLBACK X'78',X'',1", Control.XA_ROLLBACK, b"X'78',X'',1"),
    ],
)
def test_control_is_seen_after_comments_here_and_in_the_kernel(
    note: str, text: str, control: Control, name: bytes
) -> None:
    raw = (note + text).encode("latin-1")
    assert control_of(raw) == ControlStatement(control, name)
    assert kind_of(raw).purpose is Purpose.CONTROL
    if not text.startswith(("begin work", "START")):
        assert uncompiled_kernel().inference.kind_of_text(raw, 0, len(raw)) == IN_KERNEL[control]


@pytest.mark.parametrize(
    "text", [b"INSERT INTO savepoint VALUES (1)", b"BEGINNING", b"BEGIN NOT ATOMIC x", b"START SLAVE"]
)
def test_another_statement_is_no_control(text: bytes) -> None:
    assert control_of(text) is None and kind_of(text).purpose is not Purpose.CONTROL


@given(st.integers(0, 1 << 30), st.sampled_from(NOTES))
@settings(max_examples=300, deadline=None)
def test_the_kernel_sees_what_the_first_look_sees(seed: int, note: str) -> None:
    text = note.encode("latin-1") + RandomStatements(seed).statement().encode()
    build, kind = uncompiled_kernel(), kind_of(text)
    if kind.purpose is Purpose.UNSURE:
        return
    control = control_of(text)
    if control is None:
        assert build.inference.kind_of_text(text, 0, len(text)) == S_OTHER
    assert build.inference.defines(text, 0, len(text)) >= (kind.may_define and kind.thing != "" and not kind.temporary)
    assert build.digest.changes_rows(text, 0, len(text)) == (kind.purpose is Purpose.ROWS and kind.verb != "ANALYZE")


@pytest.mark.parametrize(
    "text", [b"ROLLBACK TO`a`", b'rollback to"a"', b"ROLLBACK WORK TO SAVEPOINT`A`", b"ROLLBACK TO /* c */ a"]
)
def test_a_quoted_name_of_a_savepoint_needs_no_blank_before_it(text: bytes) -> None:
    assert control_of(text) == ControlStatement(Control.ROLLBACK_TO, b"a")


@pytest.mark.parametrize("gap", [b" ", b"#\n", b"/**/", b"-- \n", b" \xa0"])
def test_megabytes_between_words_hold_no_other_thread(gap: bytes) -> None:
    for verb in (b"CREATE", b"BEGIN", b"SET", b"ROLLBACK", b""):
        text = verb + gap * (6_000_000 // len(gap))
        began = time.thread_time()
        kind_of(text, "5.6.24")
        with suppress(UnsupportedSyntax):
            control_of(text, "5.6.24")
        assert time.thread_time() - began < 0.5
