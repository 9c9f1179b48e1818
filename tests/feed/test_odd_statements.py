"""Statements as no generator writes them: nothing is wrong in silence. All of them: `python -m tests.support.odd_statements`."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from protocol.sql.tables.ddl_statement import AddColumn
from relay.feed.lake.lake_table import ColumnsChange
from relay.feed.statements.definition_effect import alteration
from relay.feed.statements.logged_changes import DdlChange
from tests.conftest import ServerFactory
from tests.support import odd_statements

pytestmark = pytest.mark.interop

SOME = (
    "if_exists",
    "if_exists_twice",
    "ignore_adds",
    "ignore_renames",
    "quoted_comments",
    "engine_turns",
    "re_add",
    "chain_names",
    "key_if",
    "keyless_tx",
    "drop_then_add",
    "instant",
    "functional",
    "ren_col",
    "gipk",
    "computed_convert",
    "default_kinds",
    "default_in_key",
    "marked_keys",
)


@pytest.mark.parametrize("name", ["mariadb", "mysql97"])
def test_no_table_is_wrong_in_silence(tmp_path: Path, servers: ServerFactory, name: str) -> None:
    outcome = odd_statements.run(tmp_path, servers(name), "MINIMAL", recorded=False, only=SOME)
    assert outcome.wrong == []
    assert sum(what == "same" for what in outcome.found.values()) >= 6


def test_without_a_look_at_what_is_there_a_column_that_is_to_be_added_if_not_is_wrong_in_silence(
    tmp_path: Path, servers: ServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(definition: DdlChange, *rest: Any, **more: Any) -> ColumnsChange:
        clauses = [
            replace(one, if_not_exists=False) if isinstance(one, AddColumn) else one for one in definition.clauses
        ]
        return alteration(replace(definition, clauses=tuple(clauses)), *rest, **more)

    monkeypatch.setattr("relay.feed.sink_table.alteration", forgetful)
    assert odd_statements.run(tmp_path, servers("mariadb"), "FULL", recorded=False, only=["if_exists"]).wrong == [
        "if_exists.t"
    ]
