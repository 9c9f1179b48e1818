"""REPLACE and DELETE as statements, by what definitions told of foreign keys and triggers."""

import pytest

from protocol.sql.tables.source_table import CASCADE, RESTRICT, SET_NULL, ForeignKey
from relay.source_tables.references import References
from relay.view.stops.stop_reason import StopReason, Untranslatable
from tests.support.rule_groups import XID, Item, Other, RuleRun, Statement, settings

NO_CHECKS = 1 << 26
P = "CREATE TABLE p (id INT PRIMARY KEY, v INT) ENGINE=InnoDB"
C = "CREATE TABLE c (id INT, p INT, CONSTRAINT k FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE) ENGINE=InnoDB"
REPLACE = "REPLACE INTO p VALUES (1, 2)"


def run(*definitions: Item, version: str = "5.6.24-log", **changes: object) -> RuleRun:
    """Rules that have seen these definitions, each a group, in a schema that was made in the archive."""
    made = RuleRun(settings(**changes), version)
    for definition in ("CREATE DATABASE d", *definitions):
        made.plan(definition)
    return made


def stopped(rules: RuleRun, *items: Item) -> StopReason | None:
    state = rules.rules.state()
    try:
        rules.plan("BEGIN", *items, XID)
    except Untranslatable as raised:
        assert rules.rules.state() == state
        assert raised.reason.error == (1452 if raised.reason.name == "upsert_refused" else 0)
        return raised.reason
    return None


def name_of(reason: StopReason | None) -> str:
    return reason.name if reason is not None else ""


@pytest.mark.parametrize(
    "statement",
    [
        REPLACE,
        "replace d.p set id = 1",
        "REPLACE LOW_PRIORITY INTO `p` SELECT 1, 2",
        " /* x */ REPLACE p VALUES (1, REPLACE('a', 'b', 'c'))",
        "/*!40000 REPLACE */ INTO p VALUES (1, 2)",
        "/*!40000REPLACE*/ INTO p VALUES (1, 2)",
        f"-- an application\n/* {'it says much ' * 1000} */ REPLACE INTO p VALUES (1, 2)",
        "LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE p (id)",
    ],
)
def test_a_replace_of_rows_that_others_refer_to_stops_the_view(statement: str) -> None:
    reason = stopped(run(P, C), statement)
    assert reason is not None
    assert reason.name == "replace_in_parent_table"
    assert "d.c refers to rows of d.p" in reason.text
    assert 'foreign_keys = "innodb"' in reason.advice
    assert stopped(run(P, C, foreign_keys="innodb"), statement) is None


@pytest.mark.parametrize(
    "statement",
    [
        "REPLACE INTO c VALUES (1, 2)",
        "INSERT INTO p VALUES (1, 2) ON DUPLICATE KEY UPDATE v = REPLACE('a', 'b', 'c')",
        "UPDATE p SET id = 5",
        "DELETE FROM p",
        "DELETE IGNORE FROM p",
        "LOAD DATA INFILE 'REPLACE' INTO TABLE p",
        "LOAD DATA INFILE 'x' IGNORE INTO TABLE p (id) SET v = REPLACE(id, 1, 2)",
    ],
)
def test_other_statements_go_on(statement: str) -> None:
    assert stopped(run(P, C), statement) is None


@pytest.mark.parametrize(
    "more",
    [
        ("ALTER TABLE c DROP FOREIGN KEY k",),
        ("ALTER TABLE c ADD COLUMN v INT, DROP FOREIGN KEY `K`, ADD INDEX (v)",),
        ("DROP TABLE c",),
        ("ALTER TABLE c ENGINE=MyISAM",),
        ("ALTER TABLE c ENGINE=BLACKHOLE",),
        (
            "ALTER TABLE c DROP FOREIGN KEY k, ADD FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE",
            "ALTER TABLE c DROP FOREIGN KEY c_ibfk_1, ADD FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE",
            "ALTER TABLE c DROP FOREIGN KEY C_IBFK_2",
        ),
        ("RENAME TABLE p TO q", P),
        ("CREATE DATABASE e", "RENAME TABLE c TO e.c", "DROP DATABASE e"),
    ],
)
def test_a_foreign_key_that_is_gone_does_not_count(more: tuple[str, ...]) -> None:
    assert stopped(run(P, C, *more), REPLACE) is None


