"""What `feed status` says of the source is the relay's own word, or that it is unknown."""

import fcntl
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from relay.archive.storage.files import LOCK_NAME
from relay.feed.command.relay_word import relay_word, word_of
from relay.feed.feed_config import FeedSection

ADDRESS = {"running": True, "not_asked": None}
FOLLOWS = {"attached": True, "publishes": True, "error": None, "state": "Waiting for source", "seconds_behind": 3}


def section(archive: Path, **more: Any) -> FeedSection:
    return FeedSection.model_validate({"archive": str(archive), "target": str(archive / "lake"), **more})


def told(source: dict[str, Any], **relay: Any) -> Any:
    return word_of({"relay": {**ADDRESS, **relay}, "source": {**FOLLOWS, **source}})


def test_the_lag_is_the_one_that_a_following_relay_reports() -> None:
    word = told({})
    assert word.follows is True and word.behind_s == 3


@pytest.mark.parametrize(
    ("source", "relay", "text"),
    [
        ({}, {"running": False}, "The relay does not run"),
        (
            {"attached": False, "error": "another server answers"},
            {},
            "does not follow its source: another server answers.",
        ),
        ({"attached": False, "state": "Stopped"}, {}, "does not follow its source: Stopped."),
        ({"publishes": False, "error": "disk full"}, {}, "archives nothing more: disk full."),
    ],
    ids=["dead", "refused", "stopped", "archives nothing"],
)
def test_a_relay_that_does_not_follow_its_source_has_no_lag(
    source: dict[str, Any], relay: dict[str, Any], text: str
) -> None:
    word = told(source, **relay)
    assert word.follows is False and word.behind_s is None
    assert text in str(word)


@pytest.mark.parametrize(
    ("source", "relay"),
    [({"attached": None}, {"not_asked": "no account"}), ({"seconds_behind": None}, {})],
    ids=["not asked", "just connected"],
)
def test_a_lag_that_nobody_knows_is_not_guessed(source: dict[str, Any], relay: dict[str, Any]) -> None:
    word = told(source, **relay)
    assert word.follows is None and word.behind_s is None


def test_a_plain_directory_of_binlogs_has_no_relay_to_ask(tmp_path: Path) -> None:
    assert relay_word(section(tmp_path)).follows is None


def test_an_archive_that_no_relay_has_open_does_not_follow_its_source(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).touch()
    word = relay_word(section(tmp_path))
    assert word.follows is False and "Start it" in word.advice


def test_a_relay_elsewhere_is_not_missed_here(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).touch()
    assert relay_word(section(tmp_path, relay="elsewhere")).follows is None


def test_an_archive_that_a_process_has_locked_belongs_to_a_running_relay(tmp_path: Path) -> None:
    with (tmp_path / LOCK_NAME).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        word = relay_word(section(tmp_path))
    assert word.follows is None and "`relay` of feed.toml" in word.advice


def test_a_relay_toml_with_another_archive_is_named(tmp_path: Path) -> None:
    settings = tmp_path / "relay.toml"
    settings.write_text(
        '[source]\nhost = "db"\nuser = "relay"\npassword = "x"\nserver_id = 7\nssl_mode = "disabled"\n'
        '[archive]\ndir = "other"\n[[account]]\nuser = "a"\npassword = "b"\n'
    )
    word = relay_word(section(tmp_path / "archive", relay=str(settings)))
    assert word.follows is False and "Correct `relay` or `archive`" in word.advice
