"""Clients that come and go: the short version of `python -m tests.support.churn_run`."""

from pathlib import Path

from tests.conftest import need_server
from tests.support.churn_run import churn


def test_what_the_relay_holds_for_clients_goes_with_them(tmp_path: Path) -> None:
    need_server("mysql56")
    run = churn("mysql56", 15, tmp_path / "relay")
    assert run.findings == []
    assert min(run.done.values()) > 10, run.done