@pytest.mark.parametrize(
    "made",
    [
        (P, "CREATE TABLE c (p INT, FOREIGN KEY i (p) REFERENCES d.p(id) ON UPDATE CASCADE ON DELETE SET NULL)"),
        (P, "CREATE TABLE c (p INT)", "ALTER TABLE c ADD CONSTRAINT FOREIGN KEY (p) REFERENCES P (id) ON DELETE CASCADE"),
        (P, "CREATE TABLE c (p INT)", "ALTER TABLE c ADD (q INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)"),
        (P, C, "RENAME TABLE c TO e"),
        (P, C, "ALTER TABLE c RENAME TO e, ADD KEY (p)"),
        (P, C, "CREATE TABLE x LIKE c", "DROP TABLE x"),
        (C, P),
        (P, C, "DROP TABLE p", P),
        (P.replace("TABLE p", "TABLE q"), C.replace("REFERENCES p", "REFERENCES q"), "RENAME TABLE q TO p"),
        (P, C, "ALTER TABLE c ADD FOREIGN KEY (id) REFERENCES p (id)", "ALTER TABLE c DROP FOREIGN KEY c_ibfk_1"),
    ],
)  # fmt: skip
def test_foreign_keys_are_known_however_they_came(made: tuple[str, ...]) -> None:
    assert name_of(stopped(run(*made), REPLACE)) == "replace_in_parent_table"


@pytest.mark.parametrize(
    "made",
    [
        (P, C.replace("ON DELETE CASCADE", "")),
        (P, C.replace("ON DELETE CASCADE", "ON DELETE RESTRICT ON UPDATE CASCADE")),
        (P, C.replace("ON DELETE CASCADE", "ON DELETE NO ACTION")),
        (P, C.replace("ON DELETE", "MATCH FULL ON UPDATE CASCADE ON DELETE")),
        (
            P,
            "CREATE TABLE c (p INT)",
            "ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p (id) MATCH FULL ON DELETE CASCADE",
        ),
        (P, C.replace("InnoDB", "MyISAM")),
        (P, "CREATE TABLE c (p INT REFERENCES p (id) ON DELETE CASCADE)"),
        (P, C.replace("TABLE c", "TABLE x"), "DROP TABLE x", "CREATE TABLE c LIKE p"),
    ],
)
def test_what_changes_no_other_rows_is_no_reason(made: tuple[str, ...]) -> None:
    assert stopped(run(*made), REPLACE) is None


def test_keys_without_a_name_are_dropped_by_the_one_that_the_server_gave() -> None:
    two = (
        "CREATE TABLE c (a INT, FOREIGN KEY (a) REFERENCES q (id), FOREIGN KEY (a) REFERENCES p (id) ON DELETE CASCADE)"
    )
    assert (
        name_of(stopped(run(P, two, "ALTER TABLE c DROP FOREIGN KEY c_ibfk_1"), REPLACE)) == "replace_in_parent_table"
    )
    assert stopped(run(P, two, "ALTER TABLE c DROP FOREIGN KEY c_ibfk_2"), REPLACE) is None
    assert stopped(run(P, two, "RENAME TABLE c TO e", "ALTER TABLE e DROP FOREIGN KEY e_ibfk_2"), REPLACE) is None


def test_a_parent_without_a_schema_is_in_that_of_its_child() -> None:
    made = ("CREATE DATABASE e", P.replace("TABLE p", "TABLE e.p"), P, C.replace("TABLE c", "TABLE e.c"))
    assert stopped(run(*made), REPLACE) is None
    assert name_of(stopped(run(*made), "REPLACE INTO e.p VALUES (1, 2)")) == "replace_in_parent_table"


def test_without_foreign_key_checks_nothing_is_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = run(P, C)
    monkeypatch.setattr("tests.support.rule_groups.STATUS", flags(NO_CHECKS))
    assert stopped(rules, REPLACE) is None


def flags(value: int) -> bytes:
    from tests.support.rule_groups import STATUS

    return STATUS[:1] + value.to_bytes(4, "little") + STATUS[5:]


# ---- tables from before the archive --------------------------------------------------------------------------------------


