"""Binlogs of MySQL 5.7 and 8.0 are read without a complaint; a view for 9.7 keeps their rows, and for older servers stops by name."""

from pathlib import Path

import pytest

from relay.view.inspect.dry_run_stops import find_stops
from relay.view.rules.settings import ViewSettings
from tests.corpus.between import BY_ROWS, BY_STATEMENTS, RECORDINGS, gtids_for, named
from tests.corpus.test_corpus_boundaries import look_at
from tests.support.kernel_builds import BUILD_NAMES, build_named
from tests.support.memory_file import looked_at
from tests.support.view_chain import UUID_OF_VIEW

# What a view for MySQL 5.6 cannot keep of each: JSON and generated columns; 8.0's default collation, roles and invisible columns.
STOPS_FOR_56 = {
    "mysql-5.7.23": {"definition_not_in_target", "column_type_not_in_target"},
    "mysql-8.0.39": {"definition_not_in_target", "column_type_not_in_target", "collation_not_in_target"},
}
# A transaction over both engines, and a table from a query into MyISAM: no server with GTIDs takes them.
STOPS_OF_STATEMENTS = {"statement_mixes_engines", "create_select"}


def stops(path: Path, target: str) -> set[str]:
    settings = ViewSettings("gtid", gtids_for(path), UUID_OF_VIEW, target=target)
    found = find_stops([looked_at(path.name, path.read_bytes())], settings)
    assert found.unread == []
    return {stop.reason.name for stop in found.stops}


@pytest.mark.parametrize("path", RECORDINGS, ids=named)
@pytest.mark.parametrize("build_name", BUILD_NAMES)
def test_a_recording_is_read_strictly_and_each_group_has_a_start_and_an_end(build_name: str, path: Path) -> None:
    seen = look_at(build_named(build_name), path, tolerant=False)
    assert (seen.error, seen.violations, seen.left) == ("", [], 0)
    assert seen.letters.count("s") == seen.letters.count("e") > 20


@pytest.mark.parametrize("target", ["mysql-8.0", "mysql-9.7"])
@pytest.mark.parametrize("path", BY_ROWS, ids=named)
def test_a_view_for_newer_servers_keeps_all_that_was_logged_as_rows(path: Path, target: str) -> None:
    assert stops(path, target) == set()


@pytest.mark.parametrize("path", BY_STATEMENTS, ids=named)
def test_a_view_for_9_7_stops_by_name_at_statements_that_servers_with_gtids_refuse(path: Path) -> None:
    assert stops(path, "mysql-9.7") >= STOPS_OF_STATEMENTS


@pytest.mark.parametrize("path", BY_ROWS, ids=named)
def test_a_view_for_5_6_stops_by_name_at_what_5_6_does_not_know(path: Path) -> None:
    assert stops(path, "mysql-5.6") >= STOPS_FOR_56[path.parent.name]
