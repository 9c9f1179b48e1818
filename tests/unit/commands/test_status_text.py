"""The screen of `binlog-relay status`, and what it counts."""

from typing import Any

import pytest

from relay.status.relay_status import bytes_behind, problems
from relay.status.status_command import status_text

SIZES = [("mysql-bin.000001", 1000), ("mysql-bin.000002", 500)]
SENT: dict[str, Any] = {
    "user": "u", "address": "a", "place": "mysql-bin.000002:4", "state": "", "behind_bytes": 1, "behind_s": None,
    "applied": None, "applied_text": "not known: no account",
}  # fmt: skip


def look() -> dict[str, Any]:
    """A relay without trouble."""
    found: dict[str, Any] = {
        "relay": {"running": True, "pid": 7, "asked_as": "dba", "not_asked": None, "listen": "0.0.0.0:3307"},
        "source": {
            "address": "db:3306", "state": "Waiting", "attached": True, "publishes": True, "file": "mysql-bin.000002",
            "position": 500, "seconds_behind": 0, "error": None,
        },
        "archive": {
            "directory": "/a", "files": 2, "bytes": 1500, "oldest": "mysql-bin.000001", "newest": "mysql-bin.000002",
            "end": 500, "last_time": "2026-01-01T00:00:00Z", "free_bytes": 1 << 30, "damaged": [], "trouble": None,
        },
        "views": [], "replicas": [], "applied_elsewhere": [], "ledger": {"rows": 0, "newest": []},
    }  # fmt: skip
    found["problems"] = problems(found)
    return found


@pytest.mark.parametrize(
    ("place", "bytes_"),
    [
        ("mysql-bin.000001:400", 1100),
        ("mysql-bin.000002:500", 0),
        ("mysql-bin.000009:4", None),
        ("", None),
        ("x", None),
    ],
)
def test_a_replica_is_behind_by_the_bytes_to_the_end(place: str, bytes_: int | None) -> None:
    assert bytes_behind(place, SIZES) == bytes_


def test_a_name_that_two_generations_have_says_nothing() -> None:
    assert bytes_behind("mysql-bin.000001:4", [*SIZES, ("g0002/mysql-bin.000001", 9)]) is None


def test_a_quiet_night_is_said() -> None:
    assert "no problems" in "\n".join(status_text(look()))


@pytest.mark.parametrize(
    ("part", "change", "told"),
    [
        ("relay", {"running": False}, "does not run"),
        ("source", {"attached": False, "error": "gone"}, "does not follow its source: gone"),
        ("source", {"publishes": False, "error": "full"}, "nothing more is published: full"),
        ("archive", {"damaged": ["mysql-bin.000001:4"]}, "damaged: mysql-bin.000001:4"),
        ("archive", {"trouble": "no catalog"}, "cannot be read: no catalog"),
    ],
)
def test_each_trouble_is_a_problem(part: str, change: dict[str, Any], told: str) -> None:
    found = look()
    found[part] |= change
    assert [told in problem for problem in problems(found)] == [True]


def test_a_stopped_view_is_a_problem() -> None:
    found = look()
    found["views"] = [{"name": "gtid", "stopped": "unknown_event: x", "for": "mysql-9.7"}]
    assert problems(found) == ["view gtid is stopped: unknown_event: x"]


def test_what_others_named_is_shown_without_escapes() -> None:
    found = look()
    evil = "\x1b[2J\x07<b>\n"
    found["replicas"] = [{**SENT, "user": evil, "address": evil, "place": evil, "state": evil, "applied_text": evil}]
    found["applied_elsewhere"] = [{"replica": evil, "server_id": 7, "text": evil, "applies": True, "error": None}]
    found["source"] |= {"address": evil, "state": evil, "file": evil}
    found["ledger"] = {"rows": 1, "newest": [{"time": "t", "kind": "k", "file": evil, "text": evil}]}
    found["problems"] = [evil]
    lines = list(status_text(found))
    assert all(line.isprintable() for line in lines)


def test_lag_is_told_in_seconds_where_it_is_known() -> None:
    found = look()
    one = {**SENT, "behind_bytes": 2048}
    found["replicas"] = [{**one, "behind_s": 7.2}, {**one, "behind_s": None}]
    lines = [line for line in status_text(found) if "u@a" in line]
    assert [line.rpartition(", ")[2] for line in lines] == ["2.0 KiB behind (7 s)", "2.0 KiB behind"]


def test_many_replicas_are_counted_and_not_all_shown() -> None:
    found = look()
    found["replicas"] = [SENT] * 100
    lines = list(status_text(found))
    assert len(lines) < 60 and any("80 more" in line for line in lines)


def test_what_a_replica_has_applied_stands_below_what_it_was_sent() -> None:
    found = look()
    found["replicas"] = [SENT]
    found["applied_elsewhere"] = [
        {"replica": "new:3306", "server_id": 9, "text": "all of it", "applies": True, "error": None}
    ]
    lines = "\n".join(status_text(found))
    assert "applied: not known: no account" in lines
    assert "new:3306 (server_id 9)" in lines and "applied: all of it" in lines


def test_a_replica_that_an_error_stopped_is_a_problem_and_one_that_a_person_stopped_is_none() -> None:
    found = look()
    stopped = {"replica": "new:3306", "server_id": 9, "text": "", "applies": False, "error": "1062 Duplicate entry"}
    found["replicas"] = [{**SENT, "applied": stopped}, {**SENT, "applied": {**stopped, "error": None}}]
    assert problems(found) == ["replica new:3306 applies nothing: 1062 Duplicate entry"]