def test_of_a_table_that_is_older_than_the_archive_nobody_knows() -> None:
    reason = stopped(RuleRun(), REPLACE)
    assert reason is not None
    assert reason.name == "replace_in_parent_table"
    assert "created before the archive" in reason.text
    assert "plain_tables" in reason.advice
    for told in ("d.p", "*"):
        assert stopped(RuleRun(settings(plain_tables=(told,))), REPLACE) is None
    assert name_of(stopped(RuleRun(settings(plain_tables=("d.q",))), REPLACE)) == "replace_in_parent_table"
    assert stopped(RuleRun(settings(foreign_keys="innodb")), REPLACE) is None
    assert stopped(RuleRun(), "DELETE FROM p") is None


def test_a_table_that_was_made_again_without_checks_may_have_been_referred_to_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules = RuleRun()
    rules.plan(P)
    assert stopped(rules, REPLACE) is None
    with monkeypatch.context() as patched:
        patched.setattr("tests.support.rule_groups.STATUS", flags(NO_CHECKS))
        rules.plan("DROP TABLE p")
        rules.plan(P)
    assert name_of(stopped(rules, REPLACE)) == "replace_in_parent_table"


def test_a_definition_that_nobody_understands_may_refer_to_any_table() -> None:
    rules = run(P)
    (group,) = rules.groups("ALTER TABLE c ADD FOREIGN KEY (a) REFERENCES")
    rules.rules.skipped(group)
    assert name_of(stopped(rules, REPLACE)) == "replace_in_parent_table"


def test_temporary_tables_and_such_without_transactions_are_never_referred_to() -> None:
    assert stopped(RuleRun(settings(known_engines={"d.p": "MyISAM"})), REPLACE) is None
    rules = RuleRun()
    rules.plan("CREATE TEMPORARY TABLE p (a INT)")
    assert stopped(rules, REPLACE) is None
    assert name_of(stopped(rules, Statement(REPLACE, thread=9))) == "replace_in_parent_table"


# ---- DELETE ----------------------------------------------------------------------------------------------------------


def refers(name: str, *parents: str) -> str:
    """CREATE TABLE with foreign keys that cascade."""
    keys = [
        f", FOREIGN KEY (f{number}) REFERENCES {parent} (id) ON DELETE CASCADE" for number, parent in enumerate(parents)
    ]
    columns = [f", f{number} INT" for number in range(len(parents))]
    return f"CREATE TABLE {name} (id INT PRIMARY KEY{''.join(columns)}{''.join(keys)})"


def test_a_cascade_that_new_servers_do_not_finish_stops_the_view() -> None:
    rules = run(P, refers("m", "p"), refers("x", "m"), refers("y", "x"))
    reason = stopped(rules, "DELETE FROM p WHERE v = 5")
    assert reason is not None
    assert reason.name == "incomplete_cascade"
    assert "reaches d.x more than once" in reason.text
    assert stopped(rules, "DELETE FROM m") is None
    assert (
        stopped(run(P, refers("m", "p"), refers("x", "m"), refers("y", "x"), foreign_keys="innodb"), "DELETE FROM p")
        is None
    )


def key(parent: str, on_delete: str = CASCADE) -> ForeignKey:
    return ForeignKey((), "d", parent, (), on_delete)


@pytest.mark.parametrize(
    ("keys", "behind"),
    [
        # as tried on 9.7.4, statement by statement
        ({"c": [key("p")]}, []),
        ({"c": [key("p")], "g": [key("c")]}, []),
        ({"c": [key("p")], "g": [key("c")], "h": [key("g")]}, ["g"]),
        ({"c": [key("p")], "g": [key("c")], "h": [key("g", SET_NULL)]}, ["g"]),
        ({"c": [key("p")], "g": [key("c")], "h": [key("g", RESTRICT)]}, []),
        ({"c": [key("p")], "g": [key("c", SET_NULL)], "h": [key("g")]}, []),
        ({"m": [key("p")], "x": [key("p"), key("m")]}, []),
        ({"m": [key("p")], "x": [key("p"), key("m")], "y": [key("x")]}, ["x"]),
        ({"x": [key("p"), key("p")], "y": [key("x")]}, ["x"]),
        ({"x": [key("p"), key("p", SET_NULL)], "y": [key("x")]}, ["x"]),
        ({"x": [key("p"), key("x")]}, []),
        ({"m": [key("p")], "x": [key("m"), key("x")]}, []),
        ({"p": [key("p")], "x": [key("p")], "y": [key("x")]}, ["x"]),
        ({"p": [key("p")], "x": [key("p")]}, []),
        ({"p": [key("p")]}, []),
        ({"p": [key("b")], "b": [key("p")]}, ["b", "p"]),
    ],
)
def test_where_a_cascade_ends_early(keys: dict[str, list[ForeignKey]], behind: list[str]) -> None:
    references = References({("d", child): some for child, some in keys.items()})
    found = [name for _, name in references.left_unfinished(("D", "P"))]
    assert ([name for name in found if name in behind] != []) == (behind != [])
    assert set(found) <= set(behind)
    assert ("d", "p") in references.deep_parents or not behind


