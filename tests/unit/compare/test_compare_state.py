"""The state of an interrupted comparison."""

from decimal import Decimal
from pathlib import Path

import pytest

from relay.compare.compare_state import CompareState
from relay.compare.rows.differences import TableOutcome
from relay.compare.servers.compare_stop import CompareStop

SERVERS = ["source a", "new server b"]


def test_a_comparison_goes_on_at_the_key_where_it_was(tmp_path: Path) -> None:
    state = CompareState.opened(tmp_path / "state", SERVERS)
    table = state.of("shop.orders")
    table.after, table.outcome = (7, "ab", Decimal("1.50"), 0.1), TableOutcome("shop.orders", rows=9)
    state.different, state.definitions_done = 2, True
    state.write()
    again = CompareState.opened(tmp_path / "state", SERVERS)
    assert (again.goes_on, again.different, again.definitions_done) == (True, 2, True)
    assert again.of("shop.orders") == table


def test_a_state_of_other_servers_is_refused(tmp_path: Path) -> None:
    CompareState(tmp_path / "state", ["others"]).write()
    with pytest.raises(CompareStop, match="is no state of this comparison"):
        CompareState.opened(tmp_path / "state", SERVERS)


def test_a_file_that_is_no_state_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("[]")
    with pytest.raises(CompareStop, match="Name another file"):
        CompareState.opened(tmp_path / "state", SERVERS)


def test_a_comparison_that_is_done_leaves_no_state(tmp_path: Path) -> None:
    state = CompareState(tmp_path / "state", SERVERS)
    state.write()
    state.forget()
    assert not (tmp_path / "state").exists()
