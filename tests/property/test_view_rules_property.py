"""Any transaction over two engines ends, by the rules of a view, with the tables that the source has; and texts survive."""

import re
from collections.abc import Iterable

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from protocol.sql.lexer import sql_tokens
from relay.view.rules.definition_rules import define
from relay.view.rules.statement.logged_query import LoggedQuery, read_logged_query
from relay.view.stops.stop_reason import Untranslatable
from tests.support import rule_groups
from tests.support.event_stream import query_body
from tests.support.rule_groups import STATUS, XID, Item, RuleRun, Statement

TABLES = {"i": True, "j": True, "m": False, "n": False}
"""Whether they have transactions."""
Model = dict[str, list[str]]


# ---- what stays of a transaction ---------------------------------------------------------------------------------------

_inserts = st.sampled_from(sorted(TABLES)).map(lambda name: f"INSERT INTO {name} VALUES (1)")
_selects = st.tuples(st.sampled_from(sorted(TABLES)), st.sampled_from(sorted(TABLES))).map(
    lambda names: f"INSERT INTO {names[0]} SELECT * FROM {names[1]}"
)
_deletes = st.sampled_from(sorted(TABLES)).map(lambda name: f"DELETE FROM {name}")
_savepoints = st.sampled_from(["a", "b"]).map(lambda name: f"SAVEPOINT {name}")
_back = st.sampled_from(["a", "b"]).map(lambda name: f"ROLLBACK TO {name}")
_statements = st.lists(st.one_of(_inserts, _inserts, _selects, _deletes, _savepoints, _back), min_size=1, max_size=9)
_ends = st.sampled_from(["COMMIT", "ROLLBACK", "XID"])


def numbered(statements: Iterable[str]) -> list[str]:
    """Each VALUES with a value of its own, so that it shows what was done."""
    return [text.replace("(1)", f"({number})") for number, text in enumerate(statements)]


def run(tables: Model, text: str) -> None:
    """What a statement does."""
    words = re.findall(r"\w+", text)
    if words[0] == "DELETE":
        tables[words[2]].clear()
    elif words[3] == "VALUES":
        tables[words[2]].append(words[4])
    else:
        tables[words[2]] += [f"{words[-1]}:{row}" for row in tables[words[-1]]]


def source(statements: list[str], end: str) -> tuple[Model, bool]:
    """The tables of a server with both engines behind the transaction; whether it is one that a server can have written."""
    tables: Model = {name: [] for name in TABLES}
    saved: dict[str, Model] = {"": {name: [] for name in TABLES}}
    for text in statements:
        word, _, name = text.rpartition(" ")
        if word == "SAVEPOINT":
            saved.pop(name, None)
            saved[name] = {name: list(rows) for name, rows in tables.items()}
        elif word == "ROLLBACK TO":
            if name not in saved:
                return tables, False
            tables |= {table: list(rows) for table, rows in saved[name].items() if TABLES[table]}
            names = list(saved)
            saved = {one: saved[one] for one in names[: names.index(name) + 1]}
        else:
            run(tables, text)
    if end == "ROLLBACK":
        tables |= {table: [] for table, with_transactions in TABLES.items() if with_transactions}
    return tables, True


def replica(groups: list[list[str]], *, may_mix: bool) -> Model:
    """The tables of a new server that has applied these, each with a GTID."""
    tables: Model = {name: [] for name in TABLES}
    for group in groups:
        texts = [text for text in group if text.startswith(("INSERT", "DELETE"))]
        assert "ROLLBACK" not in group
        if not may_mix:
            plain = [text for text in texts if not TABLES[re.findall(r"\w+", text)[2]]]
            assert not plain or len(texts) == 1, "1785"
        for text in texts:
            run(tables, text)
    return tables


def rules(engines: str) -> RuleRun:
    """Rules that know the tables."""
    made = RuleRun(rule_groups.settings(engines=engines))
    made.plan("CREATE DATABASE d")
    for name, with_transactions in TABLES.items():
        made.plan(f"CREATE TABLE {name} (v VARCHAR(500)) ENGINE={'InnoDB' if with_transactions else 'MyISAM'}")
    return made


_RULES = {engines: rules(engines) for engines in ("keep", "innodb")}