TRIGGER = "CREATE TRIGGER tr AFTER DELETE ON {} FOR EACH ROW INSERT INTO log VALUES (1)"
SEVERAL = "DELETE p, c FROM p JOIN c ON c.p = p.id"


@pytest.mark.parametrize(
    ("definitions", "stops"),
    [
        ((P, "CREATE TABLE c (p INT)"), False),
        ((P, "CREATE TABLE c (p INT)", TRIGGER.format("c")), True),
        ((P, "CREATE TABLE c (p INT)", TRIGGER.format("p")), True),
        ((P, "CREATE TABLE c (p INT)", TRIGGER.format("p"), "DROP TRIGGER tr"), False),
        ((P, "CREATE TABLE c (p INT)", TRIGGER.format("p").replace("DELETE", "UPDATE")), False),
        ((P, "CREATE TABLE c (p INT)", TRIGGER.format("other")), False),
        ((P, C), True),
        ((P, C.replace("ON DELETE CASCADE", "")), False),
        ((P, refers("m", "p"), "CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES m (id) ON DELETE SET NULL)"), True),
        ((P,), True),
    ],
)
def test_one_delete_of_several_tables_stops_where_their_order_counts(definitions: tuple[str, ...], stops: bool) -> None:
    assert name_of(stopped(run(*definitions), SEVERAL)) == ("multi_table_delete" if stops else "")
    assert stopped(run(*definitions), "DELETE p FROM p JOIN c ON c.p = p.id") is None


def test_tables_that_are_told_to_be_plain_are_deleted_together() -> None:
    assert name_of(stopped(RuleRun(), SEVERAL)) == "multi_table_delete"
    assert stopped(RuleRun(settings(plain_tables=("d.p", "d.c"))), SEVERAL) is None
    assert stopped(RuleRun(settings(plain_tables=("*",))), SEVERAL) is None


@pytest.mark.parametrize("told", [{}, {"known_engines": {"d.p": "InnoDB", "d.c": "InnoDB"}}])
def test_a_trigger_that_is_known_is_not_the_only_one_of_an_older_table(told: dict[str, object]) -> None:
    rules = RuleRun(settings(**told))
    for table in ("p", "c"):
        rules.plan(TRIGGER.format(table).replace("tr AFTER DELETE", f"{table}1 AFTER UPDATE"))
    assert name_of(stopped(rules, SEVERAL)) == "multi_table_delete"


def test_a_trigger_that_nobody_understands_may_be_one_of_delete() -> None:
    rules = run(P, "CREATE TABLE c (p INT)")
    assert stopped(rules, SEVERAL) is None
    (group,) = rules.groups(f"{TRIGGER.format('c')} /*!500 x */")
    rules.rules.skipped(group)
    assert name_of(stopped(rules, SEVERAL)) == "multi_table_delete"


DEEP = (P, refers("m", "p"), refers("x", "m"), refers("y", "x"))


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE p FROM p JOIN (SELECT 1 AS id UNION SELECT (2)) few ON few.id = p.id",
        "DELETE FROM a USING p AS a, (SELECT id FROM q) AS few (id) WHERE few.id = a.id",
        "DELETE p FROM (q JOIN p ON q.id = p.id)",
        "DELETE FROM older",
        "DELETE FROM newer WHERE id = 3",
        "DELETE z FROM p JOIN q ON p.id = q.id",
    ],
)
def test_however_a_delete_names_its_table(statement: str) -> None:
    views = (
        "CREATE VIEW older AS SELECT id FROM p",
        "CREATE OR REPLACE SQL SECURITY INVOKER VIEW newer AS SELECT * FROM older",
    )
    assert name_of(stopped(run(*DEEP, *views), statement)) == "incomplete_cascade"
    assert stopped(run(P, refers("m", "p"), *views), "DELETE FROM older") is None


