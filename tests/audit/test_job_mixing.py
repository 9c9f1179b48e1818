"""The audit `mixing`: what WL#2687 is about, from files of MySQL 5.6 and from built ones."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from protocol.sql.tables.source_table import Table
from relay.archive.storage.files import SCHEMA_NAME
from relay.audit.shared.engines import HIGH, LOW, Closed, EngineSpan, engine_spans, of_name, recorded_engines
from relay.audit.shared.statement_tables import changed_table, defined_table, named_engine
from relay.binlog_tables.plan.series_files import SeriesFile
from relay.binlog_tables.plan.store import LocalStore
from relay.schema_history.schema_record import line, table_line
from relay.source_tables.table_facts import table_facts
from tests.audit.job_runs import run
from tests.audit.test_splits import write
from tests.support.binlog_builder import ALONE, CLOSES, INSIDE, BinlogBuilder
from tests.support.event_stream import query_body

RECORDED = Path(__file__).resolve().parents[1] / "corpus" / "recorded"


def test_groups_of_mysql56_that_mix_engines_are_found(spark: Any, tmp_path: Path) -> None:
    path = RECORDED / "mysql56.binlog"
    done = run(spark, "mixing", path, tmp_path)
    listing = path.with_suffix(".listing").read_text()
    engines = {row["table"]: row["transactional"] for row in done.parquet("engines")}
    assert engines["test.trx"] is True
    assert engines["test.nontrx"] is False
    mixed = done.parquet("mixed_groups")
    assert mixed
    assert all({"test.trx", "test.nontrx"} <= set(row["tables"]) for row in mixed)
    assert "closed_by_rollback" in done.names
    assert done.finding("closed_by_rollback").count == listing.count("\tQuery\tROLLBACK\n")


def statement(binlog: BinlogBuilder, text: str, effect: str = INSIDE, error: int = 0) -> BinlogBuilder:
    body = bytearray(query_body(text))
    body[9:11] = error.to_bytes(2, "little")
    return binlog.event(2, bytes(body), effect)


def test_each_kind_of_mixing_is_found_where_it_is(spark: Any, tmp_path: Path) -> None:
    binlog = BinlogBuilder()
    # engines: by a statement, by the ends of groups, and not at all
    statement(binlog, "CREATE TABLE t_inno (a INT) ENGINE=InnoDB", ALONE)
    statement(binlog, "CREATE TABLE `t my` (a INT) ENGINE = MyISAM", ALONE)
    statement(statement(binlog.begin(), "INSERT INTO alone_inno VALUES (1)"), "COMMIT", CLOSES)
    binlog.begin().table_map().rows().xid()
    # N before T: safe; T before N: not
    safe = binlog.size
    statement(statement(binlog.begin(), "INSERT INTO `t my` VALUES (1)"), "UPDATE t_inno SET a = 2").xid()
    unsafe = binlog.size
    statement(binlog.begin(), "/* app */ update low_priority test.t_inno SET a = 2")
    late = binlog.size
    statement(binlog, "DELETE FROM `test` . `t my`").xid()
    failed = binlog.size
    statement(binlog, "INSERT INTO `t my` VALUES (1), (1)", ALONE, 1062)
    rolled_back = binlog.size
    statement(statement(binlog.begin(), "INSERT INTO t_inno VALUES (1)"), "ROLLBACK", CLOSES)
    statement(statement(binlog.begin(), "INSERT INTO nobody_knows VALUES (1)"), "ROLLBACK", CLOSES)
    binlog.begin().event(19, bytes(6) + b"\x01\0\x04test\0\x04none\0\x01\xfc\x01\x02\x01", INSIDE)
    statement(binlog, "ROLLBACK", CLOSES)
    write(tmp_path, "bin.000001", binlog.data)
    done = run(spark, "mixing", tmp_path / "bin.000001", tmp_path)
    assert done.names == {"mixed_group", "late_change", "statement_with_error", "closed_by_rollback"}
    (alike,) = done.finding("mixed_group").places
    assert (str(alike), alike.last, alike.count) == (f"bin.000001:{safe}", f"bin.000001:{unsafe}", 2)
    assert done.places("late_change") == [f"bin.000001:{late}"]
    (changed,) = done.finding("late_change").places
    assert changed.text == "test.t my, in a group that changes test.t my, test.t_inno"
    assert changed.example == "DELETE FROM `test` . `t my`"
    assert done.places("statement_with_error") == [f"bin.000001:{failed}"]
    assert done.finding("statement_with_error").places[0].text == "error 1062: INSERT INTO `t my` VALUES (?)"
    assert done.places("closed_by_rollback")[0] == f"bin.000001:{rolled_back}"
    assert done.finding("closed_by_rollback").count == 3
    told = done.finding("engine_unknown").places
    assert [place.text for place in told] == ["test.nobody_knows: 1 group", "test.none: 1 group"]
    assert {row["name"] for row in done.parquet("findings")} >= {"engine_unknown"}
    engines = {row["table"]: (row["transactional"], row["known_by"]) for row in done.parquet("engines")}
    assert engines == {
        "test.t_inno": (True, "a statement in the archive"),
        "test.t my": (False, "a statement in the archive"),
        "test.alone_inno": (False, "its groups end with COMMIT"),
        "test.t": (True, "its groups end with Xid"),
    }


def test_no_secret_of_a_statement_with_an_error_is_shown(spark: Any, tmp_path: Path) -> None:
    binlog = statement(
        BinlogBuilder(), "CREATE USER a@b IDENTIFIED BY 'hunter2', root@c IDENTIFIED BY \"hunter2\"", ALONE, 1396
    )
    done = run(spark, "mixing", write(tmp_path, "bin.000001", binlog.data), tmp_path)
    assert done.finding("statement_with_error").places[0].text.startswith("error 1396: CREATE USER a@b IDENTIFIED BY")
    assert "hunter2" not in (done.out / "report.html").read_text() + str(done.parquet("findings"))


def test_recorded_engines_come_first_and_what_does_not_mix_is_clean(spark: Any, tmp_path: Path) -> None:
    binlog = BinlogBuilder()
    statement(statement(binlog.begin(), "INSERT INTO a VALUES (1)"), "INSERT INTO b VALUES (1)").xid()
    write(tmp_path, "bin.000001", binlog.data)
    lines = [line("watched", "bin.000001", 4)]
    lines += [table_line(table_facts(Table("test", name, "InnoDB")), "bin.000001", 4) for name in ("a", "b")]
    (tmp_path / SCHEMA_NAME).write_text("".join(lines))
    assert json.loads(lines[1])["engine"] == "InnoDB"
    done = run(spark, "mixing", tmp_path / "bin.000001", tmp_path)
    assert [finding.name for finding in done.outcome.result.findings] == []
    assert done.outcome.result.verdict == "1 group: nothing mixes tables with and without transactions."
    assert {row["known_by"] for row in done.parquet("engines")} == {"recorded"}


STATEMENTS = {
    "INSERT INTO t VALUES (1)": ("s.t", None),
    "  insert ignore t SELECT 1": ("s.t", None),
    "/* a */ -- b\n # c\n REPLACE DELAYED INTO `a``b`.`c.d` VALUES (1)": ("a`b.c.d", None),
    "(INSERT INTO x.y VALUES (1))": ("x.y", None),
    "/*!40000 INSERT INTO t VALUES (1) */": ("s.t", None),
    "INSERT /*+ SET_VAR(a=1) */ INTO größe VALUES (1)": ("s.größe", None),
    "UPDATE LOW_PRIORITY IGNORE a.b SET c = 1": ("a.b", None),
    "DELETE QUICK FROM t WHERE 1": ("s.t", None),
    "DELETE a.b, c FROM a.b JOIN c": ("a.b", None),
    "DELETE t.* FROM t JOIN u": ("s.t", None),
    "LOAD DATA INFILE 'x' IGNORE\nINTO TABLE `t` FIELDS TERMINATED BY ','": ("s.t", None),
    "CREATE TABLE IF NOT EXISTS t (a INT) ENGINE=MyISAM": (None, "s.t"),
    "ALTER IGNORE TABLE a.t ENGINE InnoDB": (None, "a.t"),
    "CREATE OR REPLACE TABLE t (a INT)": (None, "s.t"),
    "UPDATE": (None, None),
    "BEGIN": (None, None),
    "inserted INTO t": (None, None),
    "INSERT INTO `" + "x" * 60_000: (None, None),
    " " * 60_000 + "INSERT INTO t VALUES (1)": ("s.t", None),
    "/* x */ " * 8000 + "INSERT INTO t VALUES (1)": (None, None),
}


def test_the_tables_of_statements_are_found(spark: Any) -> None:
    frame = spark.createDataFrame([(text, "s") for text in STATEMENTS], "digest_text string, schema string")
    found = frame.select(
        "digest_text", changed_table().alias("c"), defined_table().alias("d"), named_engine().alias("e")
    )
    rows = {row["digest_text"]: row for row in found.collect()}
    assert {text: (rows[text]["c"], rows[text]["d"]) for text in STATEMENTS} == STATEMENTS
    assert rows["CREATE TABLE IF NOT EXISTS t (a INT) ENGINE=MyISAM"]["e"] == "MyISAM"
    assert rows["ALTER IGNORE TABLE a.t ENGINE InnoDB"]["e"] == "InnoDB"
    assert rows["CREATE OR REPLACE TABLE t (a INT)"]["e"] is None


def test_what_an_engine_is_comes_from_the_best_source() -> None:
    closed = [("a", "xid"), ("a", "commit"), ("b", "commit"), ("c", "rollback"), ("d", None)]
    told = [Closed(table, by, (0, 4)) for table, by in closed]
    found = {span.table: span.engine.transactional for span in engine_spans([], [], told)}
    assert found == {"a": True, "b": False}
    assert of_name("MyISAM", "x").transactional is False
    assert of_name("INNODB", "x").transactional is True
    assert of_name("Nonesuch", "x").transactional is None
    recorded = [EngineSpan("b", (0, 4), HIGH, of_name("InnoDB", "recorded"))]
    recorded.append(EngineSpan("e", LOW, HIGH, of_name("Nonesuch", "recorded")))
    best = {span.table: span for span in engine_spans(recorded, [], told)}
    assert (best["b"].engine.known_by, best["b"].first, best["a"].engine.transactional, "e" in best) == (
        *("recorded", LOW),
        *(True, False),
    )


def test_a_table_that_had_engines_of_both_kinds_had_each_in_its_time() -> None:
    first, second = of_name("MyISAM", "a statement"), of_name("InnoDB", "recorded")
    defined = [EngineSpan("t", (0, 100), HIGH, first)]
    recorded = [EngineSpan("t", (1, 50), (2, 0), second)]
    closed = [Closed("t", "xid", (0, 40)), Closed("t", "commit", (0, 60))]
    spans = [(span.first, span.stop, span.engine.transactional) for span in engine_spans(recorded, defined, closed)]
    assert spans == [
        (LOW, (0, 100), True),
        ((0, 100), (1, 50), False),
        ((1, 50), (2, 0), True),
        ((2, 0), HIGH, False),
    ]


def test_what_a_relay_recorded_is_true_where_it_was(tmp_path: Path) -> None:
    later = tmp_path / "g0002"
    later.mkdir()
    files = [SeriesFile(str(tmp_path / f"bin.{number:06}"), f"bin.{number:06}") for number in (3, 5)]
    files.append(SeriesFile(str(later / "b.000001"), "g0002/b.000001"))
    facts = [table_facts(Table("test", "t", engine)) for engine in ("MyISAM", "InnoDB")]
    lines = [line("watched", "bin.000002", 4), table_line(facts[0], "bin.000003", 200)]
    lines += [line("definition", "bin.000005", 700, names=["t"]), table_line(facts[1], "bin.000005", 800)]
    (tmp_path / SCHEMA_NAME).write_text("".join(lines))
    (later / SCHEMA_NAME).write_text(line("watched", "b.000001", 4) + table_line(facts[0], "b.000001", 4))
    spans = [(span.first, span.stop, span.engine.name) for span in recorded_engines(LocalStore(), files)]
    assert spans == [((0, 0), (1, 700), "MyISAM"), ((1, 700), (2, 0), "InnoDB"), ((2, 4), (3, 0), "MyISAM")]


def test_groups_are_judged_by_the_engines_of_their_time(spark: Any, tmp_path: Path) -> None:
    """The conversion at the end, as before an upgrade, does not hide what was mixed before it; nor --tables the statements."""
    binlog = BinlogBuilder()
    statement(binlog, "CREATE TABLE my (a INT) ENGINE=MyISAM", ALONE)
    statement(binlog, "CREATE TABLE inno (a INT) ENGINE=InnoDB", ALONE)
    mixed = binlog.size
    statement(statement(binlog.begin(), "INSERT INTO inno VALUES (1)"), "DELETE my FROM my JOIN inno").xid()
    rolled_back = binlog.size
    statement(statement(binlog.begin(), "INSERT INTO my VALUES (1)"), "ROLLBACK", CLOSES)
    converted = binlog.size
    statement(binlog, "ALTER TABLE my ENGINE=InnoDB", ALONE)
    statement(statement(binlog.begin(), "INSERT INTO inno VALUES (1)"), "INSERT INTO my VALUES (1)").xid()
    path = write(tmp_path, "bin.000001", binlog.data)
    done = run(spark, "mixing", path, tmp_path, tables=("my",))
    assert done.places("mixed_group") == [f"bin.000001:{mixed}"]
    assert done.names == {"mixed_group", "late_change", "closed_by_rollback"}
    assert done.places("closed_by_rollback") == [f"bin.000001:{rolled_back}"]
    engines = {(row["table"], row["transactional"], row["from"]) for row in done.parquet("engines")}
    begin = binlog.events[1].start
    assert engines >= {("test.my", False, f"bin.000001:{begin}"), ("test.my", True, f"bin.000001:{converted}")}
    ready = run(spark, "readiness", path, tmp_path)
    assert ready.places("mixed_engines") == [f"bin.000001:{mixed}"]
    assert run(spark, "mixing", path, tmp_path, tables=("other",)).outcome.result.findings == []
