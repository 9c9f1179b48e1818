"""Hostile binlogs: an archive that took them opens, is rebuilt, verified and read; a relay that was killed starts again.

The long run is `python -m tests.hostile_source`.
"""

import random
from pathlib import Path

import pytest

from tests.support.hostile_archive import meet
from tests.support.hostile_binlogs import (
    FAMILIES,
    Event,
    HostileSeries,
    file_of,
    hostile_series,
    recorded_events,
    rotate,
)
from tests.support.hostile_run import HostileCase, hostile_case, run_case

SEED = "suite"
GTID_LIST = Event(163, bytes.fromhex("01000000 00000000 01000000 0500000000000000"))
PREVIOUS_GTIDS = Event(
    35, (1).to_bytes(8, "little") + bytes(range(16)) + bytes.fromhex("0100000000000000") * 2 + bytes([9, *bytes(7)])
)


@pytest.mark.parametrize("first", range(0, 90, 10))
def test_an_archive_that_took_hostile_binlogs_opens_and_says_the_same_again(tmp_path: Path, first: int) -> None:
    for number in range(first, first + 10):
        series = hostile_series(random.Random(f"{SEED}-{number}"))
        try:
            meet(series, tmp_path / str(number))
        except Exception as error:
            raise AssertionError(f"case {number}: {series.what}") from error


@pytest.mark.parametrize("number", range(6))
def test_a_relay_that_met_hostile_binlogs_starts_again_after_each_kill(tmp_path: Path, number: int) -> None:
    case = hostile_case(random.Random(f"{SEED}-relay-{number}"))
    assert run_case(case, tmp_path / "relay")[0] == [], str(case)


@pytest.mark.parametrize(
    ("recorded", "foreign"), [("mysql56", GTID_LIST), ("mysql97-gtid", GTID_LIST), ("mariadb", PREVIOUS_GTIDS)]
)
def test_a_list_of_gtids_of_the_other_family_keeps_no_relay_from_starting(
    tmp_path: Path, recorded: str, foreign: Event
) -> None:
    family = next(one for one in FAMILIES if one.recorded == recorded)
    events = list(recorded_events(family))
    first = file_of([events[0], foreign, *events[1:], rotate(b"mysql-bin.000002")], checksum=True)
    files = {"mysql-bin.000001": first, "mysql-bin.000002": file_of(events, checksum=True)}
    series = HostileSeries(family, files, f"{recorded} with a list of the other family")
    case = HostileCase(series, as_directory=False, alive_s=0.3, with_view=True, with_tiers=False)
    assert run_case(case, tmp_path / "relay")[0] == []