def test_with_in_front_of_a_delete_hides_nothing() -> None:
    statement = "WITH RECURSIVE few (id) AS (SELECT 1), q AS (SELECT 2) DELETE FROM p WHERE id IN (SELECT id FROM few)"
    assert name_of(stopped(run(*DEEP, version="8.0.36"), statement)) == "incomplete_cascade"
    several = "WITH few AS (SELECT 1) DELETE p, m FROM p JOIN m"
    assert name_of(stopped(run(*DEEP, version="8.0.36"), several)) == "multi_table_delete"


def test_a_replace_behind_a_view_is_one_of_its_table() -> None:
    view = "CREATE VIEW w AS SELECT * FROM {}"
    replace = "REPLACE INTO w VALUES (1, 2)"
    assert name_of(stopped(run(P, C, view.format("p")), replace)) == "replace_in_parent_table"
    assert stopped(run(P, C, view.format("c")), replace) is None


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("REPLACE INTO `\u8868` VALUES (1)", "replace_in_parent_table"),
        ("DELETE FROM `\u8868` WHERE id = 1", "incomplete_cascade"),
        ("LOAD DATA INFILE 'x' REPLACE INTO TABLE `\u8868`", "replace_in_parent_table"),
    ],
)
def test_a_name_that_cannot_be_read_may_be_that_of_any_table(statement: str, name: str) -> None:
    gbk = Statement(statement.encode("gbk"), client=28)
    reason = stopped(run(*DEEP), gbk)
    assert name_of(reason) == name
    assert reason is not None
    assert "is unknown" in reason.text
    assert stopped(run(P, C, foreign_keys="innodb", version="9.6.0"), gbk) is None
    assert stopped(run(P), gbk) is None


# ---- where ---------------------------------------------------------------------------------------------------------------


def test_a_source_that_is_as_the_target_needs_no_rule() -> None:
    assert stopped(run(P, C, version="9.7.4"), REPLACE) is None
    assert name_of(stopped(run(P, C, version="8.0.36"), REPLACE)) == "replace_in_parent_table"
    assert stopped(run(P, C, target="mysql-8.4"), REPLACE) is None
    assert not run(P, C, target="mysql-5.6").rules.wants_removals


def test_what_is_part_of_a_transaction_of_any_kind_is_seen() -> None:
    insert = "INSERT INTO p VALUES (1, 2)"
    for group in (
        (REPLACE,),
        ("BEGIN", insert, REPLACE, "COMMIT"),
        (Other(33, bytes(25)), "BEGIN", REPLACE, XID),
        ("BEGIN", insert, "SAVEPOINT s", insert, REPLACE, XID),
    ):
        with pytest.raises(Untranslatable) as raised:
            run(P, C).plan(*group)
        assert raised.value.reason.name == "replace_in_parent_table"
        with pytest.raises(Untranslatable):
            run(P, C, gtids="keep").plan(*group)


def test_what_is_known_of_foreign_keys_survives() -> None:
    state = run(P, C).rules.state()
    again = RuleRun()
    again.rules.restore(state)
    assert again.rules.state() == state
    assert name_of(stopped(again, REPLACE)) == "replace_in_parent_table"
    again.plan("ALTER TABLE c DROP FOREIGN KEY k")
    assert stopped(again, REPLACE) is None


# ---- changes with IGNORE, and rows that are updated in place of an insert -----------------------------------------------