@given(_statements, _ends, st.sampled_from(["keep", "innodb"]))
@settings(max_examples=400, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
def test_a_replica_ends_with_the_tables_of_the_source(statements: list[str], end: str, engines: str) -> None:
    statements = numbered(statements)
    wanted, possible = source(statements, end)
    assume(possible)
    last: Item = XID if end == "XID" else end
    try:
        groups = _RULES[engines].plan("BEGIN", *statements, last)
    except Untranslatable as error:
        assert error.reason.name == "uncertain_rollback"
        assert end == "ROLLBACK" or any(text.startswith("ROLLBACK TO") for text in statements)
        return
    assert groups
    assert replica(groups, may_mix=engines == "innodb") == wanted


@given(_statements, st.sampled_from(["keep", "innodb"]))
@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
def test_rows_that_need_no_reading_are_never_unclear(statements: list[str], engines: str) -> None:
    # Without INSERT … SELECT nothing that stayed can come from what was undone: such a transaction can always be kept.
    statements = numbered(text for text in statements if "SELECT" not in text)
    wanted, possible = source(statements, "ROLLBACK")
    assume(possible and any(re.findall(r"\w+", text)[2:3] in (["m"], ["n"]) for text in statements))
    groups = _RULES[engines].plan("BEGIN", *statements, "ROLLBACK")
    assert replica(groups, may_mix=engines == "innodb") == wanted


# ---- texts ---------------------------------------------------------------------------------------------------------------

_blank = st.sampled_from([" ", "\n", "\t ", " /* ENGINE=MyISAM */ ", " -- TYPE=HEAP\n", " # '\n"])
_name = st.sampled_from(["t", "`engine`", "`ty``pe`", "d.t", "`d` . `t`", "täble"])
_column = st.sampled_from([
    "a INT", "engine INT DEFAULT 5", "type VARCHAR(9) COMMENT 'ENGINE=MyISAM, it''s \\' \"'", "b ENUM('ENGINE=MEMORY', ')') NOT NULL",
    "c DECIMAL(5,2) /*! UNSIGNED */", "KEY k (a) USING HASH", "INDEX type TYPE BTREE (a)", "PRIMARY KEY (a)",
])  # fmt: skip
_engine = st.sampled_from(["MyISAM", "`memory`", "'HEAP'", "csv", "ARCHIVE", "InnoDB", "BLACKHOLE"])
_option = st.sampled_from(
    ["COMMENT='ENGINE=MyISAM'", "MAX_ROWS=5", "DEFAULT CHARSET=utf8", "AUTO_INCREMENT = 7", "CHECKSUM=1"]
)


@given(st.data())
def test_a_definition_keeps_all_of_its_text_but_the_engine(data: st.DataObject) -> None:
    draw = data.draw
    columns = ",".join(draw(st.lists(_column, min_size=1, max_size=4)))
    before, behind = (draw(_blank).join(["", *draw(st.lists(_option, max_size=2)), ""]) for _ in range(2))
    equals = draw(st.sampled_from(["=", " ", " = "]))
    engine = draw(_engine)
    comment = draw(st.booleans())
    head = f"CREATE{draw(_blank)}TABLE{draw(_blank)}{draw(_name)} ({columns}){before} "
    option = f"/*!40100 ENGINE{equals}{engine}*/" if comment else f"ENGINE{equals}{engine}"
    text = f"{head}{option} {behind}"
    made = define(query(text), rule_groups.settings(engines="innodb")).decode()
    changes = engine.strip("`'").lower() not in ("innodb", "blackhole")
    assert made == f"{head}{option.replace(engine, 'InnoDB') if changes else option} {behind}"
    assert define(query(text), rule_groups.settings()) == text.encode()
    assert len(sql_tokens(made, 0, "5.6.24")) == len(sql_tokens(text, 0, "5.6.24"))


@given(
    st.binary(max_size=60),
    st.sampled_from([b"CREATE TABLE t ", b"ALTER TABLE t ", b"INSERT INTO m ", b"UPDATE i, m SET ", b""]),
)
@settings(max_examples=300)
def test_no_text_is_an_error_of_the_rules(noise: bytes, head: bytes) -> None:
    for engines in ("keep", "innodb"):
        for end in ("COMMIT", "ROLLBACK"):
            try:
                groups = _RULES[engines].plan("BEGIN", Statement(head + noise, client=33), end)
            except Untranslatable:
                continue
            except AssertionError:  # the bytes made several groups
                continue
            assert groups


def query(text: str) -> LoggedQuery:
    """The statement as 5.6 logs it, in UTF-8."""
    status = STATUS[:-6] + b"\x21\0\x21\0\x08\0"
    lengths = bytes([0, 0, 13]) + bytes(253)
    return read_logged_query(2, query_body(text.encode(), b"d", status), lengths, "5.6.24-log")