U = "CREATE TABLE c (id INT PRIMARY KEY, p INT, n INT, CONSTRAINT k FOREIGN KEY (p) REFERENCES p (id) ON UPDATE CASCADE) ENGINE=InnoDB"
G = "CREATE TABLE g (id INT, c INT, FOREIGN KEY (c) REFERENCES c (id) ON UPDATE SET NULL) ENGINE=InnoDB"
UPSERT = "INSERT INTO c VALUES (1, 9, 0) ON DUPLICATE KEY UPDATE n = 1"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE IGNORE p SET id = 2",
        "UPDATE LOW_PRIORITY IGNORE d.p AS x SET x.v = 1, x.id = 2 WHERE x.v = 3",
        "UPDATE IGNORE p JOIN c ON c.p = p.id SET p.id = 2",
        "INSERT IGNORE INTO p (v) VALUES (1) ON DUPLICATE KEY UPDATE v = 1, id = 2",
    ],
)
@pytest.mark.parametrize("version", ["5.6.24-log", "8.0.36"])
def test_a_change_with_ignore_of_a_key_that_others_follow_stops_the_view(statement: str, version: str) -> None:
    reason = stopped(run(P, U, version=version), statement)
    assert reason is not None
    assert reason.name == "ignored_update"
    assert "d.c refers to rows of d.p" in reason.text
    assert stopped(run(P, U, version=version, foreign_keys="innodb"), statement) is None
    assert stopped(run(P, C, version=version), statement) is None


@pytest.mark.parametrize(
    "statement", ["UPDATE IGNORE p SET v = 2 WHERE id = 1", "UPDATE p SET id = 2", "UPDATE IGNORE c SET n = 2"]
)
def test_other_changes_pass(statement: str) -> None:
    assert stopped(run(P, U), statement) is None


def test_a_column_with_another_name_since_may_be_any() -> None:
    rules = run(P, U, "ALTER TABLE p CHANGE id number INT")
    assert name_of(stopped(rules, "UPDATE IGNORE p SET v = 2")) == "ignored_update"


def test_a_change_with_ignore_in_a_trigger_stops_the_view() -> None:
    trigger = "CREATE TRIGGER r AFTER INSERT ON q FOR EACH ROW UPDATE IGNORE p SET id = NEW.id"
    reason = stopped(run(P, U, "CREATE TABLE q (id INT)", trigger), "INSERT INTO q VALUES (1)")
    assert name_of(reason) == "ignored_update"
    assert reason is not None
    assert "in the trigger d.r" in reason.text


def runs_as_logged(rules: RuleRun, statement: Item) -> bool:
    ((_begin, written, _end),) = rules.plan("BEGIN", statement, XID)
    return not written.startswith("+")


def test_an_update_in_place_of_an_insert_runs_without_checks_where_the_table_has_foreign_keys() -> None:
    assert not runs_as_logged(run(P, U), UPSERT)
    assert not runs_as_logged(run(P, U, version="8.0.36"), UPSERT)
    assert runs_as_logged(run(P, U), UPSERT.replace(" c ", " p ").replace("n = 1", "v = 1").replace(", 0)", ")"))
    assert runs_as_logged(run(P, U, version="9.7.4"), UPSERT)
    assert runs_as_logged(run(P, U, target="mysql-8.4", version="8.0.36"), UPSERT)
    assert runs_as_logged(run(P, U), Statement(UPSERT, options=NO_CHECKS))


def test_an_update_in_place_of_an_insert_stops_the_view_where_others_change_with_it() -> None:
    rules = run(P, U, G)
    assert not runs_as_logged(rules, UPSERT)
    with pytest.raises(Untranslatable) as raised:
        rules.plan("BEGIN", "INSERT INTO c VALUES (1, 9, 0) ON DUPLICATE KEY UPDATE id = 2", XID)
    assert (raised.value.reason.name, raised.value.reason.error) == ("upsert_refused", 1452)
    assert "rows of d.g with those of d.c" in raised.value.reason.text


def test_a_trigger_that_removes_rows_to_which_others_refer_keeps_the_checks() -> None:
    tables = (P, C, "CREATE TABLE q (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES p (id))")
    upsert = "INSERT INTO q VALUES (1, 9) ON DUPLICATE KEY UPDATE c = 1"
    logs = "CREATE TRIGGER r AFTER UPDATE ON q FOR EACH ROW INSERT INTO other VALUES (NEW.id)"
    assert not runs_as_logged(run(*tables, "CREATE TABLE other (id INT)", logs), upsert)
    removes = "CREATE TRIGGER r AFTER UPDATE ON q FOR EACH ROW DELETE FROM p WHERE id = OLD.c"
    with pytest.raises(Untranslatable) as raised:
        run(*tables, removes).plan("BEGIN", upsert, XID)
    assert raised.value.reason.name == "upsert_refused"


def test_ignored_rows_that_refer_to_none_stop_the_view() -> None:
    reason = stopped(run(P, U), UPSERT.replace("INSERT", "INSERT IGNORE"))
    assert name_of(reason) == "upsert_ignored"


@pytest.mark.parametrize(
    ("definitions", "statement", "name"),
    [
        (
            (P, U, "CREATE TRIGGER r BEFORE UPDATE ON p FOR EACH ROW SET NEW.id = NEW.v"),
            "UPDATE IGNORE p SET v = 3",
            "ignored_update",
        ),
        ((P, U, "CREATE VIEW w AS SELECT id AS number, v FROM p"), "UPDATE IGNORE w SET number = 3", "ignored_update"),
        (
            (P, U, "CREATE TRIGGER r AFTER UPDATE ON c FOR EACH ROW INSERT IGNORE INTO c (id, p) VALUES (7, NEW.n)"),
            UPSERT,
            "upsert_refused",
        ),
        (
            (
                P,
                U,
                "CREATE TRIGGER r AFTER UPDATE ON c FOR EACH ROW BEGIN DECLARE CONTINUE HANDLER FOR 1452 BEGIN END; "
                "INSERT INTO c (id, p) VALUES (7, NEW.n); END",
            ),
            UPSERT,
            "upsert_refused",
        ),
        (
            (P, U, G, "CREATE TRIGGER r BEFORE UPDATE ON c FOR EACH ROW SET NEW.id = NEW.n"),
            UPSERT,
            "upsert_refused",
        ),
    ],
)
def test_what_is_done_by_another_way_is_seen(definitions: tuple[str, ...], statement: str, name: str) -> None:
    assert name_of(stopped(run(*definitions), statement)) == name


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO c VALUES (1, 9, 0) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), n = 1",
        "INSERT INTO c VALUES (1, 9, 0) ON DUPLICATE KEY UPDATE id = id",
        "INSERT INTO c VALUES (1, 9, 0) ON DUPLICATE KEY UPDATE id = c.id, n = 1",
    ],
)
def test_a_column_that_gets_its_own_value_does_not_change(statement: str) -> None:
    assert not runs_as_logged(run(P, U, G), statement)


def test_what_would_change_with_a_table_from_before_the_archive_is_not_known() -> None:
    added = "ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p (id)"
    rules = RuleRun(settings())
    rules.plan(added)
    assert (
        name_of(stopped(rules, "INSERT INTO c (id, p) VALUES (1, 2) ON DUPLICATE KEY UPDATE u = 5")) == "upsert_refused"
    )
    assert name_of(stopped(RuleRun(settings()), "UPDATE IGNORE p SET id = 3")) == "ignored_update"
    plain = RuleRun(settings(plain_tables=("*",)))
    assert stopped(plain, "UPDATE IGNORE p SET id = 3") is None
    ignoring = "INSERT IGNORE INTO c VALUES (1, 2) ON DUPLICATE KEY UPDATE u = 5"
    assert name_of(stopped(plain, ignoring)) == "upsert_ignored"


def test_a_statement_is_written_alike_whoever_executes_foreign_keys_at_the_replicas() -> None:
    plans = [run(P, U, foreign_keys=who).plan("BEGIN", UPSERT, XID) for who in ("server", "innodb")]
    assert plans[0] == plans[1]
    assert run(P, U, G, foreign_keys="innodb").plan("BEGIN", UPSERT.replace("n = 1", "id = 2"), XID)


def test_a_body_that_cannot_be_read_stops_no_view_of_a_source_without_a_survey() -> None:
    trigger = "CREATE TRIGGER r AFTER INSERT ON q FOR EACH ROW SET @a = (SELECT SUM(x) OVER w FROM p WINDOW w AS (ORDER BY x))"
    assert stopped(run(P, U, "CREATE TABLE q (id INT)", trigger, version="8.0.36"), "INSERT INTO q VALUES (1)") is None


def test_an_update_with_ignore_that_cannot_be_read_stops_the_view() -> None:
    statement = "UPDATE IGNORE p JOIN JSON_TABLE('[]', '$[*]' COLUMNS (a INT PATH '$')) x SET p.id = x.a"
    assert name_of(stopped(run(P, U, version="8.0.36"), statement)) == "ignored_update"
